/* SPDX-License-Identifier: Apache-2.0
 *
 * test_segment.c: reading a segment: order, facts, repeats, unknown blocks, damage, and the same through a window of the file.
 */
#include "format/block.h"
#include "format/segment.h"
#include "segment_builder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

struct seen {
	char log[65536]; /* one word per thing told, in order */
	uint64_t events;
	uint64_t sum; /* over all that the events say */
	unsigned stop_after;
};

static bool tell(struct seen *seen, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool tell(struct seen *seen, const char *format, ...)
{
	size_t length = strlen(seen->log);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(seen->log + length, sizeof(seen->log) - length, format, arguments);
	va_end(arguments);
	return seen->stop_after == 0 || --seen->stop_after > 0;
}

static bool on_symbol(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	return id < STEPSCOPE_BUILTIN_FIRST_FREE || kind == STEPSCOPE_SYMBOL_META ||
	       tell(context, "symbol:%u:%.*s ", id, (int)length, text);
}

static bool on_stream(void *context, uint32_t stream, const struct stepscope_stream_info *info, const char *name)
{
	return tell(context, "stream:%u:%u:%s ", stream, info->tid, name);
}

static bool on_meta(void *context, const char *key, const char *value)
{
	return tell(context, "meta:%s=%s ", key, value);
}

static bool on_drops(void *context, uint32_t stream, const struct stepscope_drops *drops)
{
	return tell(context, "drops:%u:%llu ", stream, (unsigned long long)drops->by_type[STEPSCOPE_EVENT_BEGIN]);
}

static bool on_end(void *context, const char *reason)
{
	return tell(context, "end:%s ", reason);
}

static bool on_events(void *context, const struct stepscope_block *block, const struct segment_event *events,
                      uint32_t count)
{
	struct seen *seen = context;

	seen->events += count;
	for (uint32_t i = 0; i < count; i++) {
		seen->sum = seen->sum * 31 + events[i].tick + events[i].id + events[i].type;
		for (uint32_t k = 0; k < events[i].payload_count; k++)
			seen->sum = seen->sum * 31 + events[i].payload[k];
	}
	return tell(seen, "events:%u:%u ", block->stream, count);
}

static struct segment_visitor visitor_of(struct seen *seen)
{
	return (struct segment_visitor){
		.context = seen,
		.symbol = on_symbol,
		.stream = on_stream,
		.meta = on_meta,
		.drops = on_drops,
		.end = on_end,
		.events = on_events,
	};
}

static enum status read_back(const struct segment_builder *segment, struct seen *seen, struct segment_stats *stats)
{
	unsigned stop_after = seen->stop_after;
	*seen = (struct seen){.stop_after = stop_after};
	struct segment_visitor visitor = visitor_of(seen);
	struct error err;

	return segment_read_memory(segment->bytes.data, segment->bytes.length, "test", &visitor, stats, &err);
}

static struct seen seen;
static struct segment_stats stats;

static void all_is_told_in_order_names_first(void **state)
{
	struct segment_builder segment;

	segment_begin(&segment, 42, 0);
	segment_stream(&segment, 1, 42, "main");
	segment_put(&segment, 1, 1000, STEPSCOPE_EVENT_BEGIN, 20, 0);
	segment_put(&segment, 1, 2000, STEPSCOPE_EVENT_END, 0, 0);
	segment_symbol(&segment, 20, STEPSCOPE_SYMBOL_RANGE, "late"); /* behind its first use */
	segment_meta(&segment, "key", "value");
	segment_put(&segment, 2, 1500, STEPSCOPE_EVENT_BEGIN, 20, 0);
	segment_end(&segment, "exit");
	assert_int_equal(read_back(&segment, &seen, &stats), STATUS_OK);
	assert_string_equal(seen.log, "symbol:20:late stream:1:42:main events:1:2 meta:key=value events:2:1 end:exit ");
	assert_true(stats.is_closed);
	assert_int_equal(stats.events, 3);
	segment_release(&segment);
}

static void facts_are_taken_out_of_the_events(void **state)
{
	struct segment_builder segment;
	const char pair[] = "model\0small";
	struct {
		struct stepscope_symbol head;
		char text[16];
	} symbol = {{.id = 30, .length = sizeof(pair) - 1, .kind = STEPSCOPE_SYMBOL_META}, ""};

	memcpy(symbol.text, pair, sizeof(pair));
	segment_begin(&segment, 42, 0);
	segment_block(&segment, STEPSCOPE_BLOCK_SYMBOLS, 0, &symbol, 8 + 16);
	segment_put(&segment, 1, 1000, STEPSCOPE_EVENT_MARK, 30, 0);
	segment_put(&segment, 1, 1000, STEPSCOPE_EVENT_BEGIN, 1, 0);
	segment_end(&segment, NULL);
	assert_int_equal(read_back(&segment, &seen, &stats), STATUS_OK);
	assert_string_equal(seen.log, "meta:model=small events:1:1 ");
	assert_false(stats.is_closed);
	segment_release(&segment);
}

static void repeats_are_told_once_and_unknown_blocks_skipped(void **state)
{
	struct segment_builder segment;

	segment_begin(&segment, 42, 0);
	segment_put(&segment, 1, 1000, STEPSCOPE_EVENT_BEGIN, 1, 0);
	segment_flush(&segment, 0);
	segment.next_word[1] = 0; /* the same words again */
	segment_put(&segment, 1, 1000, STEPSCOPE_EVENT_BEGIN, 1, 0);
	segment_block(&segment, (enum stepscope_block_kind)99, 7, "future", 6);
	segment_put(&segment, 1, 2000, STEPSCOPE_EVENT_END, 1, 0);
	segment_end(&segment, "exit");
	assert_int_equal(read_back(&segment, &seen, &stats), STATUS_OK);
	assert_string_equal(seen.log, "events:1:1 events:1:1 end:exit ");
	assert_int_equal(stats.unknown_blocks, 1);
	assert_int_equal(stats.damaged_places, 0);
	segment_release(&segment);
}

static void the_work_of_a_rescue_at_the_end_is_found(void **state)
{
	struct segment_builder segment;

	segment_begin(&segment, 42, 0);
	segment_put(&segment, 1, 1000, STEPSCOPE_EVENT_BEGIN, 1, 0);
	segment_flush(&segment, 0);
	uint64_t before = segment.bytes.length;
	segment_put(&segment, 1, 2000, STEPSCOPE_EVENT_END, 1, 0);
	segment_flush(&segment, 1);
	block_mark_rescued(segment.bytes.data + before, 77);
	assert_int_equal(read_back(&segment, &seen, &stats), STATUS_OK);
	assert_int_equal(stats.rescue_offset, before);
	assert_int_equal(stats.rescue, 77);
	assert_int_equal(stats.rescued_events, 1);
	segment_end(&segment, "not of the rescue");
	assert_int_equal(read_back(&segment, &seen, &stats), STATUS_OK);
	assert_int_equal(stats.rescue_offset, 0);
	segment_release(&segment);
}

static void a_visitor_may_stop_anywhere(void **state)
{
	struct segment_builder segment;

	segment_begin(&segment, 42, 0);
	segment_symbol(&segment, 20, STEPSCOPE_SYMBOL_RANGE, "name");
	segment_stream(&segment, 1, 42, "main");
	segment_put(&segment, 1, 1000, STEPSCOPE_EVENT_BEGIN, 1, 0);
	segment_end(&segment, "exit");
	for (unsigned i = 1; i < 5; i++) {
		unsigned words = 0;
		seen.stop_after = i;
		assert_int_equal(read_back(&segment, &seen, &stats), STATUS_OK);
		for (const char *at = seen.log; *at; at++)
			words += *at == ' ';
		assert_int_equal(words, i);
	}
	seen.stop_after = 0;
	segment_release(&segment);
}

static void what_is_no_segment_is_refused(void **state)
{
	struct segment_visitor visitor = {0};
	struct error err;
	char bytes[300] = "something else";

	assert_int_equal(segment_read_memory(bytes, 0, "x", &visitor, &stats, &err), STATUS_INPUT);
	assert_non_null(strstr(err.text, "too short"));
	assert_int_equal(segment_read_memory(bytes, 127, "x", &visitor, &stats, &err), STATUS_INPUT);
	assert_int_equal(segment_read_memory(bytes, 300, "x", &visitor, &stats, &err), STATUS_INPUT);
	assert_non_null(strstr(err.text, "'x' is not a stepscope recording"));
	assert_int_equal(segment_read("/nowhere/x.ssr", &visitor, &stats, &err), STATUS_INPUT);
	assert_int_equal(segment_read("/tmp", &visitor, &stats, &err), STATUS_INPUT);
}

/* More than the reader's window, so that blocks lie across its edges; damaged here and there, too. */
static void a_file_reads_as_memory_does(void **state)
{
	struct segment_builder segment;
	char path[] = "/tmp/stepscope-test-XXXXXX";
	int fd = mkstemp(path);
	uint64_t seed = 5, tick = 1000;

	assert_true(fd >= 0);
	segment_begin(&segment, 42, 0);
	while (segment.bytes.length < 3u << 20) {
		for (int i = 0; i < 2000; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			segment_put(&segment, 1 + (uint32_t)(seed >> 60), tick += seed >> 44, STEPSCOPE_EVENT_VALUE, 1,
			            1, seed);
		}
	}
	segment_end(&segment, "exit");
	for (int round = 0; round < 8; round++) {
		struct segment_stats of_file;
		struct seen from_file = {0};
		struct segment_visitor visitor = visitor_of(&from_file);
		struct error err;
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, segment.bytes.data, segment.bytes.length, 0), segment.bytes.length);
		assert_int_equal(read_back(&segment, &seen, &stats), STATUS_OK);
		assert_int_equal(segment_read(path, &visitor, &of_file, &err), STATUS_OK);
		assert_int_equal(seen.events, from_file.events);
		assert_int_equal(seen.sum, from_file.sum);
		assert_memory_equal(&stats, &of_file, sizeof(stats));
		assert_int_equal(stats.damaged_places + (stats.torn_bytes > 0), round);
		/* a block further on each time: about one 16th of the file */
		size_t at = segment.bytes.length / 16 * (size_t)(2 * round + 1);
		segment.bytes.data[at] ^= 0x40;
	}
	close(fd);
	unlink(path);
	segment_release(&segment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_told_in_order_names_first),
		cmocka_unit_test(facts_are_taken_out_of_the_events),
		cmocka_unit_test(repeats_are_told_once_and_unknown_blocks_skipped),
		cmocka_unit_test(the_work_of_a_rescue_at_the_end_is_found),
		cmocka_unit_test(a_visitor_may_stop_anywhere),
		cmocka_unit_test(what_is_no_segment_is_refused),
		cmocka_unit_test(a_file_reads_as_memory_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
