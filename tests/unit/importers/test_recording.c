/* SPDX-License-Identifier: Apache-2.0
 *
 * The importer 'recording' on segments made by hand: every rule of format.h that turns events into a model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stepscope/stepscope.h>
#include <sys/stat.h>
#include <unistd.h>

#include "importers/importer.h"
#include "importers/recording/recording.h"
#include "segment_builder.h"

#define MAIN 1
#define OP 20
#define RANGE 21
#define LOSS 22
#define QUEUE 23
#define SAVED 24
#define SHAPE 25
#define KERNEL 26
#define OTHER_OP 27

static struct model model;

static void begin(struct segment_builder *segment)
{
	segment_begin(segment, 4242, 0);
	segment_stream(segment, MAIN, 4242, "main");
	segment_symbol(segment, OP, STEPSCOPE_SYMBOL_OP, "matmul");
	segment_symbol(segment, RANGE, STEPSCOPE_SYMBOL_RANGE, "layer");
	segment_symbol(segment, LOSS, STEPSCOPE_SYMBOL_METRIC, "loss");
	segment_symbol(segment, QUEUE, STEPSCOPE_SYMBOL_COUNTER, "queue");
	segment_symbol(segment, SAVED, STEPSCOPE_SYMBOL_MARK, "saved");
	segment_symbol(segment, SHAPE, STEPSCOPE_SYMBOL_TEXT, "[2, 3]");
	segment_symbol(segment, KERNEL, STEPSCOPE_SYMBOL_KERNEL, "gemm");
	segment_symbol(segment, OTHER_OP, STEPSCOPE_SYMBOL_OP, "add");
}

static void on(struct segment_builder *segment, uint64_t tick, enum stepscope_event type, uint32_t id)
{
	segment_put(segment, MAIN, tick, type, id, 0);
}

/* Loads into `model`, which is finished; the segments are released. */
static void load_all(struct segment_builder *segments, uint32_t count, const char *const *names,
                     const struct model_filter *filter)
{
	struct recording_bytes bytes[8];
	struct error err = {.status = STATUS_OK};
	for (uint32_t i = 0; i < count; i++)
		bytes[i] = (struct recording_bytes){segments[i].bytes.data, segments[i].bytes.length, names[i]};
	model_init(&model, 0);
	assert_int_equal(recording_load_memory(bytes, count, filter, &model, &err), STATUS_OK);
	model_finish(&model);
	for (uint32_t i = 0; i < count; i++)
		segment_release(&segments[i]);
}

static void load(struct segment_builder *segment)
{
	const char *name = "node.7.4242.5242.0.ssr";
	load_all(segment, 1, &name, NULL);
}

struct expected {
	int64_t start_ns, dur_ns;
	const char *name;
	uint16_t depth;
	uint8_t flags;
};

static void check_spans(uint32_t track, const struct expected *expected, uint32_t count)
{
	const struct track *spans = model.tracks[track];
	assert_int_equal(spans->span_count, count);
	for (uint32_t row = 0; row < count; row++) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(spans, row, &i);
		assert_string_equal(model_text(&model, chunk->name[i]), expected[row].name);
		assert_int_equal(chunk->start_ns[i], expected[row].start_ns);
		assert_int_equal(chunk->dur_ns[i], expected[row].dur_ns);
		assert_int_equal(chunk->depth[i], expected[row].depth);
		assert_int_equal(chunk->flags[i], expected[row].flags);
	}
}
#define CHECK_SPANS(track, ...)                                                                                        \
	do {                                                                                                           \
		const struct expected expected_[] = {__VA_ARGS__};                                                     \
		check_spans(track, expected_, sizeof expected_ / sizeof *expected_);                                   \
	} while (0)

static uint64_t ledger_count(enum ledger_kind kind)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < model.ledger_count; i++)
		count += model.ledger[i].kind == kind ? model.ledger[i].count : 0;
	return count;
}

static uint64_t bits(double value)
{
	uint64_t result;
	memcpy(&result, &value, sizeof result);
	return result;
}

/* So many that are open in it go on. */
static void end_beneath(struct segment_builder *segment, uint64_t tick, uint64_t above)
{
	segment_put(segment, MAIN, tick, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, 1, above);
}

static void a_range_that_ends_in_another_one_is_cut(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 30, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 40, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 50, STEPSCOPE_EVENT_BEGIN, OP);
	end_beneath(&segment, 60, 2);
	on(&segment, 70, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 80, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 10, "layer", 0, SPAN_IS_CLIPPED}, {20, 60, "layer", 0, 0}, {30, 10, "matmul", 1, 0},
	            {50, 20, "matmul", 1, 0});
	assert_int_equal(ledger_count(LEDGER_OTHER), 1);
	assert_non_null(strstr(model_text(&model, model.ledger[0].text), "by 40 ns together"));
	assert_int_equal(model.args_count, 1);
	assert_int_equal(model.args[0].i64, 40);
	model_release(&model);
}

/* As where PyTorch's dispatcher calls a mode, which begins a range: that is not worth a word. */
static void a_range_that_outlives_its_operator(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 5, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_PHASE_FORWARD);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_BUILTIN_MICRO_BATCH); /* does not count */
	on(&segment, 30, STEPSCOPE_EVENT_BEGIN, RANGE);
	end_beneath(&segment, 40, 1);
	on(&segment, 50, STEPSCOPE_EVENT_BEGIN, OTHER_OP);
	end_beneath(&segment, 60, 1);
	on(&segment, 70, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 80, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
	on(&segment, 90, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {5, 85, "forward", 0, 0}, {10, 10, "matmul", 1, SPAN_IS_CLIPPED}, {20, 60, "micro-batch", 1, 0},
	            {30, 20, "layer", 2, SPAN_IS_CLIPPED}, {50, 20, "add", 2, 0});
	assert_int_equal(ledger_count(LEDGER_OTHER) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* In another thread, which told when; nothing began in it. */
static void an_end_that_is_told_late(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 90, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, 2, (uint64_t)0, (uint64_t)35);
	on(&segment, 90, STEPSCOPE_EVENT_BEGIN, OTHER_OP);
	on(&segment, 95, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_put(&segment, MAIN, 99, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, 2, (uint64_t)0, (uint64_t)5);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 85, "layer", 0, SPAN_ENDS_ELSEWHERE}, {20, 15, "matmul", 1, SPAN_ENDS_ELSEWHERE},
	            {90, 5, "add", 1, 0});
	/* the range is as long as what began in it, and it is known when it ended */
	assert_int_equal(model.args_count, 1);
	assert_int_equal(model.args[0].row, 0);
	assert_int_equal(model.args[0].i64, -85); /* at once, as an end before the begin is none */
	model_release(&model);
}

/* A function of TorchScript goes on in another thread, and the range around the call is over before it. */
static void what_an_asynchronous_operator_cut_is_known(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, OP);
	end_beneath(&segment, 50, 1);
	segment_put(&segment, MAIN, 90, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, 2, (uint64_t)0, (uint64_t)60);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 10, "layer", 0, SPAN_IS_CLIPPED}, {20, 40, "matmul", 0, SPAN_ENDS_ELSEWHERE});
	assert_int_equal(model.args_count, 1);
	assert_int_equal(model.args[0].row, 0);
	assert_int_equal(model.args[0].i64, 30);
	assert_int_equal(ledger_count(LEDGER_OTHER), 0);
	model_release(&model);
}

/* Nobody writes them. */
static void ends_beneath_what_is_not_there(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	end_beneath(&segment, 1, 0);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	end_beneath(&segment, 20, 1);
	end_beneath(&segment, 30, UINT64_MAX);
	on(&segment, 40, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH); /* without a word: the innermost */
	for (int i = 0; i < 20000; i++)
		on(&segment, 50, STEPSCOPE_EVENT_BEGIN, RANGE);
	for (uint64_t i = 0; i < 20000; i++)
		end_beneath(&segment, 60 + i, i);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.tracks[0]->chunks[0]->dur_ns[0], 30);
	assert_true(ledger_count(LEDGER_UNMATCHED_END) > 3);
	model_release(&model);
}

static void a_step_has_phases_ops_and_numbers(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_step(&segment, MAIN, 1000, STEPSCOPE_STEP_BEGIN, 7);
	on(&segment, 1010, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_PHASE_FORWARD);
	on(&segment, 1020, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 1050, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 1100, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
	segment_step(&segment, MAIN, 1110, STEPSCOPE_STEP_TOKENS, 512);
	segment_step(&segment, MAIN, 1111, STEPSCOPE_STEP_TOKENS, 512);
	segment_put(&segment, MAIN, 1120, STEPSCOPE_EVENT_VALUE, LOSS, 1, bits(2.5));
	segment_put(&segment, MAIN, 1130, STEPSCOPE_EVENT_VALUE, QUEUE, 1, bits(3));
	on(&segment, 1140, STEPSCOPE_EVENT_MARK, SAVED);
	segment_step(&segment, MAIN, 1200, STEPSCOPE_STEP_END, 7);
	segment_flush(&segment, 0);
	segment_symbol(&segment, 28, STEPSCOPE_SYMBOL_META, "model");
	on(&segment, 1200, STEPSCOPE_EVENT_MARK, 28); /* a block of facts only is no hole */
	segment_flush(&segment, 0);
	on(&segment, 1200, STEPSCOPE_EVENT_MARK, SAVED);
	segment_meta(&segment, "program", "./train");
	segment_meta(&segment, "cost.event_ns", "9.5");
	segment_end(&segment, "exit");
	load(&segment);

	CHECK_SPANS(0, {1000, 200, "step", 0, 0}, {1010, 90, "forward", 1, 0}, {1020, 30, "matmul", 2, 0});
	const struct span_chunk *chunk = model.tracks[0]->chunks[0];
	assert_int_equal(chunk->kind[0], SPAN_STEP);
	assert_int_equal(chunk->kind[2], SPAN_OP);
	assert_int_equal(chunk->phase[0], 0);
	assert_int_equal(chunk->phase[2], STEPSCOPE_PHASE_FORWARD);
	assert_int_equal(chunk->step[2], 0);
	assert_int_equal(model.steps_count, 1);
	const struct model_step *step = &model.steps[0];
	assert_int_equal(step->number, 7);
	assert_int_equal(step->end_ns, 1200);
	assert_int_equal(step->tokens, 1024);
	assert_true(step->has_tokens);
	assert_false(step->has_samples);
	assert_false(step->is_open);
	assert_true(step->has_detail);
	assert_int_equal(model.series_count, 2);
	assert_true(model.series[0]->is_metric);
	assert_true(model.series[0]->value[0] == 2.5);
	assert_false(model.series[1]->is_metric);
	assert_int_equal(model.marks_count, 2);
	assert_int_equal(model.marks[0].time_ns, 1140);
	assert_string_equal(model_meta(&model, 0, "model"), "");
	assert_int_equal(model.ledger_count, 0);
	const struct process *process = &model.processes[0];
	assert_string_equal(model_text(&model, process->host), "node.7");
	assert_string_equal(model_text(&model, process->name), "./train");
	assert_string_equal(model_text(&model, process->end_reason), "exit");
	assert_true(process->is_closed);
	assert_true(process->has_cost);
	assert_true(process->cost_per_event_ns == 9.5);
	assert_int_equal(process->pid, 4242);
	assert_int_equal(process->first_ns, 1000);
	assert_int_equal(process->last_ns, 1200);
	assert_true(model.tracks[0]->is_main);
	assert_string_equal(model_text(&model, model.tracks[0]->name), "main");
	model_release(&model);
	(void)state;
}

static void an_end_of_a_step_says_what_its_thread_used(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	for (uint64_t n = 0; n < 4; n++) {
		segment_step(&segment, MAIN, 1000 + 1000 * n, STEPSCOPE_STEP_BEGIN, n);
		if (n == 0)
			segment_step(&segment, MAIN, 1500, STEPSCOPE_STEP_END, 0);
		else /* 300 of 500, with 2 waits, by an older version; a little more than the duration; no number that can be */
			segment_put(&segment, MAIN, 1500 + 1000 * n, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_END,
			            n == 1 ? 4 : 5, n, (uint64_t)0,
			            n == 1   ? (uint64_t)300
			            : n == 2 ? (uint64_t)504
			                     : UINT64_MAX,
			            (uint64_t)2, (uint64_t)700);
	}
	segment_meta(&segment, "cost.event_ns", "9.5");
	segment_meta(&segment, "cost.step_cpu_ns", "1400");
	load(&segment);
	assert_int_equal(model.steps_count, 4);
	assert_false(model.steps[0].has_cpu);
	assert_true(model.steps[1].has_cpu && model.steps[2].has_cpu);
	assert_int_equal(model.steps[1].cpu_ns, 300);
	assert_int_equal(model.steps[1].waits, 2);
	assert_int_equal(model.steps[2].cpu_ns, 500);
	assert_false(model.steps[3].has_cpu);
	assert_false(model.steps[1].has_page_faults || model.steps[3].has_page_faults);
	assert_true(model.steps[2].has_page_faults);
	assert_int_equal(model.steps[2].page_faults, 700);
	assert_true(model.processes[0].cost_per_step_ns == 1400);
	model_release(&model);
	(void)state;
}

static void an_end_of_detail_does_not_close_a_phase(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_PHASE_DATA);
	on(&segment, 30, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL); /* ignored */
	on(&segment, 40, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 50, STEPSCOPE_EVENT_BEGIN, OTHER_OP);
	on(&segment, 60, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE); /* closes all three */
	on(&segment, 70, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE); /* ignored */
	on(&segment, 80, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 90, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL); /* ignored */
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 70, "layer", 0, 0}, {20, 40, "data", 1, 0}, {40, 20, "matmul", 2, SPAN_END_IS_LOST},
	            {50, 10, "add", 3, SPAN_END_IS_LOST});
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 3);
	model_release(&model);
	(void)state;
}

static void a_switch_ends_its_class_and_begins(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_step(&segment, MAIN, 1, STEPSCOPE_STEP_BEGIN, 0);
	on(&segment, 5, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_BUILTIN_MICRO_BATCH);
	on(&segment, 10, STEPSCOPE_EVENT_SWITCH, STEPSCOPE_PHASE_DATA); /* must not end the micro-batch */
	on(&segment, 20, STEPSCOPE_EVENT_SWITCH, OP);                   /* nothing of its class is open */
	on(&segment, 30, STEPSCOPE_EVENT_SWITCH, OTHER_OP);
	on(&segment, 40, STEPSCOPE_EVENT_SWITCH, STEPSCOPE_PHASE_FORWARD);
	on(&segment, 50, STEPSCOPE_EVENT_SWITCH, STEPSCOPE_BUILTIN_MICRO_BATCH);
	on(&segment, 60, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
	segment_step(&segment, MAIN, 70, STEPSCOPE_STEP_END, 0);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {1, 69, "step", 0, 0}, {5, 45, "micro-batch", 1, 0}, {10, 30, "data", 2, 0},
	            {20, 10, "matmul", 3, 0}, {30, 10, "add", 3, SPAN_END_IS_LOST},
	            {40, 10, "forward", 2, SPAN_END_IS_LOST}, {50, 10, "micro-batch", 1, 0});
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
	(void)state;
}

static void a_step_begin_says_that_the_end_before_it_was_lost(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 5, STEPSCOPE_EVENT_BEGIN, RANGE);
	segment_step(&segment, MAIN, 10, STEPSCOPE_STEP_BEGIN, 1);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, OP);
	segment_step(&segment, MAIN, 30, STEPSCOPE_STEP_BEGIN, 2);
	segment_step(&segment, MAIN, 35, STEPSCOPE_STEP_SAMPLES, 8);
	on(&segment, 40, STEPSCOPE_EVENT_BEGIN, OP);
	segment_end(&segment, NULL);
	load(&segment);
	CHECK_SPANS(0, {5, 35, "layer", 0, SPAN_IS_OPEN}, {10, 20, "step", 1, SPAN_END_IS_LOST},
	            {20, 10, "matmul", 2, SPAN_END_IS_LOST}, {30, 10, "step", 1, SPAN_IS_OPEN},
	            {40, 0, "matmul", 2, SPAN_IS_OPEN});
	assert_int_equal(model.steps_count, 2);
	assert_true(model.steps[0].is_open); /* it ended somewhere between 20 and 30 */
	assert_int_equal(model.steps[0].end_ns, 20);
	assert_true(model.steps[1].is_open);
	assert_int_equal(model.steps[1].end_ns, 40);
	assert_int_equal(model.steps[1].samples, 8);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS), 3);
	assert_int_equal(ledger_count(LEDGER_MISSING_TAIL), 1);
	assert_false(model.processes[0].is_closed);
	model_release(&model);
	(void)state;
}

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

static void what_was_captured_is_known_per_step(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	const uint64_t coarse = STEPSCOPE_ACTIVE_STEPS,
		       full = coarse | STEPSCOPE_ACTIVE_DETAIL | STEPSCOPE_ACTIVE_SHAPES | STEPSCOPE_ACTIVE_MEMORY;
	segment_put(&segment, MAIN, 1, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)STEPSCOPE_CAPTURE_NONE, coarse);
	segment_step(&segment, MAIN, 10, STEPSCOPE_STEP_BEGIN, 0);
	segment_step(&segment, MAIN, 20, STEPSCOPE_STEP_END, 0);
	segment_put(&segment, MAIN, 20, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)STEPSCOPE_CAPTURE_RECORD, full);
	segment_step(&segment, MAIN, 30, STEPSCOPE_STEP_BEGIN, 1);
	segment_step(&segment, MAIN, 40, STEPSCOPE_STEP_END, 1);
	segment_step(&segment, MAIN, 50, STEPSCOPE_STEP_BEGIN, 2);
	segment_put(&segment, MAIN, 55, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)STEPSCOPE_CAPTURE_NONE, coarse);
	segment_step(&segment, MAIN, 60, STEPSCOPE_STEP_END, 2);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.steps[0].capture, STEPSCOPE_CAPTURE_NONE);
	assert_false(model.steps[0].has_detail);
	assert_int_equal(model.steps[1].capture, STEPSCOPE_CAPTURE_RECORD);
	assert_true(model.steps[1].has_detail && model.steps[1].has_shapes && model.steps[1].has_memory);
	assert_int_equal(model.steps[2].capture, STEPSCOPE_CAPTURE_RECORD);
	assert_false(model.steps[2].has_detail); /* not in all of it */
	model_release(&model);
	(void)state;
}

/* One thread says when operations are recorded; another one's range goes on over that, its end is never recorded. */
static void ranges_of_other_threads_end_with_the_recorded_stretch(void **state)
{
	struct segment_builder segment;
	const uint64_t coarse = STEPSCOPE_ACTIVE_STEPS, full = coarse | STEPSCOPE_ACTIVE_DETAIL;
	const uint32_t other = MAIN + 1;
	begin(&segment);
	segment_stream(&segment, other, 77, "loader");
	/* the loader's events stand first in the file */
	segment_put(&segment, other, 110, STEPSCOPE_EVENT_BEGIN, OP, 0);
	segment_put(&segment, other, 310, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
	segment_put(&segment, other, 320, STEPSCOPE_EVENT_BEGIN, OP, 0);
	segment_put(&segment, other, 330, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)STEPSCOPE_CAPTURE_RECORD, full);
	segment_put(&segment, MAIN, 200, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)STEPSCOPE_CAPTURE_NONE, coarse);
	segment_put(&segment, MAIN, 300, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)STEPSCOPE_CAPTURE_RECORD, full);
	segment_end(&segment, "exit");
	load(&segment);
	const struct track *track = NULL;
	for (uint32_t i = 0; i < model.tracks_count; i++)
		if (model.tracks[i]->tid == 77)
			track = model.tracks[i];
	assert_non_null(track);
	assert_int_equal(track->span_count, 2);
	const struct span_chunk *spans = track->chunks[0];
	assert_int_equal(spans->dur_ns[0], 90);
	assert_int_equal(spans->flags[0], SPAN_IS_CUT);
	assert_int_equal(spans->dur_ns[1], 10);
	assert_int_equal(spans->flags[1], 0);
	assert_int_equal(spans->parent[1], MODEL_NONE);
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 0);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS), 0);
	model_release(&model);
	(void)state;
}

#define COMPILE 30
#define GARBAGE 31

/* What happens rarely has its end also where no operations are recorded any more, and so has what lies in it. */
static void what_is_rare_goes_on_without_detail(void **state)
{
	struct segment_builder segment;
	const uint64_t full = STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL;
	const uint64_t rare = STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_RARE;
	const uint32_t other = MAIN + 1;
	begin(&segment);
	segment_stream(&segment, other, 77, "compiler");
	segment_symbol(&segment, COMPILE, STEPSCOPE_SYMBOL_RANGE, "torch.compile");
	segment_symbol(&segment, GARBAGE, STEPSCOPE_SYMBOL_RANGE, "garbage collection 2");
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)STEPSCOPE_CAPTURE_RECORD, full);
	segment_put(&segment, MAIN, 110, STEPSCOPE_EVENT_BEGIN, OP, 0);
	segment_put(&segment, other, 110, STEPSCOPE_EVENT_BEGIN, COMPILE, 0);
	segment_put(&segment, other, 120, STEPSCOPE_EVENT_BEGIN, OP, 0);
	segment_put(&segment, MAIN, 200, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)STEPSCOPE_CAPTURE_RECORD, rare);
	segment_put(&segment, other, 210, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
	segment_put(&segment, other, 220, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
	segment_put(&segment, MAIN, 230, STEPSCOPE_EVENT_BEGIN, GARBAGE, 0);
	segment_put(&segment, MAIN, 240, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
	segment_put(&segment, MAIN, 250, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0); /* of the operation */
	segment_step(&segment, MAIN, 260, STEPSCOPE_STEP_BEGIN, 0);
	segment_step(&segment, MAIN, 270, STEPSCOPE_STEP_END, 0);
	segment_end(&segment, "exit");
	load(&segment);
	const struct span_chunk *main = NULL, *compiler = NULL;
	for (uint32_t i = 0; i < model.tracks_count; i++)
		*(model.tracks[i]->tid == 77 ? &compiler : &main) = model.tracks[i]->chunks[0];
	assert_int_equal(compiler->count, 2);
	assert_int_equal(compiler->dur_ns[0], 110);
	assert_int_equal(compiler->dur_ns[1], 90);
	assert_int_equal(compiler->flags[0] | compiler->flags[1], 0);
	assert_int_equal(main->dur_ns[0], 90);
	assert_int_equal(main->flags[0], SPAN_IS_CUT);
	assert_int_equal(main->dur_ns[1], 10);
	assert_int_equal(main->flags[1], 0);
	assert_int_equal(main->parent[1], MODEL_NONE);
	assert_true(model.steps[0].has_rare && !model.steps[0].has_detail);
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 0);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS), 0);
	model_release(&model);
	(void)state;
}

static void arguments_belong_to_the_span_before(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 10, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_SHAPE, 2,
	            (uint64_t)STEPSCOPE_ARG_SYMBOL, (uint64_t)SHAPE);
	segment_put(&segment, MAIN, 10, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_FLOPS, 2,
	            (uint64_t)STEPSCOPE_ARG_F64, bits(1e9));
	segment_put(&segment, MAIN, 10, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_DTYPE, 2,
	            (uint64_t)STEPSCOPE_ARG_SYMBOL, (uint64_t)SAVED);
	on(&segment, 20, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 30, STEPSCOPE_EVENT_MARK, SAVED);
	segment_put(&segment, MAIN, 30, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_FLOPS, 2,
	            (uint64_t)STEPSCOPE_ARG_F64, bits(7));
	segment_end(&segment, "exit");
	load(&segment);
	assert_string_equal(model_text(&model, model.tracks[0]->chunks[0]->shape[0]), "[2, 3]");
	assert_int_equal(model.args_count, 2);
	assert_string_equal(model_text(&model, model.args[0].key), "flops");
	assert_true(model.args[0].f64 == 1e9);
	assert_string_equal(model_text(&model, model.args[1].text), "saved");
	model_release(&model);
	(void)state;
}

static void a_begin_carries_its_sequence_and_inputs(void **state)
{
	enum {
		INPUTS = 60
	};
	struct segment_builder segment;
	begin(&segment);
	segment_symbol(&segment, INPUTS, STEPSCOPE_SYMBOL_INPUTS, "[2, 3] []\nmore");
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 20, STEPSCOPE_EVENT_BEGIN, OP, 1, (uint64_t)5 << 48 | 99);
	segment_put(&segment, MAIN, 30, STEPSCOPE_EVENT_BEGIN, OP, 2, UINT64_MAX, (uint64_t)INPUTS);
	segment_put(&segment, MAIN, 40, STEPSCOPE_EVENT_BEGIN, OP, 2, (uint64_t)100, (uint64_t)SHAPE);
	segment_end(&segment, "exit");
	load(&segment);
	const struct span_chunk *chunk = model.tracks[0]->chunks[0];
	assert_true(span_sequence(chunk, 0) == STEPSCOPE_NO_SEQUENCE);
	assert_true(span_sequence(chunk, 1) == ((uint64_t)5 << 48 | 99));
	assert_true(span_sequence(chunk, 2) == STEPSCOPE_NO_SEQUENCE);
	assert_true(span_sequence(chunk, 3) == 100);
	assert_string_equal(model_text(&model, span_inputs(chunk, 2)), "[2, 3] []\nmore");
	assert_string_equal(model_text(&model, chunk->shape[2]), "[2, 3] []");
	assert_int_equal(span_inputs(chunk, 1), 0);
	assert_int_equal(span_inputs(chunk, 3), 0); /* not of that kind */
	model_release(&model);
	(void)state;
}

/* A node that PyTorch's thread `thread` made the operator of: number is the sequence number. */
#define WORD(thread, number) ((uint64_t)(thread) << 48 | (uint64_t)(number))
#define NODE 61

static void check_link(uint32_t link, uint32_t from_track, uint32_t from_row, uint32_t to_track, uint32_t to_row)
{
	assert_int_equal(model.links[link].kind, STEPSCOPE_LINK_BACKWARD);
	assert_int_equal(model.links[link].from_track, from_track);
	assert_int_equal(model.links[link].from_row, from_row);
	assert_int_equal(model.links[link].to_track, to_track);
	assert_int_equal(model.links[link].to_row, to_row);
}

static void put_word(struct segment_builder *segment, uint32_t stream, uint64_t tick, uint32_t id, uint64_t word)
{
	segment_put(segment, stream, tick, STEPSCOPE_EVENT_BEGIN, id, 1, word);
	segment_put(segment, stream, tick + 1, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
}

static void nodes_are_linked_to_the_newest_operator_of_their_number(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_stream(&segment, 2, 4300, "autograd");
	segment_symbol(&segment, NODE, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	/* the other thread's block comes first: its node (row 0) is of an operator of the first thread (row 3) */
	segment_put(&segment, 2, 5, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1, (uint64_t)2);
	put_word(&segment, 2, 100, NODE, WORD(1, 8));
	put_word(&segment, 2, 110, OP, WORD(0, 7)); /* of this thread: another number 7 */
	segment_put(&segment, MAIN, 6, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1, (uint64_t)1);
	put_word(&segment, MAIN, 10, OP, WORD(0, 7));
	put_word(&segment, MAIN, 20, OTHER_OP, WORD(0, 7)); /* nested or later: it made the node */
	put_word(&segment, MAIN, 30, NODE, WORD(1, 7));     /* row 2 */
	put_word(&segment, MAIN, 40, OP, WORD(0, 8));
	put_word(&segment, MAIN, 50, NODE, WORD(1, 7)); /* the same graph once more */
	put_word(&segment, MAIN, 60, NODE, WORD(1, 6)); /* before the recording */
	put_word(&segment, MAIN, 70, NODE, WORD(9, 7)); /* of a thread that nobody knows */
	put_word(&segment, MAIN, 80, NODE, WORD(0, 7)); /* of no forward */
	segment_end(&segment, "exit");
	load(&segment);
	uint32_t main = model.tracks[0]->is_main ? 0 : 1;
	assert_int_equal(model.tracks[main]->torch_thread, 1);
	assert_int_equal(model.links_count, 3);
	check_link(0, main, 1, main, 2);
	check_link(1, main, 1, main, 4);
	check_link(2, main, 3, 1 - main, 0);
	model_release(&model);
	(void)state;
}

static void links_need_nothing_that_lies_before_the_steps_that_are_loaded(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_stream(&segment, 2, 4300, "autograd");
	segment_stream(&segment, 3, 4301, "not seen again");
	segment_symbol(&segment, NODE, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	for (uint32_t stream = 1; stream <= 3; stream++) /* once, at the beginning */
		segment_put(&segment, stream, 5 + stream, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1,
		            (uint64_t)stream);
	for (uint64_t n = 0; n < 4; n++) {
		segment_step(&segment, MAIN, 100 + 100 * n, STEPSCOPE_STEP_BEGIN, (int64_t)n);
		put_word(&segment, MAIN, 110 + 100 * n, OP, WORD(0, 7 + 2 * n));
		put_word(&segment, MAIN, 120 + 100 * n, OTHER_OP, WORD(0, 8 + 2 * n));
		put_word(&segment, MAIN, 130 + 100 * n, NODE, WORD(1, 8 + 2 * n));
		put_word(&segment, 2, 140 + 100 * n, NODE, WORD(1, 7 + 2 * n));
		segment_step(&segment, MAIN, 190 + 100 * n, STEPSCOPE_STEP_END, (int64_t)n);
	}
	segment_end(&segment, "exit");
	const struct model_filter filter = {.has_steps = true, .first_step = 2, .last_step = 2};
	const char *name = "n.4242.1.0.ssr";
	load_all(&segment, 1, &name, &filter);
	uint32_t main = model.tracks[0]->is_main ? 0 : 1;
	assert_int_equal(model.tracks_count, 2);
	assert_int_equal(model.tracks[main]->torch_thread, 1);
	assert_int_equal(model.tracks[1 - main]->torch_thread, 2);
	assert_int_equal(model.links_count, 2);
	check_link(0, main, 2, main, 3); /* row 0 is the step */
	check_link(1, main, 1, 1 - main, 0);
	model_release(&model);
	(void)state;
}

static void operators_without_backward_do_not_fill_the_memory(void **state)
{
	enum {
		OPERATORS = 300000,
		KEPT = 1 << 18
	};
	struct segment_builder segment;
	begin(&segment);
	segment_symbol(&segment, NODE, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	segment_put(&segment, MAIN, 6, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1, (uint64_t)1);
	for (uint64_t i = 0; i < OPERATORS; i++)
		put_word(&segment, MAIN, 10 + 2 * i, OP, WORD(0, i));
	put_word(&segment, MAIN, 20 + 2 * OPERATORS, NODE, WORD(1, OPERATORS - KEPT));
	put_word(&segment, MAIN, 30 + 2 * OPERATORS, NODE, WORD(1, OPERATORS - KEPT - 1));
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.links_count, 1);
	check_link(0, 0, OPERATORS - KEPT, 0, OPERATORS);
	assert_int_equal(ledger_count(LEDGER_OTHER), 1);
	model_release(&model);
	(void)state;
}

static void the_engine_around_a_node_has_its_number(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_symbol(&segment, NODE, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	segment_symbol(&segment, 62, STEPSCOPE_SYMBOL_OP, "autograd::engine::evaluate_function: MmBackward0");
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, 62);
	put_word(&segment, MAIN, 20, NODE, WORD(1, 7));
	segment_end(&segment, "exit");
	load(&segment);
	assert_true(span_sequence(model.tracks[0]->chunks[0], 0) == WORD(1, 7));
	model_release(&model);
	(void)state;
}

static void complete_spans_are_sorted_and_linked(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_track(&segment, 3, 2, 0, 7, "stream 7");
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 10, STEPSCOPE_EVENT_LINK, STEPSCOPE_LINK_LAUNCH * 2, 1, (uint64_t)77);
	on(&segment, 20, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_SPAN, KERNEL, 3, (uint64_t)3, (uint64_t)60, (uint64_t)10);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_SPAN, KERNEL, 3, (uint64_t)3, (uint64_t)40, (uint64_t)15);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_LINK, STEPSCOPE_LINK_LAUNCH * 2 + 1, 1, (uint64_t)77);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_BYTES, 2,
	            (uint64_t)STEPSCOPE_ARG_U64, (uint64_t)4096);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_SHAPE, 2,
	            (uint64_t)STEPSCOPE_ARG_SYMBOL, (uint64_t)SHAPE);
	/* about this thread, which has spans of its own: a track aside */
	segment_put(&segment, MAIN, 110, STEPSCOPE_EVENT_SPAN, OTHER_OP, 3, (uint64_t)0, (uint64_t)15, (uint64_t)30);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.tracks_count, 3);
	assert_int_equal(model.tracks[0]->kind, TRACK_DEVICE);
	assert_int_equal(model.tracks[0]->tid, 7);
	CHECK_SPANS(0, {40, 15, "gemm", 0, 0}, {60, 10, "gemm", 0, 0});
	CHECK_SPANS(1, {10, 10, "matmul", 0, 0});
	CHECK_SPANS(2, {15, 30, "add", 0, 0});
	assert_int_equal(model.links_count, 1);
	assert_int_equal(model.links[0].from_track, 1);
	assert_int_equal(model.links[0].from_row, 0);
	assert_int_equal(model.links[0].to_track, 0);
	assert_int_equal(model.links[0].to_row, 0);
	assert_int_equal(model.args_count, 1);
	assert_int_equal(model.args[0].row, 0);
	assert_int_equal(model.args[0].u64, 4096);
	assert_string_equal(model_text(&model, model.tracks[0]->chunks[0]->shape[0]), "[2, 3]");
	model_release(&model);
	(void)state;
}

static void memory_events_know_where_they_happened(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 11, STEPSCOPE_EVENT_ALLOC, STEPSCOPE_MEMORY_ID(STEPSCOPE_MEMORY_GRADIENT, 1), 2,
	            (uint64_t)0x1000, (uint64_t)256);
	on(&segment, 12, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_put(&segment, MAIN, 13, STEPSCOPE_EVENT_FREE, STEPSCOPE_MEMORY_ID(0, 1), 1, (uint64_t)0x1000);
	segment_put(&segment, MAIN, 14, STEPSCOPE_EVENT_FREE, STEPSCOPE_MEMORY_ID(0, -1), 1, (uint64_t)0x1000);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.memory_count, 3);
	assert_int_equal(model.memory[0].device, 1);
	assert_int_equal(model.memory[0].row, 0);
	assert_int_equal(model.memory[1].row, MODEL_NONE);
	assert_int_equal(model.memory[1].bytes, 256);
	assert_int_equal(model.memory[1].category, STEPSCOPE_MEMORY_GRADIENT);
	assert_int_equal(model.memory[2].device, -1);
	assert_false(model.memory[2].has_bytes);
	model_release(&model);
	(void)state;
}

static void frame(struct segment_builder *segment, uint32_t id, const char *text, uint32_t length)
{
	segment_symbol_n(segment, id, STEPSCOPE_SYMBOL_FRAME, text, length);
}
#define FRAME(segment, id, text) frame(segment, id, text, sizeof(text) - 1)

static uint32_t stack_of_row(uint32_t row)
{
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(model.tracks[0], row, &index);
	return span_stack(chunk, index);
}

/* What a broken file says of its frames ends in some stack, never in a loop. */
static void begins_have_the_stacks_of_their_frames(void **state)
{
	struct segment_builder segment;
	static const uint32_t frames[] = {31, 0, 32, 34, 36, 37, 99, SAVED};
	begin(&segment);
	FRAME(&segment, 31,
	      "30\0"
	      "12\0forward\0net.py");
	FRAME(&segment, 30,
	      "0\0"
	      "3\0<module>\0train.py");
	FRAME(&segment, 32,
	      "33\0"
	      "1\0one\0a.py");
	FRAME(&segment, 33,
	      "32\0"
	      "2\0other\0a.py"); /* a circle */
	FRAME(&segment, 34,
	      "34\0"
	      "99999999999999999999\0itself\0");
	FRAME(&segment, 36, "77\0x");
	FRAME(&segment, 37, "");
	for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
		segment_put(&segment, MAIN, 10 + i, STEPSCOPE_EVENT_BEGIN, OP, 2, STEPSCOPE_NO_SEQUENCE,
		            (uint64_t)frames[i] << 32);
	segment_end(&segment, "exit");
	load(&segment);
	const struct stack_node *node = &model.stacks[stack_of_row(0)];
	assert_string_equal(model_text(&model, node->frame), "forward");
	assert_string_equal(model_text(&model, node->file), "net.py");
	assert_int_equal(node->line, 12);
	assert_int_equal(model.stacks[node->parent].line, 3);
	assert_int_equal(model.stacks[node->parent].parent, 0);
	assert_int_equal(stack_of_row(1), stack_of_row(0)); /* as that of the span around it */
	assert_string_equal(model_text(&model, model.stacks[stack_of_row(2)].frame), "one");
	assert_string_equal(model_text(&model, model.stacks[stack_of_row(3)].frame), "itself");
	assert_true(model.stacks_count < 10);
	assert_int_equal(stack_of_row(6), 0); /* there is no such frame */
	assert_int_equal(stack_of_row(7), 0);
	model_release(&model);
	(void)state;
}

/* What the recorder said it costs to read a frame counts for those that it read. */
static void frames_count_that_the_one_around_does_not_have(void **state)
{
	struct segment_builder segment;
	static const uint32_t frames[] = {32, 0, 33, 34};
	begin(&segment);
	segment_symbol(&segment, 50, STEPSCOPE_SYMBOL_ANNOTATION, "mine");
	FRAME(&segment, 31,
	      "0\0"
	      "3\0<module>\0train.py");
	FRAME(&segment, 32,
	      "31\0"
	      "12\0forward\0net.py");
	FRAME(&segment, 33,
	      "32\0"
	      "1\0mode\0net.py");
	FRAME(&segment, 34,
	      "31\0"
	      "2\0other\0net.py");
	for (size_t i = 0; i < sizeof frames / sizeof *frames;
	     i++) /* 2 frames, 0, 1 beyond that, 2 that go another way */
		segment_put(&segment, MAIN, 10 + i, STEPSCOPE_EVENT_BEGIN, OP, 2, STEPSCOPE_NO_SEQUENCE,
		            (uint64_t)frames[i] << 32);
	segment_put(&segment, MAIN, 20, STEPSCOPE_EVENT_BEGIN, 50, 2, STEPSCOPE_NO_SEQUENCE, (uint64_t)33 << 32);
	segment_put(&segment, MAIN, 21, STEPSCOPE_EVENT_BEGIN, OP, 2, STEPSCOPE_NO_SEQUENCE, (uint64_t)33 << 32);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.processes[0].stack_frames, 2 + 0 + 1 + 2 + 3 + 3);
	model_release(&model);
	(void)state;
}

#define LINKED_THREADS 20u

/* Two operators far apart make a table as large as it gets; those of very many threads must not fill the memory. */
static void links_of_very_many_operators_are_left_out(void **state)
{
	struct segment_builder segment;
	const uint64_t apart = 1 << 17;
	begin(&segment);
	segment_symbol(&segment, 50, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	for (uint32_t thread = 1; thread <= LINKED_THREADS; thread++) {
		uint64_t node = 1 | (uint64_t)thread << 48;
		segment_stream(&segment, 10 + thread, 9000 + thread, "thread");
		segment_put(&segment, 10 + thread, 10, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1,
		            (uint64_t)thread);
		segment_put(&segment, 10 + thread, 11, STEPSCOPE_EVENT_BEGIN, OP, 1, (uint64_t)1);
		segment_put(&segment, 10 + thread, 12, STEPSCOPE_EVENT_BEGIN, OP, 1, 1 + apart);
		segment_put(&segment, 10 + thread, 13, STEPSCOPE_EVENT_BEGIN, 50, 1, node);
	}
	segment_end(&segment, "exit");
	load(&segment);
	uint64_t lost = 0;
	for (uint32_t i = 0; i < model.ledger_count; i++)
		if (strstr(model_text(&model, model.ledger[i].text), "too many operations lie between"))
			lost += model.ledger[i].count;
	assert_int_equal(model.links_count + lost, LINKED_THREADS);
	assert_true(model.links_count >= 8 && model.links_count <= 16);
	model_release(&model);
	(void)state;
}

static void samples_have_stacks(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_symbol(&segment, 30, STEPSCOPE_SYMBOL_FRAME, "main");
	segment_symbol(&segment, 31, STEPSCOPE_SYMBOL_FRAME, "forward");
	const struct stepscope_stack_node nodes[] = {{1, 0, 30, 12}, {2, 1, 31, 0}};
	segment_block(&segment, STEPSCOPE_BLOCK_STACKS, 0, nodes, sizeof nodes);
	segment_put(&segment, MAIN, 50, STEPSCOPE_EVENT_SAMPLE, SAVED, 3, (uint64_t)2, (uint64_t)9, (uint64_t)0);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.samples_count, 1);
	assert_int_equal(model.samples[0].weight, 9);
	const struct stack_node *node = &model.stacks[model.samples[0].stack];
	assert_string_equal(model_text(&model, node->frame), "forward");
	assert_int_equal(model.stacks[node->parent].line, 12);
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

static void a_thread_that_ended_has_no_open_spans(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_stream_of_kind(&segment, 2, 99, "worker", STEPSCOPE_STREAM_THREAD, 0);
	segment_put(&segment, 2, 10, STEPSCOPE_EVENT_BEGIN, OP, 0);
	segment_put(&segment, 2, 20, STEPSCOPE_EVENT_MARK, SAVED, 0);
	segment_stream_of_kind(&segment, 2, 99, "worker", STEPSCOPE_STREAM_THREAD, 2);
	on(&segment, 500, STEPSCOPE_EVENT_MARK, SAVED);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 10, "matmul", 0, SPAN_END_IS_LOST});
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS), 1);
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

static void a_filter_loads_only_its_steps(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_stream(&segment, 2, 99, "loader");
	segment_stream(&segment, 3, 98, "begins before and ends within");
	for (uint64_t n = 0; n < 10; n++) {
		segment_step(&segment, MAIN, 100 + 100 * n, STEPSCOPE_STEP_BEGIN, (int64_t)n);
		on(&segment, 110 + 100 * n, STEPSCOPE_EVENT_BEGIN, OP);
		on(&segment, 150 + 100 * n, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
		segment_step(&segment, MAIN, 190 + 100 * n, STEPSCOPE_STEP_END, (int64_t)n);
		on(&segment, 192 + 100 * n, STEPSCOPE_EVENT_MARK, SAVED); /* between two steps */
		segment_put(&segment, 2, 120 + 100 * n, STEPSCOPE_EVENT_SWITCH, RANGE, 0);
	}
	segment_put(&segment, 3, 350, STEPSCOPE_EVENT_BEGIN, RANGE, 0);
	segment_put(&segment, 3, 450, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
	segment_end(&segment, "exit");
	const struct model_filter filter = {.has_steps = true, .first_step = 3, .last_step = 4};
	const char *name = "n.4242.1.0.ssr";
	load_all(&segment, 1, &name, &filter);
	assert_int_equal(model.steps_count, 2);
	assert_int_equal(model.steps[0].number, 3);
	CHECK_SPANS(0, {400, 90, "step", 0, 0}, {410, 40, "matmul", 1, 0}, {500, 90, "step", 0, 0},
	            {510, 40, "matmul", 1, 0});
	CHECK_SPANS(1, {420, 100, "layer", 0, 0}, {520, 70, "layer", 0, SPAN_IS_CLIPPED});
	assert_int_equal(model.marks_count, 1);
	assert_int_equal(model.ledger_count, 0);
	model_release(&model);
	(void)state;
}

static void a_filter_without_a_match_says_what_there_is(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_step(&segment, MAIN, 10, STEPSCOPE_STEP_BEGIN, 5);
	segment_step(&segment, MAIN, 20, STEPSCOPE_STEP_END, 5);
	segment_end(&segment, "exit");
	const struct model_filter filter = {.has_steps = true, .first_step = 30, .last_step = 40};
	struct recording_bytes bytes = {segment.bytes.data, segment.bytes.length, "x.ssr"};
	struct error err;
	model_init(&model, 0);
	assert_int_equal(recording_load_memory(&bytes, 1, &filter, &model, &err), STATUS_INPUT);
	assert_string_equal(err.text, "the recording has no step from 30 to 40, only from 5 to 5");
	model_release(&model);
	segment_release(&segment);
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

/* ---- damage ---- */

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

/* ---- files ---- */

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
	assert_non_null(strstr(err.text, "no trace that can be read"));
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
		cmocka_unit_test(a_step_has_phases_ops_and_numbers),
		cmocka_unit_test(a_range_that_ends_in_another_one_is_cut),
		cmocka_unit_test(a_range_that_outlives_its_operator),
		cmocka_unit_test(an_end_that_is_told_late),
		cmocka_unit_test(what_an_asynchronous_operator_cut_is_known),
		cmocka_unit_test(ends_beneath_what_is_not_there),
		cmocka_unit_test(an_end_of_a_step_says_what_its_thread_used),
		cmocka_unit_test(an_end_of_detail_does_not_close_a_phase),
		cmocka_unit_test(a_switch_ends_its_class_and_begins),
		cmocka_unit_test(a_step_begin_says_that_the_end_before_it_was_lost),
		cmocka_unit_test(dropped_events_leave_the_nesting_whole),
		cmocka_unit_test(a_dropped_end_of_step_is_seen_by_its_number),
		cmocka_unit_test(what_was_captured_is_known_per_step),
		cmocka_unit_test(ranges_of_other_threads_end_with_the_recorded_stretch),
		cmocka_unit_test(what_is_rare_goes_on_without_detail),
		cmocka_unit_test(arguments_belong_to_the_span_before),
		cmocka_unit_test(a_begin_carries_its_sequence_and_inputs),
		cmocka_unit_test(nodes_are_linked_to_the_newest_operator_of_their_number),
		cmocka_unit_test(links_need_nothing_that_lies_before_the_steps_that_are_loaded),
		cmocka_unit_test(operators_without_backward_do_not_fill_the_memory),
		cmocka_unit_test(the_engine_around_a_node_has_its_number),
		cmocka_unit_test(complete_spans_are_sorted_and_linked),
		cmocka_unit_test(memory_events_know_where_they_happened),
		cmocka_unit_test(begins_have_the_stacks_of_their_frames),
		cmocka_unit_test(frames_count_that_the_one_around_does_not_have),
		cmocka_unit_test(links_of_very_many_operators_are_left_out),
		cmocka_unit_test(samples_have_stacks),
		cmocka_unit_test(rotation_is_bridged_by_the_coarse_copy),
		cmocka_unit_test(a_coarse_copy_beside_all_segments_adds_nothing),
		cmocka_unit_test(a_hole_in_a_stream_is_damage),
		cmocka_unit_test(what_has_lost_its_name_is_counted),
		cmocka_unit_test(a_rescued_tail_is_told),
		cmocka_unit_test(an_exec_brings_new_names_and_streams),
		cmocka_unit_test(a_thread_that_ended_has_no_open_spans),
		cmocka_unit_test(processes_of_a_boot_share_one_clock),
		cmocka_unit_test(times_never_go_back_whatever_the_anchors_say),
		cmocka_unit_test(a_filter_loads_only_its_steps),
		cmocka_unit_test(a_filter_without_a_match_says_what_there_is),
		cmocka_unit_test(processes_come_in_order_of_role_and_rank),
		cmocka_unit_test(a_process_says_later_that_it_trains_and_which_rank_it_is),
		cmocka_unit_test(every_cut_and_many_flips_are_survived),
		cmocka_unit_test(a_damaged_block_costs_only_itself),
		cmocka_unit_test(a_directory_is_scanned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
