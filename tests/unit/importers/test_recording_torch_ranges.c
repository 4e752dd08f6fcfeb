/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a PyTorch program among ranges: modes of the dispatcher, ranges that overlap, a profiler in the program, and steps and phases
 * that the program marks itself.
 */
#include "torch_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void end_beneath(uint64_t above)
{
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, 1, above);
}

/* As under modes of the dispatcher: each of them is called for the begin of a range, and for its end. */
static void open_in_modes(uint32_t name, unsigned modes)
{
	for (unsigned i = 0; i < modes; i++)
		open_on(MAIN, MODE);
	open_on(MAIN, name);
	for (unsigned i = 0; i < modes; i++)
		end_beneath(1);
}

static void close_in_modes(unsigned modes)
{
	for (unsigned i = 0; i < modes; i++)
		open_on(MAIN, MODE);
	if (modes)
		end_beneath(modes);
	else
		close_on(MAIN);
	for (unsigned i = 0; i < modes; i++)
		close_on(MAIN);
}

static void step_in_modes(unsigned modes, bool has_batch)
{
	open_in_modes(DATA, modes);
	if (has_batch) {
		open_on(MAIN, OP);
		close_on(MAIN);
	}
	close_in_modes(modes);
	if (!has_batch)
		return;
	forward();
	open_in_modes(ZERO, modes);
	open_on(MAIN, OP);
	close_on(MAIN);
	close_in_modes(modes);
	backward_on(MAIN);
	open_in_modes(CALL, modes);
	segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_ARG, KEY, 2, (uint64_t)STEPSCOPE_ARG_U64, (uint64_t)5);
	open_on(MAIN, OP);
	close_on(MAIN);
	close_in_modes(modes);
}

static void modes_hide_no_step(void **state)
{
	for (unsigned modes = 0; modes < 4; modes++) {
		begin();
		open_in_modes(RANGE, modes);
		for (int i = 0; i < 3; i++)
			step_in_modes(modes, true);
		step_in_modes(modes, false);
		close_in_modes(modes);
		finish("exit");
		assert_int_equal(model.steps_count, 3);
		assert_int_equal(span_count("step", 1), 3);
		assert_int_equal(span_count("forward", 2), 3);
		assert_int_equal(span_count("backward", 2), 3);
		assert_int_equal(span_count("optimizer", 2), 3);
		assert_int_equal(span_count("Optimizer.step#SGD.step", 3), 3);
		assert_int_equal(span_count("data", -1), 4);
		assert_int_equal(span_count("evaluation", -1), 0);
		assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END) +
		                         ledger_count(LEDGER_OTHER),
		                 0);
		/* from the range's begin to where the first mode is called for its end */
		assert_int_equal(duration_of("mine"), 690 + 410 * (int64_t)modes);
		model_release(&model);
	}
}

/* Two coroutines, each with ranges around what it waits for: those are cut, the steps between are right. */
static void ranges_that_overlap_hide_no_step(void **state)
{
	begin();
	open_on(MAIN, RANGE);
	for (int i = 0; i < 3; i++) {
		open_on(MAIN, RANGE);
		data(true);
		end_beneath(1); /* the one of the step before */
		forward();
		backward_on(MAIN);
		call(5);
	}
	close_on(MAIN);
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("mine", -1), 4);
	assert_int_equal(span_count("forward", -1), 3);
	assert_int_equal(span_count("optimizer", -1), 3);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

static void mark_step(enum stepscope_step_event what, int64_t number)
{
	segment_step(&segment, MAIN, now += 10, what, number);
}

static void marked_steps_are_left_alone(void **state)
{
	begin();
	mark_step(STEPSCOPE_STEP_BEGIN, 0);
	for (uint32_t i = 0; i < 2; i++) {
		open_on(MAIN, PROFILED + i); /* nor does a profiler make others */
		step();
		close_on(MAIN);
	}
	mark_step(STEPSCOPE_STEP_END, 0);
	finish("exit");
	assert_int_equal(model.steps_count, 1);
	assert_int_equal(span_count("ProfilerStep#1", 1), 1);
	assert_int_equal(span_count("forward", 2), 2);
	assert_int_equal(span_count("optimizer", 2), 2);
	model_release(&model);
}

/* Where a step begins or ends no phase goes on; outside of steps they are phases, too. */
static void phases_end_with_marked_steps(void **state)
{
	begin();
	data(true);
	mark_step(STEPSCOPE_STEP_BEGIN, 0);
	forward();
	mark_step(STEPSCOPE_STEP_END, 0);
	mark_step(STEPSCOPE_STEP_BEGIN, 1);
	forward();
	backward_on(MAIN);
	call(5);
	mark_step(STEPSCOPE_STEP_END, 1);
	finish("exit");
	assert_int_equal(model.steps_count, 2);
	assert_int_equal(span_count("data", 0), 1);
	assert_int_equal(span_count("forward", 1), 2);
	assert_int_equal(span_count("backward", 1), 1);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* Two updates in each of torch.profiler's steps, as far as it is there, and an evaluation between two of them. */
static void steps_of_a_profiler_in_the_program(void **state)
{
	begin();
	step();
	for (uint32_t i = 0; i < 3; i++) {
		open_on(MAIN, PROFILED + i);
		step();
		step();
		close_on(MAIN);
		forward();
	}
	open_on(MAIN, PROFILED + 3); /* which stop() ends */
	data(false);
	close_on(MAIN);
	open_on(MAIN, FOO);
	step();
	close_on(MAIN);
	finish("exit");
	assert_int_equal(model.steps_count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(model.steps[i].is_inferred, i == 0 || i == 4);
	assert_int_equal(span_count("step", 0), 5);
	assert_int_equal(span_count("backward", 1), 7); /* not in a range in the step */
	assert_int_equal(span_count("backward", 2), 1);
	assert_int_equal(span_count("ProfilerStep#1", -1), 0);
	assert_int_equal(span_count("ProfilerStep#3", -1), 1);
	assert_int_equal(span_count("ProfilerStep#foo", -1), 1);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	assert_int_equal(ledger_count(LEDGER_OTHER), 2); /* of 5 steps 2 are inferred */
	model_release(&model);
}

/* It steps in a range of the program's, which begins in the first one of its steps and ends in the last. */
static void steps_of_a_profiler_overlap_a_range(void **state)
{
	begin();
	open_on(MAIN, PROFILED);
	open_on(MAIN, RANGE);
	step();
	end_beneath(1); /* the profiler's */
	for (uint32_t i = 1; i < 4; i++) {
		open_on(MAIN, PROFILED + i);
		step();
		close_on(MAIN);
	}
	open_on(MAIN, PROFILED + 4);
	end_beneath(1); /* the program's */
	step();
	close_on(MAIN);
	finish("exit");
	assert_int_equal(model.steps_count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(model.steps[i].is_inferred, i == 0); /* it is cut there */
	assert_int_equal(span_count("optimizer", -1), 5);
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

static void a_profilers_step_that_a_kill_cuts_off(void **state)
{
	begin();
	for (uint32_t i = 0; i < 3; i++) {
		open_on(MAIN, PROFILED + (i ? i - 1 : 0)); /* as PyTorch 1.13 numbers them */
		step();
		if (i < 2)
			close_on(MAIN);
	}
	finish(NULL);
	assert_int_equal(model.steps_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(model.steps[i].is_open, i == 2);
	assert_int_equal(span_count("optimizer", 1), 3);
	model_release(&model);
}

/* Nothing trains. */
static void steps_of_a_profiler_without_training(void **state)
{
	begin();
	for (uint32_t i = 0; i < 4; i++) {
		open_on(MAIN, PROFILED + i);
		if (i < 3)
			data(true);
		if (i < 3)
			forward();
		close_on(MAIN);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("data", 1), 3);
	model_release(&model);
}

static void marked_phases_are_left_alone(void **state)
{
	begin();
	mark_step(STEPSCOPE_STEP_BEGIN, 0);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_BUILTIN_PHASE_DATA, 0);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE, 0);
	step();
	mark_step(STEPSCOPE_STEP_END, 0);
	finish("exit");
	assert_int_equal(span_count("forward", -1), 0);
	assert_int_equal(span_count("data", 1), 1);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_hide_no_step),
		cmocka_unit_test(ranges_that_overlap_hide_no_step),
		cmocka_unit_test(marked_steps_are_left_alone),
		cmocka_unit_test(phases_end_with_marked_steps),
		cmocka_unit_test(steps_of_a_profiler_in_the_program),
		cmocka_unit_test(steps_of_a_profiler_overlap_a_range),
		cmocka_unit_test(a_profilers_step_that_a_kill_cuts_off),
		cmocka_unit_test(steps_of_a_profiler_without_training),
		cmocka_unit_test(marked_phases_are_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
