/* SPDX-License-Identifier: Apache-2.0
 *
 * test_truncation.c: a segment cut off at every byte loses its tail only; one with a flipped byte loses the block that was hit. Never a
 * crash. FLIPS=n in the environment: that many flips instead of 20,000.
 */
#include "format/segment.h"
#include "segment_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MAX_BLOCKS 200
#define EVENTS_BLOCKS 60
#define EVENTS_EACH 24

struct map { /* of the good file */
	struct segment_builder segment;
	uint64_t end[MAX_BLOCKS]; /* of block i */
	uint32_t events[MAX_BLOCKS];
	uint32_t count;
	uint64_t total;
};

static struct map map;

static void add_events(int block)
{
	uint32_t stream = 1 + (uint32_t)block % 3;
	uint64_t tick = 1000000 + (uint64_t)block * 100000;

	for (int i = 0; i < EVENTS_EACH / 4; i++) {
		segment_put(&map.segment, stream, tick += 700, STEPSCOPE_EVENT_BEGIN, 20, 0);
		segment_put(&map.segment, stream, tick + 90, STEPSCOPE_EVENT_VALUE, 21, 1, tick * 3);
		segment_put(&map.segment, stream, tick + 140, STEPSCOPE_EVENT_ALLOC, 1, 2, tick << 12, 4096ull);
		segment_put(&map.segment, stream, tick += 5000, STEPSCOPE_EVENT_END, 0, 0);
	}
	segment_flush(&map.segment, 0);
}

static int set_up(void **state)
{
	segment_begin(&map.segment, 4242, 0);
	segment_symbol(&map.segment, 20, STEPSCOPE_SYMBOL_OP, "matmul");
	segment_symbol(&map.segment, 21, STEPSCOPE_SYMBOL_COUNTER, "queue");
	for (uint32_t stream = 1; stream <= 3; stream++)
		segment_stream(&map.segment, stream, 4241 + stream, "thread");
	for (int i = 0; i < EVENTS_BLOCKS; i++)
		add_events(i);
	segment_end(&map.segment, "exit");
	for (uint64_t at = sizeof(struct stepscope_segment_header); at < map.segment.bytes.length;) {
		struct stepscope_block block;
		memcpy(&block, map.segment.bytes.data + at, sizeof(block));
		at += sizeof(block) + block.bytes;
		map.events[map.count] = block.kind == STEPSCOPE_BLOCK_EVENTS ? block.events : 0;
		map.total += map.events[map.count];
		map.end[map.count++] = at;
	}
	return map.total == EVENTS_BLOCKS * EVENTS_EACH ? 0 : -1;
}

static int tear_down(void **state)
{
	segment_release(&map.segment);
	return 0;
}

static bool count_events(void *context, const struct stepscope_block *block, const struct segment_event *events,
                         uint32_t count)
{
	uint64_t *sum = context;

	for (uint32_t i = 0; i < count; i++)
		assert_true(events[i].type == STEPSCOPE_EVENT_BEGIN || events[i].type == STEPSCOPE_EVENT_END ||
		            events[i].type == STEPSCOPE_EVENT_VALUE || events[i].type == STEPSCOPE_EVENT_ALLOC);
	*sum += count;
	return true;
}

static enum status read_bytes(const void *bytes, uint64_t length, uint64_t *events, struct segment_stats *stats)
{
	const struct segment_visitor visitor = {.context = events, .events = count_events};
	struct error err;

	*events = 0;
	return segment_read_memory(bytes, length, "test", &visitor, stats, &err);
}

static void a_file_cut_anywhere_loses_its_tail_only(void **state)
{
	struct segment_stats stats;
	uint64_t events, length = map.segment.bytes.length;

	for (uint64_t cut = 0; cut <= length; cut++) {
		char *copy = test_malloc(cut + 1); /* of that size, for the sanitizers */
		uint64_t whole = 0, expected = 0;
		memcpy(copy, map.segment.bytes.data, cut);
		enum status status = read_bytes(copy, cut, &events, &stats);
		test_free(copy);
		if (cut < sizeof(struct stepscope_segment_header)) {
			assert_int_equal(status, STATUS_INPUT);
			continue;
		}
		assert_int_equal(status, STATUS_OK);
		whole = sizeof(struct stepscope_segment_header);
		for (uint32_t i = 0; i < map.count && map.end[i] <= cut; i++) {
			expected += map.events[i];
			whole = map.end[i];
		}
		assert_int_equal(events, expected);
		assert_int_equal(stats.torn_bytes, cut - whole);
		assert_int_equal(stats.damaged_places, 0);
		assert_int_equal(stats.is_closed, cut == length);
	}
}

/* How many events may be missing when byte `at` is changed. */
static uint64_t events_at(uint64_t at)
{
	for (uint32_t i = 0; at >= sizeof(struct stepscope_segment_header) && i < map.count; i++)
		if (at < map.end[i])
			return map.events[i];
	return 0;
}

static void a_changed_byte_loses_its_block_only(void **state)
{
	const char *wish = getenv("FLIPS");
	long flips = wish ? strtol(wish, NULL, 10) : 20000;
	uint64_t seed = 42, events;
	uint8_t *bytes = (uint8_t *)map.segment.bytes.data;
	struct segment_stats stats;

	for (long i = 0; i < flips; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint64_t at = (seed >> 33) % map.segment.bytes.length;
		uint8_t change = (uint8_t)(seed >> 20) ? (uint8_t)(seed >> 20) : 1;
		bytes[at] ^= change;
		enum status status = read_bytes(bytes, map.segment.bytes.length, &events, &stats);
		if (status == STATUS_OK) {
			assert_int_equal(events, map.total - events_at(at));
			assert_int_equal(stats.damaged_places + (stats.torn_bytes > 0), 1);
		} else {
			assert_in_range(at, 0, 7); /* the magic: this is no segment */
		}
		bytes[at] ^= change;
	}
}

/* Damage of every kind at once: only that nothing crashes and nothing is invented. */
static void much_damage_invents_nothing(void **state)
{
	uint64_t seed = 7, events, length = map.segment.bytes.length;
	uint8_t *copy = test_malloc(length);
	struct segment_stats stats;

	for (int round = 0; round < 500; round++) {
		memcpy(copy, map.segment.bytes.data, length);
		for (int i = 0; i < 1 + round / 5; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			uint64_t from = 128 + (seed >> 33) % (length - 128), to = 128 + (seed >> 13) % (length - 128);
			uint64_t size = (seed >> 50) % 200;
			if (from + size <= length && to + size <= length)
				memmove(copy + to, copy + from, size); /* stale or shifted sectors */
		}
		assert_int_equal(read_bytes(copy, length, &events, &stats), STATUS_OK);
		assert_true(events <= map.total);
	}
	test_free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_cut_anywhere_loses_its_tail_only),
		cmocka_unit_test(a_changed_byte_loses_its_block_only),
		cmocka_unit_test(much_damage_invents_nothing),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
