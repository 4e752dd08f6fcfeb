/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a PyTorch program from notes: stretches without detail, in which the recorder notes only batches, forwards, backwards and
 * calls of optimizers.
 */
#include "torch_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void capture(unsigned mask, int64_t counted)
{
	segment_put(&segment, MAIN, now += 1, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, counted < 0 ? 2 : 3,
	            (uint64_t)0, (uint64_t)mask, (uint64_t)counted);
}

/* A stretch of 50 ticks. */
static void note(uint64_t token, uint64_t optimizer)
{
	now += 60;
	segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, optimizer ? 4 : 3, token,
	            now - 50, now, optimizer);
}

static void noted_step(void)
{
	note(STEPSCOPE_TRAINING_DATA, 0);
	note(STEPSCOPE_TRAINING_FORWARD, 0);
	note(STEPSCOPE_TRAINING_BACKWARD | STEPSCOPE_TRAINING_IS_TRAINING, 0);
	note(STEPSCOPE_TRAINING_OPTIMIZER, 5);
}

/* Collections and a compilation among them change neither steps nor phases: what is noted in a compilation is what that traces, but for
 * what was over before it. */
static void rare_ranges_among_notes_say_nothing(void **state)
{
	begin();
	capture(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_RARE, -1);
	noted_step();
	note(STEPSCOPE_TRAINING_DATA, 0);
	now += 60;
	uint64_t before = now - 50;
	open_on(MAIN, COMPILE);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, 3,
	            (uint64_t)STEPSCOPE_TRAINING_FORWARD, before, before + 20, (uint64_t)0);
	note(STEPSCOPE_TRAINING_BACKWARD, 0);
	uint64_t traced = now - 20;
	close_on(MAIN);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, 3,
	            (uint64_t)STEPSCOPE_TRAINING_BACKWARD, traced, traced + 10, (uint64_t)0);
	open_on(MAIN, GARBAGE);
	close_on(MAIN);
	note(STEPSCOPE_TRAINING_BACKWARD | STEPSCOPE_TRAINING_IS_TRAINING, 0);
	note(STEPSCOPE_TRAINING_OPTIMIZER, 5);
	open_on(MAIN, GARBAGE); /* and what is counted behind it began with the optimizer's end */
	close_on(MAIN);
	capture(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL, 2);
	step();
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 4);
	assert_int_equal(span_count("forward", 1), 4);
	assert_int_equal(span_count("backward", 1), 4);
	assert_int_equal(span_count("data", 1), 4);
	assert_int_equal(span_count("garbage collection 2", -1), 2);
	assert_int_equal(span_count("torch.compile", -1), 1);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(model.steps[i].has_rare);
		assert_int_equal(model.steps[i].has_detail, i > 1);
		assert_int_equal(model.steps[i].has_any_detail, i > 1);
	}
	model_release(&model);
}

/* Two steps without detail, two with it, one without. */
static void steps_that_were_noted(void **state)
{
	begin();
	capture(STEPSCOPE_ACTIVE_STEPS, -1);
	noted_step();
	noted_step();
	capture(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL, 2);
	step();
	step();
	capture(STEPSCOPE_ACTIVE_STEPS, 4);
	noted_step();
	finish("exit");
	assert_int_equal(model.steps_count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(model.steps[i].has_detail, i == 2 || i == 3);
	assert_int_equal(span_count("backward", 1), 5);
	assert_int_equal(ledger_count(LEDGER_OTHER), 0);
	model_release(&model);
}

/* Of two steps in each of torch.profiler's, without detail and with it. */
static void steps_of_a_profiler_that_were_noted(void **state)
{
	begin();
	capture(STEPSCOPE_ACTIVE_STEPS, -1);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t start = now;
		noted_step();
		noted_step();
		now += 10;
		segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, 4,
		            (uint64_t)STEPSCOPE_TRAINING_PROFILER_STEP, start, now, i + 1);
	}
	capture(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL, 3);
	open_on(MAIN, PROFILED + 3);
	step();
	step();
	close_on(MAIN);
	capture(STEPSCOPE_ACTIVE_STEPS, 4);
	noted_step();
	finish("exit");
	assert_int_equal(model.steps_count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(model.steps[i].has_detail, i == 3);
		assert_int_equal(model.steps[i].is_inferred, i == 4);
	}
	assert_int_equal(span_count("backward", 1), 9);
	assert_int_equal(ledger_count(LEDGER_OTHER), 1); /* of the one that is inferred */
	model_release(&model);
}

static void a_count_that_differs_is_said(void **state)
{
	begin();
	capture(STEPSCOPE_ACTIVE_STEPS, -1);
	noted_step();
	noted_step();
	capture(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL, 3);
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(ledger_count(LEDGER_OTHER), 1);
	model_release(&model);
}

/* A closure's backward lies in the call, and is noted before it. */
static void a_call_with_a_closure(void **state)
{
	begin();
	capture(STEPSCOPE_ACTIVE_STEPS, -1);
	for (int i = 0; i < 3; i++) {
		uint64_t start;

		note(STEPSCOPE_TRAINING_DATA, 0);
		start = now += 5;
		note(STEPSCOPE_TRAINING_BACKWARD | STEPSCOPE_TRAINING_IS_TRAINING | STEPSCOPE_TRAINING_IS_INSIDE, 0);
		note(STEPSCOPE_TRAINING_BACKWARD | STEPSCOPE_TRAINING_IS_TRAINING | STEPSCOPE_TRAINING_IS_INSIDE, 0);
		now += 5;
		segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, 4,
		            (uint64_t)STEPSCOPE_TRAINING_OPTIMIZER, start, now, (uint64_t)5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("optimizer", 1), 3);
	assert_int_equal(span_count("backward", 1), 3);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rare_ranges_among_notes_say_nothing),
		cmocka_unit_test(steps_that_were_noted),
		cmocka_unit_test(steps_of_a_profiler_that_were_noted),
		cmocka_unit_test(a_count_that_differs_is_said),
		cmocka_unit_test(a_call_with_a_closure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
