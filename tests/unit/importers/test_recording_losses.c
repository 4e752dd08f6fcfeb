/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses in recordings made by hand: dropped events, holes, removed segments, missing names and ends, and files that are cut,
 * damaged or no recordings.
 */
#include "hand_recording.h"
#include "importers/importer.h"
#include "importers/recording/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t gap_depth(int32_t net, int32_t lowest)
{
	return (uint64_t)(uint32_t)net << 32 | (uint32_t)lowest;
}

static void dropped_events_leave_the_nesting_whole(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_step(&segment, MAIN, 10, STEPSCOPE_STEP_BEGIN, 1);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 30, STEPSCOPE_EVENT_BEGIN, OP);
	/* dropped from 35 on: end, end, begin, begin */
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_GAP, 0, 3, (uint64_t)4, gap_depth(0, -2), (uint64_t)35);
	on(&segment, 110, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 120, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_step(&segment, MAIN, 130, STEPSCOPE_STEP_END, 1);
	struct stepscope_drops drops = {{0}};
	drops.by_type[STEPSCOPE_EVENT_BEGIN] = 5;
	drops.by_type[STEPSCOPE_EVENT_END] = 2;
	segment_block(&segment, STEPSCOPE_BLOCK_DROPS, MAIN, &drops, sizeof drops);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 120, "step", 0, 0}, {20, 15, "layer", 1, SPAN_END_IS_LOST},
	            {30, 5, "matmul", 2, SPAN_END_IS_LOST}, {100, 20, "(dropped)", 1, SPAN_START_IS_LOST},
	            {100, 10, "(dropped)", 2, SPAN_START_IS_LOST});
	assert_int_equal(ledger_count(LEDGER_DROPPED), 7); /* totals win over gaps */
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
	(void)state;
}

static void a_dropped_end_of_step_is_seen_by_its_number(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_step(&segment, MAIN, 10, STEPSCOPE_STEP_BEGIN, 1);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_GAP, 0, 3, (uint64_t)2, gap_depth(0, 0), (uint64_t)35);
	on(&segment, 110, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 120, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_step(&segment, MAIN, 200, STEPSCOPE_STEP_END, 2);
	segment_step(&segment, MAIN, 210, STEPSCOPE_STEP_BEGIN, 3);
	segment_step(&segment, MAIN, 220, STEPSCOPE_STEP_END, 3);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.steps_count, 2);
	assert_true(model.steps[0].is_open);
	assert_int_equal(model.steps[0].end_ns, 35);
	assert_false(model.steps[1].is_open);
	assert_int_equal(ledger_count(LEDGER_DROPPED), 2);
	model_release(&model);
	(void)state;
}

static void rotation_is_bridged_by_the_coarse_copy(void **state)
{
	struct segment_builder segments[2];
	struct stepscope_segment_header header = {.pid = 4242,
	                                          .clock = STEPSCOPE_CLOCK_MONOTONIC,
	                                          .rank = -1,
	                                          .world_size = -1,
	                                          .flags = STEPSCOPE_SEGMENT_COARSE};
	segment_begin_with(&segments[0], &header);
	segment_stream(&segments[0], MAIN, 4242, "main");
	for (int n = 0; n < 4; n++) {
		segment_step(&segments[0], MAIN, 100 + 100 * (uint64_t)n, STEPSCOPE_STEP_BEGIN, n);
		segment_put(&segments[0], MAIN, 110 + 100 * (uint64_t)n, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_PHASE_FORWARD,
		            0);
		segment_put(&segments[0], MAIN, 180 + 100 * (uint64_t)n, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE, 0);
		segment_step(&segments[0], MAIN, 190 + 100 * (uint64_t)n, STEPSCOPE_STEP_END, n);
	}
	segment_end(&segments[0], "exit");
	header.flags = 0;
	header.segment = 5;
	header.first_tick = 250;
	segment_begin_with(&segments[1], &header);
	segment_stream(&segments[1], MAIN, 4242, "main");
	segment_symbol(&segments[1], OP, STEPSCOPE_SYMBOL_OP, "matmul");
	segment_skip_words(&segments[1], MAIN, 1000);
	/* begins inside phase forward of step 1 */
	segment_put(&segments[1], MAIN, 260, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
	segment_put(&segments[1], MAIN, 280, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE, 0);
	segment_step(&segments[1], MAIN, 290, STEPSCOPE_STEP_END, 1);
	for (uint64_t n = 2; n < 4; n++) {
		segment_step(&segments[1], MAIN, 100 + 100 * n, STEPSCOPE_STEP_BEGIN, (int64_t)n);
		segment_put(&segments[1], MAIN, 120 + 100 * n, STEPSCOPE_EVENT_BEGIN, OP, 0);
		segment_put(&segments[1], MAIN, 130 + 100 * n, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
		segment_step(&segments[1], MAIN, 190 + 100 * n, STEPSCOPE_STEP_END, (int64_t)n);
	}
	segment_end(&segments[1], "exit");
	const char *const names[] = {"n.4242.1.0.ssr", "n.4242.1.5.ssr"};
	load_all(segments, 2, names, NULL);
	CHECK_SPANS(0, {100, 90, "step", 0, 0}, {110, 70, "forward", 1, 0}, {200, 90, "step", 0, 0},
	            {210, 70, "forward", 1, 0}, {300, 90, "step", 0, 0}, {320, 10, "matmul", 1, 0},
	            {400, 90, "step", 0, 0}, {420, 10, "matmul", 1, 0});
	assert_int_equal(model.steps_count, 4);
	assert_false(model.steps[0].has_detail || model.steps[1].has_detail);
	assert_true(model.steps[2].has_detail && model.steps[3].has_detail);
	assert_int_equal(ledger_count(LEDGER_REMOVED), 1000);
	assert_int_equal(ledger_count(LEDGER_DAMAGED) + ledger_count(LEDGER_UNMATCHED_END), 0);
	assert_true(model.processes[0].is_closed);
	model_release(&model);
	(void)state;
}

static void a_coarse_copy_beside_all_segments_adds_nothing(void **state)
{
	struct segment_builder segments[2];
	begin(&segments[0]);
	segments[0].header.flags = 0;
	segment_step(&segments[0], MAIN, 10, STEPSCOPE_STEP_BEGIN, 0);
	segment_step(&segments[0], MAIN, 20, STEPSCOPE_STEP_END, 0);
	segment_end(&segments[0], "exit");
	struct stepscope_segment_header header = segments[0].header;
	header.flags = STEPSCOPE_SEGMENT_COARSE;
	header.segment = 1;
	segment_begin_with(&segments[1], &header);
	segment_stream(&segments[1], MAIN, 4242, "main");
	segment_step(&segments[1], MAIN, 10, STEPSCOPE_STEP_BEGIN, 0);
	segment_step(&segments[1], MAIN, 20, STEPSCOPE_STEP_END, 0);
	segment_end(&segments[1], "exit");
	const char *const names[] = {"n.4242.1.0.ssr", "n.4242.1.1.ssr"};
	load_all(segments, 2, names, NULL);
	assert_int_equal(model.steps_count, 1);
	assert_true(model.steps[0].has_detail);
	assert_int_equal(model.ledger_count, 0);
	model_release(&model);
	(void)state;
}

static void a_hole_in_a_stream_is_damage(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, OP);
	segment_skip_words(&segment, MAIN, 5);
	on(&segment, 100, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 110, STEPSCOPE_EVENT_BEGIN, OTHER_OP);
	on(&segment, 120, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 10, "layer", 0, SPAN_END_IS_LOST}, {20, 0, "matmul", 1, SPAN_END_IS_LOST},
	            {110, 10, "add", 0, 0});
	assert_int_equal(ledger_count(LEDGER_DAMAGED), 5);
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
	(void)state;
}

static void what_has_lost_its_name_is_counted(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 100, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 110, STEPSCOPE_EVENT_BEGIN, 4711);
	on(&segment, 120, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 130, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 140, STEPSCOPE_EVENT_MARK, 4712);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {100, 30, "matmul", 0, 0}, {110, 10, "(unknown)", 1, 0});
	assert_int_equal(ledger_count(LEDGER_DAMAGED), 2);
	model_release(&model);
	(void)state;
}

static void a_rescued_tail_is_told(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_flush(&segment, 0);
	on(&segment, 20, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_flush(&segment, 1);
	segment_end(&segment, NULL);
	load(&segment);
	CHECK_SPANS(0, {10, 10, "matmul", 0, 0});
	assert_int_equal(ledger_count(LEDGER_RESCUED), 1);
	assert_int_equal(ledger_count(LEDGER_MISSING_TAIL), 0);
	model_release(&model);
	(void)state;
}

static void make_rich_segment(struct segment_builder *segment)
{
	begin(segment);
	segment_track(segment, 3, 2, 0, 7, "stream 7");
	for (uint64_t n = 0; n < 3; n++) {
		uint64_t t = 1000 + 1000 * n;
		segment_step(segment, MAIN, t, STEPSCOPE_STEP_BEGIN, (int64_t)n);
		on(segment, t + 10, STEPSCOPE_EVENT_SWITCH, STEPSCOPE_PHASE_FORWARD);
		on(segment, t + 20, STEPSCOPE_EVENT_BEGIN, OP);
		segment_put(segment, MAIN, t + 20, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_SHAPE, 2,
		            (uint64_t)STEPSCOPE_ARG_SYMBOL, (uint64_t)SHAPE);
		segment_put(segment, MAIN, t + 20, STEPSCOPE_EVENT_LINK, 0, 1, n);
		on(segment, t + 50, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
		segment_put(segment, MAIN, t + 60, STEPSCOPE_EVENT_SPAN, KERNEL, 3, (uint64_t)3, t + 30, (uint64_t)10);
		segment_put(segment, MAIN, t + 60, STEPSCOPE_EVENT_LINK, 1, 1, n);
		segment_put(segment, MAIN, t + 70, STEPSCOPE_EVENT_GAP, 0, 3, (uint64_t)1, gap_depth(1, -1), t + 65);
		segment_put(segment, MAIN, t + 80, STEPSCOPE_EVENT_VALUE, LOSS, 1, bits(1));
		segment_put(segment, MAIN, t + 90, STEPSCOPE_EVENT_ALLOC, 2, 2, (uint64_t)0x1000, (uint64_t)64);
		segment_step(segment, MAIN, t + 100, STEPSCOPE_STEP_END, (int64_t)n);
		struct stepscope_anchor anchor = {t, (int64_t)t, (int64_t)t, (int64_t)t, 10, STEPSCOPE_CLOCK_MONOTONIC};
		segment_anchor(segment, &anchor);
	}
	segment_end(segment, "exit");
}

static void try_to_load(const void *data, uint64_t bytes)
{
	struct recording_bytes segment = {data, bytes, "n.4242.1.0.ssr"};
	struct error err;
	model_init(&model, 0);
	if (recording_load_memory(&segment, 1, NULL, &model, &err) == STATUS_OK)
		model_finish(&model);
	model_release(&model);
}

static void every_cut_and_many_flips_are_survived(void **state)
{
	struct segment_builder segment;
	make_rich_segment(&segment);
	uint64_t length = segment.bytes.length;
	for (uint64_t cut = 0; cut <= length; cut++)
		try_to_load(segment.bytes.data, cut);
	uint32_t random = 1;
	for (int i = 0; i < 3000; i++) {
		random = random * 1664525 + 1013904223;
		uint8_t *byte = (uint8_t *)segment.bytes.data + (random >> 8) % length;
		*byte ^= (uint8_t)(1u << (random & 7));
		try_to_load(segment.bytes.data, length);
		*byte ^= (uint8_t)(1u << (random & 7));
	}
	segment_release(&segment);
	(void)state;
}

static void a_damaged_block_costs_only_itself(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_flush(&segment, 0);
	size_t damaged = segment.bytes.length + 70;
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, OTHER_OP);
	segment_flush(&segment, 0);
	on(&segment, 30, STEPSCOPE_EVENT_BEGIN, RANGE);
	segment_flush(&segment, 0);
	segment.bytes.data[damaged] ^= 1;
	buffer_add(&segment.bytes, "SBLK and then the disk was full", 31);
	load(&segment);
	assert_true(ledger_count(LEDGER_DAMAGED) > 0);
	assert_int_equal(ledger_count(LEDGER_TORN_TAIL), 31);
	assert_true(model.ledger_count > 0);
	for (uint32_t i = 0; i < model.ledger_count; i++)
		if (model.ledger[i].has_first_offset && model.ledger[i].kind == LEDGER_DAMAGED)
			assert_int_equal(model.ledger[i].first_offset, damaged - 70);
	CHECK_SPANS(0, {10, 0, "matmul", 0, SPAN_END_IS_LOST}, {30, 0, "layer", 0, SPAN_IS_OPEN});
	model_release(&model);
	(void)state;
}

static void write_file(const char *folder, const char *name, const void *data, size_t bytes)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	fclose(file);
}

static void remove_file(const char *folder, const char *name)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(unlink(path), 0);
}

static void a_directory_is_scanned(void **state)
{
	char folder[] = "/tmp/test_recording.XXXXXX", path[512];
	struct error err;
	assert_non_null(mkdtemp(folder));
	model_init(&model, 0);
	assert_int_equal(import_path(folder, NULL, &model, &err), STATUS_INPUT);
	assert_non_null(strstr(err.text, "looked for *.ssr"));
	write_file(folder, "a.pt.trace.json", "{}", 2);
	assert_int_equal(import_path(folder, NULL, &model, &err), STATUS_INPUT);
	assert_non_null(strstr(err.text, "no readable trace"));
	write_file(folder, "broken.ssr", "no segment", 10);
	assert_int_equal(import_path(folder, NULL, &model, &err), STATUS_INPUT);
	assert_non_null(strstr(err.text, "broken.ssr"));
	model_release(&model);

	struct segment_builder segment;
	make_rich_segment(&segment);
	write_file(folder, "node.4242.5242.0.ssr", segment.bytes.data, segment.bytes.length);
	segment_release(&segment);
	model_init(&model, 0);
	assert_int_equal(import_path(folder, NULL, &model, &err), STATUS_OK);
	assert_int_equal(model.steps_count, 3);
	assert_string_equal(model_text(&model, model.processes[0].host), "node");
	assert_int_equal(ledger_count(LEDGER_DAMAGED), 10); /* broken.ssr was left out, and this says so */
	model_release(&model);
	snprintf(path, sizeof path, "%s/node.4242.5242.0.ssr", folder);
	model_init(&model, 0);
	assert_int_equal(import_path(path, NULL, &model, &err), STATUS_OK);
	assert_int_equal(model.steps_count, 3);
	model_release(&model);
	model_init(&model, 0);
	assert_int_equal(import_path("/nowhere/at/all", NULL, &model, &err), STATUS_INPUT);
	assert_int_equal(import_path("/proc/self/cmdline", NULL, &model, &err), STATUS_INPUT);
	assert_non_null(strstr(err.text, "is not a recording"));
	model_release(&model);
	remove_file(folder, "a.pt.trace.json");
	remove_file(folder, "broken.ssr");
	remove_file(folder, "node.4242.5242.0.ssr");
	assert_int_equal(rmdir(folder), 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dropped_events_leave_the_nesting_whole),
		cmocka_unit_test(a_dropped_end_of_step_is_seen_by_its_number),
		cmocka_unit_test(rotation_is_bridged_by_the_coarse_copy),
		cmocka_unit_test(a_coarse_copy_beside_all_segments_adds_nothing),
		cmocka_unit_test(a_hole_in_a_stream_is_damage),
		cmocka_unit_test(what_has_lost_its_name_is_counted),
		cmocka_unit_test(a_rescued_tail_is_told),
		cmocka_unit_test(every_cut_and_many_flips_are_survived),
		cmocka_unit_test(a_damaged_block_costs_only_itself),
		cmocka_unit_test(a_directory_is_scanned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
