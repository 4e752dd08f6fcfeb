/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fold.c: the rescue of what a killed process left in its pool: complete, without repeats, where the process was, and whatever
 * bytes the pool has. FOLD_SAMPLE=FILE in the environment writes the sample pool, a seed for fuzz_fold.
 */
#include "format/fold.h"
#include "format/place.h"
#include "format/segment.h"
#include "pool_sample.h"
#include "segment_builder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/stepscope-test-XXXXXX";
static char segment[64], pool_path[64];
static uint8_t pool[POOL_SAMPLE_BYTES] __attribute__((aligned(8)));
static struct fold_result result;
static struct error err;

struct sums {
	uint64_t begins, gaps, in_gaps, drops, words[3];
	bool has_repeat;
};

static bool on_drops(void *context, uint32_t stream, const struct stepscope_drops *drops)
{
	((struct sums *)context)->drops += stream == 1 ? drops->by_type[STEPSCOPE_EVENT_BEGIN] : 0;
	return true;
}

static bool on_events(void *context, const struct stepscope_block *block, const struct segment_event *events,
                      uint32_t count)
{
	struct sums *sums = context;

	if (block->stream < 3) {
		sums->has_repeat |= block->first_word != sums->words[block->stream];
		sums->words[block->stream] = block->first_word + block->words;
	}
	for (uint32_t i = 0; i < count; i++) {
		sums->begins += events[i].type == STEPSCOPE_EVENT_BEGIN;
		sums->gaps += events[i].type == STEPSCOPE_EVENT_GAP;
		sums->in_gaps += events[i].type == STEPSCOPE_EVENT_GAP ? events[i].payload[0] : 0;
	}
	return true;
}

static struct sums read_segment(struct segment_stats *stats)
{
	struct sums sums = {0};
	const struct segment_visitor visitor = {.context = &sums, .drops = on_drops, .events = on_events};

	assert_int_equal(segment_read(segment, &visitor, stats, &err), STATUS_OK);
	return sums;
}

static int set_up(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	snprintf(segment, sizeof(segment), "%s/host.4242.99.0.ssr", directory);
	snprintf(pool_path, sizeof(pool_path), "%s/pool", directory);
	pool_sample_make(pool, segment);
	if (getenv("FOLD_SAMPLE"))
		pool_sample_write(getenv("FOLD_SAMPLE"), pool, sizeof(pool));
	return 0;
}

static int tear_down(void **state)
{
	unlink(segment);
	unlink(pool_path);
	return rmdir(directory);
}

static void check_complete(void)
{
	struct segment_stats stats;
	struct sums sums = read_segment(&stats);

	assert_int_equal(sums.begins, 2 * 101);
	assert_int_equal(sums.gaps, 1);
	assert_int_equal(sums.in_gaps, 5);
	assert_int_equal(sums.drops, 5);
	assert_false(sums.has_repeat);
	assert_int_equal(stats.damaged_places + stats.torn_bytes, 0);
}

static void fold(void)
{
	pool_sample_make(pool, segment);
	pool_sample_write(pool_path, pool, sizeof(pool));
	assert_int_equal(fold_pool(pool_path, false, &result, &err), STATUS_OK);
	assert_true(result.was_folded);
}

static void what_the_segment_has_is_not_repeated(void **state)
{
	for (uint64_t words = 0; words <= 202; words += 2) {
		pool_sample_write_segment(segment, words);
		fold();
		check_complete();
		assert_int_equal(result.events, 2 * 202 - (words ? words - 1 : 0));
		assert_true(result.has_step);
		assert_int_equal(result.last_step, 17);
		assert_string_equal(result.last_op, "the last one");
		assert_int_equal(result.pid, 4242);
	}
}

static void write_between_operators(enum stepscope_event last, uint32_t id)
{
	struct segment_builder built;

	segment_begin(&built, 4242, 0);
	segment_stream(&built, 1, 4242, "main");
	segment_symbol(&built, 20, STEPSCOPE_SYMBOL_OP, "matmul");
	segment_symbol(&built, 21, STEPSCOPE_SYMBOL_RANGE, "garbage collection 2");
	segment_put(&built, 1, 1000, STEPSCOPE_EVENT_BEGIN, 20, 0);
	segment_put(&built, 1, 1100, last, id, 0);
	if (last == STEPSCOPE_EVENT_END)
		segment_put(&built, 1, 1200, STEPSCOPE_EVENT_BEGIN, 21, 0);
	segment_end(&built, NULL);
	pool_sample_write(segment, built.bytes.data, built.bytes.length);
	segment_release(&built);
}

static void the_last_operator_is_no_garbage_collection(void **state)
{
	write_between_operators(STEPSCOPE_EVENT_BEGIN, 21); /* in it */
	result = (struct fold_result){0};
	place_find(segment, &result);
	assert_string_equal(result.last_op, "matmul");
	write_between_operators(STEPSCOPE_EVENT_END, 0); /* behind it */
	result = (struct fold_result){0};
	place_find(segment, &result);
	assert_string_equal(result.last_op, "matmul");
	assert_false(result.has_step);
}

static void steps_that_were_counted_are_known(void **state)
{
	struct segment_builder built;

	segment_begin(&built, 4242, 0);
	segment_stream(&built, 1, 4242, "main");
	for (uint64_t count = 1; count < 4; count++)
		segment_put(&built, 1, 1000 * count, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_COUNTED, 1, count);
	segment_end(&built, NULL);
	pool_sample_write(segment, built.bytes.data, built.bytes.length);
	segment_release(&built);
	result = (struct fold_result){0};
	place_find(segment, &result);
	assert_false(result.has_step);
	assert_int_equal(result.steps_counted, 3);
}

/* Steps counted to 5; "0-2": `from` to `to` with operators; at the end nothing says that the last window closed. */
static void check_schedule(uint64_t words_before, const uint64_t captures[][2], int count, bool is_known,
                           uint64_t detailed, int64_t first, int64_t last)
{
	struct segment_builder built;

	segment_begin(&built, 4242, 1);
	segment_stream(&built, 1, 4242, "main");
	if (words_before)
		segment_skip_words(&built, 1, words_before);
	segment_put(&built, 1, 1, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2, (uint64_t)STEPSCOPE_CAPTURE_NONE,
	            (uint64_t)1);
	for (int i = 0; i < count; i++)
		segment_put(&built, 1, 10 + (uint64_t)i, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 3,
		            captures[i][0], (uint64_t)3, captures[i][1]);
	segment_put(&built, 1, 1000, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_COUNTED, 1, (uint64_t)5);
	segment_end(&built, NULL);
	pool_sample_write(segment, built.bytes.data, built.bytes.length);
	segment_release(&built);
	result = (struct fold_result){0};
	place_find(segment, &result);
	assert_int_equal(result.has_schedule, is_known);
	if (!is_known)
		return;
	assert_int_equal(result.steps_detailed, detailed);
	assert_int_equal(result.first_detailed, first);
	assert_int_equal(result.last_detailed, last);
}

static void of_counted_steps_it_is_known_which_have_operators(void **state)
{
	enum {
		NONE = STEPSCOPE_CAPTURE_NONE,
		RECORD = STEPSCOPE_CAPTURE_RECORD,
		SAVE = STEPSCOPE_CAPTURE_SAVE
	};

	check_schedule(0, NULL, 0, true, 0, 0, 0);
	check_schedule(0, (const uint64_t[][2]){{RECORD, 2}, {SAVE, 3}, {NONE, 4}}, 3, true, 2, 2, 3);
	check_schedule(0, (const uint64_t[][2]){{RECORD, 3}}, 1, true, 2, 3, 4);
	check_schedule(0, (const uint64_t[][2]){{SAVE, 1}, {NONE, 2}, {SAVE, 4}}, 3, true, 2, 1, 4);
	/* steps that several threads count, and what lies behind an earlier file */
	check_schedule(0, (const uint64_t[][2]){{RECORD, 3}, {NONE, 2}}, 2, false, 0, 0, 0);
	check_schedule(1, (const uint64_t[][2]){{RECORD, 3}}, 1, false, 0, 0, 0);
}

static void a_torn_end_is_cut_off(void **state)
{
	struct stat info;

	pool_sample_write_segment(segment, 0);
	assert_int_equal(stat(segment, &info), 0);
	off_t empty = info.st_size;
	pool_sample_write_segment(segment, 42);
	assert_int_equal(stat(segment, &info), 0);
	for (off_t cut = info.st_size; cut >= empty; cut -= 2) {
		pool_sample_write_segment(segment, 42);
		assert_int_equal(truncate(segment, cut), 0);
		fold();
		check_complete();
	}
}

static void a_closed_pool_is_left_out(void **state)
{
	struct segment_stats stats;

	pool_sample_write_segment(segment, 0);
	pool_sample_make(pool, segment);
	((struct stepscope_pool_header *)(void *)pool)->is_closed = 1;
	pool_sample_write(pool_path, pool, sizeof(pool));
	assert_int_equal(fold_pool(pool_path, false, &result, &err), STATUS_OK);
	assert_false(result.was_folded);
	assert_int_equal(read_segment(&stats).begins, 0);
}

static void a_living_owner_is_left_alone(void **state)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	int status;

	pool_sample_write_segment(segment, 0);
	pool_sample_make(pool, segment);
	pool_sample_write(pool_path, pool, sizeof(pool));
	int fd = open(pool_path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(fold_pool(pool_path, false, &result, &err) != STATUS_OK || result.was_folded);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
}

/* Any bytes: no crash, and the segment stays good up to where it was. */
static void a_damaged_pool_breaks_nothing(void **state)
{
	uint64_t seed = 3;

	for (int round = 0; round < 1000; round++) {
		struct segment_stats stats;
		pool_sample_write_segment(segment, 42);
		pool_sample_make(pool, segment);
		for (int i = 0; i <= round % 7; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			/* most of them where sizes and offsets are; never the path, which says what is written to */
			size_t place = (seed >> 33) % (seed >> 63 ? 1000 : POOL_SAMPLE_BYTES);
			size_t path = offsetof(struct stepscope_pool_header, segment_path);
			if (place < path || place >= path + 1400)
				pool[place] = (uint8_t)(seed >> 20);
		}
		pool_sample_write(pool_path, pool, sizeof(pool));
		(void)!fold_pool(pool_path, false, &result, &err);
		assert_true(read_segment(&stats).begins >= 20);
		assert_int_equal(stats.damaged_places + stats.torn_bytes, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_segment_has_is_not_repeated),
		cmocka_unit_test(the_last_operator_is_no_garbage_collection),
		cmocka_unit_test(steps_that_were_counted_are_known),
		cmocka_unit_test(of_counted_steps_it_is_known_which_have_operators),
		cmocka_unit_test(a_torn_end_is_cut_off),
		cmocka_unit_test(a_closed_pool_is_left_out),
		cmocka_unit_test(a_living_owner_is_left_alone),
		cmocka_unit_test(a_damaged_pool_breaks_nothing),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
