/* SPDX-License-Identifier: Apache-2.0
 *
 * Several processes of recordings made by hand: their order, their ranks and programs, and the clock that those of a machine
 * share.
 */
#include "hand_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void an_exec_brings_new_names_and_streams(void **state)
{
	struct segment_builder segments[2];
	begin(&segments[0]);
	on(&segments[0], 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_end(&segments[0], NULL);
	struct stepscope_segment_header header = segments[0].header;
	header.segment = 1;
	header.session = 1;
	segment_begin_with(&segments[1], &header);
	segment_stream(&segments[1], MAIN, 4242, "main");
	segment_symbol(&segments[1], OP, STEPSCOPE_SYMBOL_OP, "other program");
	on(&segments[1], 100, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segments[1], 110, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_end(&segments[1], "exit");
	const char *const names[] = {"n.4242.1.0.ssr", "n.4242.1.1.ssr"};
	load_all(segments, 2, names, NULL);
	assert_int_equal(model.processes_count, 1);
	assert_int_equal(model.tracks_count, 1); /* the same thread */
	CHECK_SPANS(0, {10, 0, "matmul", 0, SPAN_END_IS_LOST}, {100, 10, "other program", 0, 0});
	assert_true(model.processes[0].is_closed);
	assert_int_equal(ledger_count(LEDGER_MISSING_TAIL), 0);
	model_release(&model);
	(void)state;
}

static struct stepscope_segment_header tsc_header(uint32_t pid, const char *boot)
{
	struct stepscope_segment_header header = {
		.pid = pid, .clock = STEPSCOPE_CLOCK_TSC, .rank = -1, .world_size = -1, .tick_hz = 2000000000};
	memcpy(header.boot_id, boot, 4);
	return header;
}

/* ticks at 2 GHz; raw = tick / 2 + 5 s, monotonic = raw + 7, wall = raw + 1000 s */
static void anchor_at(struct segment_builder *segment, int64_t ms, int64_t raw_error, uint32_t window, int64_t wall_s)
{
	int64_t raw = 5000000000 + ms * 1000000;
	struct stepscope_anchor anchor = {.tick = (uint64_t)ms * 2000000,
	                                  .raw_ns = raw + raw_error,
	                                  .monotonic_ns = raw + 7,
	                                  .realtime_ns = raw + wall_s * 1000000000,
	                                  .window_ticks = window,
	                                  .clock = STEPSCOPE_CLOCK_TSC};
	segment_anchor(segment, &anchor);
}

static void processes_of_a_boot_share_one_clock(void **state)
{
	struct segment_builder segments[3];
	for (uint32_t i = 0; i < 3; i++) {
		struct stepscope_segment_header header = tsc_header(100 + i, i < 2 ? "one" : "two");
		segment_begin_with(&segments[i], &header);
		segment_stream(&segments[i], MAIN, 100 + i, "main");
		segment_symbol(&segments[i], OP, STEPSCOPE_SYMBOL_OP, "op");
		if (i != 1) { /* the second one has no anchor at all */
			anchor_at(&segments[i], 1000, 0, 40, i < 2 ? 1000 : 2000);
			anchor_at(&segments[i], 2000, 0, 40, i < 2 ? 1000 : 2000);
			anchor_at(&segments[i], 2500, 90000000, 900000, i < 2 ? 1000 : 2000); /* disturbed */
			anchor_at(&segments[i], 3000, 0, 40, i < 2 ? 1000 : 2000);
		}
		segment_put(&segments[i], MAIN, 1000000000, STEPSCOPE_EVENT_BEGIN, OP,
		            0); /* 0.5 s, before the first anchor */
		segment_put(&segments[i], MAIN, 8000000000, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL,
		            0); /* 4 s, behind the last */
		segment_end(&segments[i], "exit");
	}
	const char *const names[] = {"a.100.0.0.ssr", "a.101.0.0.ssr", "b.102.0.0.ssr"};
	load_all(segments, 3, names, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		/* the third host's wall clock is 1000 s ahead at the same raw time */
		int64_t start = 5500000007 + (i == 2 ? 1000000000000 : 0);
		CHECK_SPANS(i, {start, 3500000000, "op", 0, 0});
		assert_int_equal(model.processes[i].realtime_offset_ns, 1000000000000 - 7);
	}
	assert_string_equal(model_text(&model, process_clock(&model.processes[0])),
	                    "6f6e6500-0000-0000-0000-000000000000");
	assert_int_equal(process_clock(&model.processes[0]), process_clock(&model.processes[1]));
	assert_int_not_equal(process_clock(&model.processes[0]), process_clock(&model.processes[2]));
	assert_int_equal(ledger_count(LEDGER_CLOCK), 0);
	model_release(&model);
	(void)state;
}

static void times_never_go_back_whatever_the_anchors_say(void **state)
{
	struct segment_builder segment;
	struct stepscope_segment_header header = tsc_header(100, "one");
	segment_begin_with(&segment, &header);
	segment_stream(&segment, MAIN, 100, "main");
	segment_symbol(&segment, OP, STEPSCOPE_SYMBOL_OP, "op");
	for (int64_t ms = 0; ms < 10000; ms += 300)
		anchor_at(&segment, ms, (ms * 7919 % 1000) * 1000000, 40, 1000); /* jumps by up to a second */
	for (uint64_t tick = 1; tick < 20000000000; tick += 3333333) {
		segment_put(&segment, MAIN, tick, STEPSCOPE_EVENT_BEGIN, OP, 0);
		segment_put(&segment, MAIN, tick + 1, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
	}
	segment_end(&segment, "exit");
	load(&segment);
	const struct track *track = model.tracks[0];
	int64_t last = 0;
	for (uint32_t row = 0; row < track->span_count; row++) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(track, row, &i);
		assert_true(chunk->start_ns[i] >= last && chunk->dur_ns[i] >= 0);
		last = chunk->start_ns[i] + chunk->dur_ns[i];
	}
	assert_true(ledger_count(LEDGER_CLOCK) > 0);
	model_release(&model);
	(void)state;
}

static void processes_come_in_order_of_role_and_rank(void **state)
{
	struct segment_builder segments[4];
	static const struct {
		uint32_t role;
		int32_t rank;
	} who[] = {{STEPSCOPE_ROLE_HOST, -1},
	           {STEPSCOPE_ROLE_TRAINER, -1},
	           {STEPSCOPE_ROLE_TRAINER, 1},
	           {STEPSCOPE_ROLE_TRAINER, 0}};
	for (uint32_t i = 0; i < 4; i++) {
		struct stepscope_segment_header header = tsc_header(100 + i, "one");
		header.role = who[i].role;
		header.rank = who[i].rank;
		segment_begin_with(&segments[i], &header);
		segment_end(&segments[i], "exit");
	}
	const char *const names[] = {"h.100.0.0.ssr", "h.101.0.0.ssr", "h.102.0.0.ssr", "h.103.0.0.ssr"};
	load_all(segments, 4, names, NULL);
	assert_int_equal(model.processes_count, 4);
	assert_int_equal(model.processes[0].pid, 103);
	assert_int_equal(model.processes[1].pid, 102);
	assert_int_equal(model.processes[2].pid, 101);
	assert_int_equal(model.processes[3].pid, 100);
	model_release(&model);
	(void)state;
}

/* Behind its header, and in names that a forked child has, too: so they say whose they are. */
static void a_process_says_later_that_it_trains_and_which_rank_it_is(void **state)
{
	static const char trains[] = "trains\0process 101",
			  rank[] = "rank\0"
				   "1 of 2, process 101",
			  noise[] = "rank\0"
				    "one";
	struct segment_builder segments[2];
	for (uint32_t i = 0; i < 2; i++) {
		struct stepscope_segment_header header = tsc_header(101 + i, "one");
		header.role = STEPSCOPE_ROLE_WORKER;
		header.rank = -1;
		segment_begin_with(&segments[i], &header);
		segment_symbol_n(&segments[i], 20, STEPSCOPE_SYMBOL_META, trains, sizeof trains - 1);
		segment_symbol_n(&segments[i], 21, STEPSCOPE_SYMBOL_META, rank, sizeof rank - 1);
		segment_symbol_n(&segments[i], 22, STEPSCOPE_SYMBOL_META, noise, sizeof noise - 1);
		segment_end(&segments[i], "exit");
	}
	const char *const names[] = {"h.101.0.0.ssr", "h.102.0.0.ssr"};
	load_all(segments, 2, names, NULL);
	assert_int_equal(model.processes_count, 2);
	assert_int_equal(model.processes[0].pid, 101);
	assert_int_equal(model.processes[0].role, STEPSCOPE_ROLE_TRAINER);
	assert_int_equal(model.processes[0].rank, 1);
	assert_int_equal(model.processes[0].world_size, 2);
	assert_int_equal(model.processes[1].role, STEPSCOPE_ROLE_WORKER);
	assert_int_equal(model.processes[1].rank, -1);
	model_release(&model);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exec_brings_new_names_and_streams),
		cmocka_unit_test(processes_of_a_boot_share_one_clock),
		cmocka_unit_test(times_never_go_back_whatever_the_anchors_say),
		cmocka_unit_test(processes_come_in_order_of_role_and_rank),
		cmocka_unit_test(a_process_says_later_that_it_trains_and_which_rank_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
