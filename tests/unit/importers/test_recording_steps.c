/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of recordings made by hand: their phases and numbers, what was captured in them, and filters that choose some.
 */
#include "hand_recording.h"
#include "importers/recording/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

static void put_use(struct segment_builder *segment, uint64_t tick, uint64_t cpu_ns, uint64_t wait_ns,
                    uint64_t process_ns)
{
	segment_put(segment, MAIN, tick, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_USE, process_ns ? 3 : 2, cpu_ns, wait_ns,
	            process_ns);
}

/* Of the readings next to its bounds, within a fiftieth of its duration. */
static void a_step_has_what_its_thread_used_between_two_readings(void **state)
{
	static const struct model_step wanted[] = {
		{.readings = 7, .read_cpu_ns = 600, .processor_wait_ns = 300, .process_cpu_ns = 2000},
		{.readings = 1 + 4,
	         .read_cpu_ns = 500,
	         .process_cpu_ns = 700}, /* the kernel counted no waits at its end */
		{.readings = 0},         /* its end has no reading that is near */
		{.readings = 3, .read_cpu_ns = 1000, .processor_wait_ns = 0}, /* more than its duration */
	};
	struct segment_builder segment;
	begin(&segment);
	for (uint64_t n = 0; n < 4; n++) {
		segment_step(&segment, MAIN, 1000 + 2000 * n, STEPSCOPE_STEP_BEGIN, n);
		put_use(&segment, 1010 + 2000 * n, 5000 * n, 100 * n, n < 2 ? 9000 + 3000 * n : 0);
		put_use(&segment, 1500 + 2000 * n, 5000 * n + 300, 100 * n, 0);
		segment_step(&segment, MAIN, 2000 + 2000 * n, STEPSCOPE_STEP_END, n);
		put_use(&segment, n == 2 ? 6500 : 2005 + 2000 * n,
		        5000 * n + (n == 0   ? 600
		                    : n == 1 ? 500
		                             : 1900),
		        n == 0   ? 300
		        : n == 1 ? STEPSCOPE_USE_UNKNOWN
		                 : 9000,
		        n == 0   ? 11000
		        : n == 1 ? 12700
		                 : 0);
	}
	segment_meta(&segment, "cost.use_ns", "700");
	segment_meta(&segment, "cost.process_use_ns", "250");
	load(&segment);
	assert_int_equal(model.steps_count, 4);
	assert_int_equal(model.readings_count, 12);
	for (int i = 0; i < 4; i++) {
		const struct model_step *step = &model.steps[i];
		assert_int_equal(step->readings, wanted[i].readings);
		assert_int_equal(step->read_cpu_ns, wanted[i].read_cpu_ns);
		assert_int_equal(step->processor_wait_ns, wanted[i].processor_wait_ns);
		assert_int_equal(step->process_cpu_ns, wanted[i].process_cpu_ns);
	}
	assert_true(model.processes[0].cost_per_reading_ns == 700 &&
	            model.processes[0].cost_per_process_reading_ns == 250);
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
	assert_string_equal(err.text, "the recording has no step from 30 to 40: its steps are 5 to 5");
	model_release(&model);
	segment_release(&segment);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_has_phases_ops_and_numbers),
		cmocka_unit_test(an_end_of_a_step_says_what_its_thread_used),
		cmocka_unit_test(a_step_has_what_its_thread_used_between_two_readings),
		cmocka_unit_test(a_step_begin_says_that_the_end_before_it_was_lost),
		cmocka_unit_test(what_was_captured_is_known_per_step),
		cmocka_unit_test(ranges_of_other_threads_end_with_the_recorded_stretch),
		cmocka_unit_test(what_is_rare_goes_on_without_detail),
		cmocka_unit_test(a_filter_loads_only_its_steps),
		cmocka_unit_test(a_filter_without_a_match_says_what_there_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
