/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations and frees that are missing: since when a recording does not know what is alive, and that nothing is told of it from then on.
 */
#include "analysis/analysis_context.h"
#include "analysis/memory/memory_pool.h"
#include "importers/recording/recording.h"
#include "segment_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stepscope/stepscope.h>
#include <string.h>

#include <cmocka.h>

#define MAIN 1
#define OTHER 2
#define BYTES 1000
#define CAPTURED (STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL)
#define STEP 1000 /* ns; the nth begins at n * STEP */

static struct model model;
static struct segment_builder segment;
static uint64_t address;

/* ---- recordings: their events lie within steps ------------------------------------------------------------------------- */

static void put_capture(uint64_t tick, bool with_memory)
{
	segment_put(&segment, MAIN, tick, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)STEPSCOPE_CAPTURE_RECORD,
	            (uint64_t)(CAPTURED | (with_memory ? STEPSCOPE_ACTIVE_MEMORY : 0)));
}

static void begin(void)
{
	segment_begin(&segment, 4242, 0);
	segment_stream(&segment, MAIN, 4242, "main");
	put_capture(1, true);
	address = 0x1000;
}

static uint64_t allocate(uint32_t stream, uint64_t tick)
{
	segment_put(&segment, stream, tick, STEPSCOPE_EVENT_ALLOC,
	            STEPSCOPE_MEMORY_ID(STEPSCOPE_MEMORY_ACTIVATION, STEPSCOPE_DEVICE_CPU), 2, ++address,
	            (uint64_t)BYTES);
	return address;
}

static void release(uint32_t stream, uint64_t tick, uint64_t at)
{
	segment_put(&segment, stream, tick, STEPSCOPE_EVENT_FREE, STEPSCOPE_MEMORY_ID(0, STEPSCOPE_DEVICE_CPU), 1, at);
}

/* Something that lives for an instant, and, where the free is dropped, seems to live for ever. */
static void train(uint64_t from, uint64_t end, bool is_dropped)
{
	for (uint64_t n = from; n < end; n++) {
		uint64_t at, tick = n * STEP;

		segment_step(&segment, MAIN, tick, STEPSCOPE_STEP_BEGIN, (int64_t)n);
		at = allocate(MAIN, tick + 100);
		if (is_dropped)
			segment_put(&segment, MAIN, tick + 300, STEPSCOPE_EVENT_GAP, 0, 3, (uint64_t)1, (uint64_t)0,
			            tick + 200);
		else
			release(MAIN, tick + 200, at);
		segment_step(&segment, MAIN, tick + 900, STEPSCOPE_STEP_END, (int64_t)n);
	}
}

static void put_drops(uint32_t stream, enum stepscope_event type, uint64_t count)
{
	struct stepscope_drops drops = {{0}};

	drops.by_type[type] = count;
	segment_block(&segment, STEPSCOPE_BLOCK_DROPS, stream, &drops, sizeof drops);
}

static void load(const char *end_reason)
{
	struct recording_bytes bytes;
	struct error err = {.status = STATUS_OK};

	segment_end(&segment, end_reason);
	bytes = (struct recording_bytes){segment.bytes.data, segment.bytes.length, "n.4242.5242.0.ssr"};
	model_init(&model, 0);
	assert_int_equal(recording_load_memory(&bytes, 1, NULL, &model, &err), STATUS_OK);
	model_finish(&model);
	segment_release(&segment);
}

/* ---- what is told -------------------------------------------------------------------------------------------------------- */

static struct memory_pool pool;
static const char *unknown[64]; /* of steps */
static int64_t peaks[64];
static uint32_t step_count, pool_count;

static void keep_step(void *context, const struct memory_pool *replayed, uint32_t step)
{
	peaks[step_count] = (int64_t)replayed->step_peak;
	unknown[step_count++] = replayed->unknown;
}

static void keep_pool(void *context, const struct memory_pool *replayed)
{
	pool = *replayed;
	pool_count++;
}

static void replay(void)
{
	const struct analysis_options options = {.by = BY_NAME};
	struct analysis_context context;

	step_count = pool_count = 0;
	analysis_context_init(&context, &model, &options);
	memory_pools_each(&context, &(struct memory_visitor){.step_end = keep_step, .end = keep_pool});
	analysis_context_release(&context);
}

/* The first ones of the steps; of the others the reason has those words. */
static void check_known(uint32_t known, uint32_t count, const char *why)
{
	replay();
	assert_int_equal(step_count, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(i < known ? !unknown[i] : strstr(unknown[i], why) != NULL);
		assert_true(i >= known || peaks[i] == BYTES);
	}
	assert_int_equal(pool_count, 1);
	assert_true(known == count ? !pool.unknown_growth : strstr(pool.unknown_growth, why) != NULL);
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

static void what_is_whole_is_known(void **state)
{
	begin();
	train(1, 17, false);
	load("exit");
	assert_false(model.processes[0].has_lost_memory);
	check_known(16, 16, "");
	assert_true(!pool.unknown && !pool.unknown_peak && pool.peak == BYTES && pool.now == 0);
	model_release(&model);
}

static void from_the_first_drop_on_nothing_is(void **state)
{
	begin();
	train(1, 9, false);
	train(9, 17, true);
	put_drops(MAIN, STEPSCOPE_EVENT_FREE, 8);
	load("exit");
	assert_int_equal(model.processes[0].lost_memory_ns, 9 * STEP + 199);
	check_known(8, 16, "dropped");
	assert_true(strstr(pool.unknown_peak, "dropped") && pool.peak == BYTES);
	assert_non_null(memory_sums_unknown(&model));
	model_release(&model);
}

/* A gap says how many, not of which type. */
static void drops_of_other_events_take_nothing_away(void **state)
{
	begin();
	train(1, 17, false);
	segment_put(&segment, MAIN, 17 * STEP, STEPSCOPE_EVENT_GAP, 0, 3, (uint64_t)1, (uint64_t)0, 17 * STEP - 10);
	put_drops(MAIN, STEPSCOPE_EVENT_VALUE, 1);
	load("exit");
	check_known(16, 16, "");
	model_release(&model);
}

static void drops_of_nobody_knows_which_type_may_be_memory(void **state)
{
	begin();
	train(1, 9, false);
	train(9, 17, true);
	load("exit");
	check_known(8, 16, "dropped");
	model_release(&model);
}

/* One that no gap tells the time of. What is behind its thread's last event may be of any thread. */
static void a_drop_without_a_gap_is_behind_its_threads_last_event(void **state)
{
	begin();
	segment_stream(&segment, OTHER, 4243, "other");
	train(1, 9, false);
	release(OTHER, 8 * STEP + 950, allocate(OTHER, 8 * STEP + 950));
	train(9, 17, false);
	put_drops(OTHER, STEPSCOPE_EVENT_ALLOC, 1);
	load("exit");
	assert_int_equal(model.processes[0].lost_memory_ns, 8 * STEP + 950);
	check_known(8, 16, "dropped");
	model_release(&model);
}

static void drops_of_nobody_knows_which_thread_are_of_any_time(void **state)
{
	begin();
	train(1, 17, false);
	put_drops(0, STEPSCOPE_EVENT_FREE, 1);
	load("exit");
	assert_int_equal(model.processes[0].lost_memory_ns, INT64_MIN);
	check_known(0, 16, "dropped");
	model_release(&model);
}

static void owners_that_are_dropped_are_memory_as_well(void **state)
{
	begin();
	train(1, 17, true);
	put_drops(MAIN, STEPSCOPE_EVENT_EXTENDED, 1);
	load("exit");
	assert_true(model.processes[0].has_lost_memory);
	model_release(&model);
}

static void a_hole_may_have_had_frees(void **state)
{
	begin();
	train(1, 9, false);
	segment_skip_words(&segment, MAIN, 5);
	train(9, 17, false);
	load("exit");
	assert_int_equal(model.processes[0].lost_memory_ns, 8 * STEP + 900);
	check_known(8, 16, "damaged");
	model_release(&model);
}

static void the_end_of_one_that_has_none_is_not_known(void **state)
{
	const uint64_t last = 1000000; /* ms are longer than what a killed process takes along */

	begin();
	train(1, 17, false);
	segment_step(&segment, MAIN, last * STEP, STEPSCOPE_STEP_BEGIN, (int64_t)last);
	load(NULL);
	assert_true(model.processes[0].lost_memory_ns > 17 * STEP);
	check_known(16, 16, ""); /* its steps are */
	assert_true(strstr(pool.unknown_peak, "has no end") && pool.peak == BYTES);
	model_release(&model);
}

static void where_memory_was_not_recorded_any_more_nothing_is_lost(void **state)
{
	begin();
	train(1, 17, false);
	put_capture(17 * STEP, false);
	segment_step(&segment, MAIN, 18 * STEP, STEPSCOPE_STEP_BEGIN, 18);
	segment_skip_words(&segment, MAIN, 5);
	segment_step(&segment, MAIN, 19 * STEP, STEPSCOPE_STEP_BEGIN, 19);
	load("exit");
	assert_false(model.processes[0].has_lost_memory);
	model_release(&model);
}

/* Of a segment whose predecessors rotation removed. */
static void what_rotation_left_is_at_least_so_much(void **state)
{
	const struct stepscope_segment_header header = {.pid = 4242,
	                                                .start_time = 5242,
	                                                .segment = 3,
	                                                .clock = STEPSCOPE_CLOCK_MONOTONIC,
	                                                .rank = -1,
	                                                .world_size = -1,
	                                                .tick_hz = 1000000000,
	                                                .first_tick = 500};

	segment_begin_with(&segment, &header);
	segment_stream(&segment, MAIN, 4242, "main");
	segment_skip_words(&segment, MAIN, 100);
	put_capture(400, true);
	allocate(MAIN, 450); /* other threads may have told of that time in what was removed */
	train(1, 17, false);
	load("exit");
	assert_false(model.processes[0].has_lost_memory);
	replay();
	assert_int_equal(step_count, 16);
	for (uint32_t i = 0; i < step_count; i++)
		assert_true(strstr(unknown[i], "removed again") && peaks[i] == BYTES);
	assert_true(strstr(pool.unknown_peak, "removed again") && !pool.unknown_growth);
	model_release(&model);
}

/* Recorded memory replaces what was there before: it seems to grow, and does not. */
static void what_replaces_older_memory_does_not_tell_growth(void **state)
{
	begin();
	for (uint64_t n = 1; n < 17; n++) {
		segment_step(&segment, MAIN, n * STEP, STEPSCOPE_STEP_BEGIN, (int64_t)n);
		allocate(MAIN, n * STEP + 100);
		release(MAIN, n * STEP + 200, 0x10 + n);
		segment_step(&segment, MAIN, n * STEP + 900, STEPSCOPE_STEP_END, (int64_t)n);
	}
	load("exit");
	replay();
	assert_true(pool.unknown_frees == 16 && strstr(pool.unknown_growth, "without a recorded allocation"));
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_whole_is_known),
		cmocka_unit_test(from_the_first_drop_on_nothing_is),
		cmocka_unit_test(drops_of_other_events_take_nothing_away),
		cmocka_unit_test(drops_of_nobody_knows_which_type_may_be_memory),
		cmocka_unit_test(a_drop_without_a_gap_is_behind_its_threads_last_event),
		cmocka_unit_test(drops_of_nobody_knows_which_thread_are_of_any_time),
		cmocka_unit_test(owners_that_are_dropped_are_memory_as_well),
		cmocka_unit_test(a_hole_may_have_had_frees),
		cmocka_unit_test(the_end_of_one_that_has_none_is_not_known),
		cmocka_unit_test(where_memory_was_not_recorded_any_more_nothing_is_lost),
		cmocka_unit_test(what_rotation_left_is_at_least_so_much),
		cmocka_unit_test(what_replaces_older_memory_does_not_tell_growth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
