/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps and phases of a PyTorch program that marks none: whole ones, evaluations, kills, pauses, compiled code, gaps and filters.
 */
#include "torch_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define THREAD 9 /* PyTorch's number of MAIN */

/* Of the last three operators, all but the one in the middle, by the thread that has made them. */
static void backward_of(uint64_t thread)
{
	node_on(MAIN, sequence | thread << 48);
	node_on(MAIN, (sequence - 2) | thread << 48);
	open_on(MAIN, NODE);
	open_on(MAIN, ACCUMULATE);
	close_on(MAIN);
	close_on(MAIN);
}

static void steps_and_phases_are_put_in(void **state)
{
	begin();
	for (int i = 0; i < 3; i++)
		step();
	data(false);
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("step", 0), 3);
	assert_int_equal(span_count("forward", 1), 3);
	assert_int_equal(span_count("backward", 1), 3);
	assert_int_equal(span_count("optimizer", 1), 3);
	assert_int_equal(span_count("data", -1), 4);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* A node that keeps a gradient, or adds it to the one that is there. */
static void accumulate(bool is_added)
{
	open_on(MAIN, NODE);
	open_on(MAIN, ACCUMULATE);
	if (is_added) {
		open_on(MAIN, ADD);
		close_on(MAIN);
	}
	close_on(MAIN);
	close_on(MAIN);
}

static void a_pause_is_no_phase(void **state)
{
	int64_t pause_ns = 6000000;

	begin();
	for (int i = 0; i < 3; i++) {
		forward();
		now += pause_ns;
		forward();
		backward_on(MAIN);
		now += pause_ns;
		backward_on(MAIN);
		call(5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("forward", 1), 6);
	assert_int_equal(span_count("backward", 1), 6);
	assert_true(model.steps[1].end_ns - model.steps[1].start_ns > 2 * pause_ns);
	for (uint32_t row = 0; row < model.tracks[model.steps[0].track]->span_count; row++) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(model.tracks[model.steps[0].track], row, &i);
		assert_true(chunk->depth[i] != 1 || chunk->dur_ns[i] < pause_ns);
	}
	model_release(&model);
}

/* A call of the engine is one however long it waits for a processor. Of three gradients the second one adds to two: it is of the first one's step,
 * though it makes one anew at first. */
static void a_backward_with_a_pause_is_one(void **state)
{
	begin();
	for (int i = 0; i < 3; i++) {
		forward();
		node_on(MAIN, sequence);
		accumulate(false);
		accumulate(false);
		forward();
		node_on(MAIN, sequence);
		accumulate(false);
		now += 2000000;
		accumulate(true);
		accumulate(true);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("backward", 1), 6);
	model_release(&model);
}

/* Two calls, of which the second works on what was made first; the first gradients are made for them. */
static void a_pause_between_two_calls_is_no_backward(void **state)
{
	begin();
	for (int i = 0; i < 3; i++) {
		forward();
		forward();
		for (int k = 0; k < 2; k++) {
			open_on(MAIN, ONES);
			close_on(MAIN);
			node_on(MAIN, sequence - (uint64_t)k);
			accumulate(k > 0);
			now += 2000000;
		}
		call(5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("backward", 1), 6);
	model_release(&model);
}

static void an_evaluation_lies_between_steps(void **state)
{
	begin();
	step();
	for (int i = 0; i < 2; i++) {
		data(true);
		open_on(MAIN, OP);
		close_on(MAIN);
	}
	data(false); /* of the loop over the evaluation */
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 2);
	assert_int_equal(span_count("evaluation", 0), 1);
	assert_int_equal(span_count("data", -1), 2);
	model_release(&model);
}

static void a_kill_leaves_the_step_open(void **state)
{
	begin();
	step();
	data(true);
	forward();
	open_on(MAIN, NODE);
	finish(NULL);
	assert_int_equal(model.steps_count, 2);
	assert_false(model.steps[0].is_open);
	assert_true(model.steps[1].is_open);
	model_release(&model);
	begin();
	step();
	data(true);
	forward();
	finish("exit"); /* the same, but it wanted to end there */
	assert_int_equal(model.steps_count, 1);
	model_release(&model);
}

/* Of which no node is worked on: a policy that acts. */
static void a_forward_without_its_backward_is_none(void **state)
{
	begin();
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1,
	            (uint64_t)THREAD);
	for (int i = 0; i < 3; i++) {
		open_on(MAIN, MODULE);
		forward();
		close_on(MAIN);
		forward(); /* what is computed with it, and what the next one learns from */
		open_on(MAIN, MODULE);
		forward();
		forward();
		close_on(MAIN);
		forward();
		backward_of(THREAD);
		call(5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("forward", -1), 3);
	assert_int_equal(duration_of("forward"), 70);
	model_release(&model);
}

/* What is made before the first step: numbers are peeked at, no node is made. */
static void preparing_is_no_forward(void **state)
{
	begin();
	for (int i = 0; i < 3; i++) {
		segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_BEGIN, OP, 1, sequence + 1);
		close_on(MAIN);
	}
	int64_t made = (int64_t)now;
	step();
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 2);
	assert_true(model.steps[0].start_ns > made);
	assert_int_equal(span_count("forward", -1), 2);
	model_release(&model);
}

static void a_kill_in_the_optimizer(void **state)
{
	begin();
	step();
	data(true);
	forward();
	backward_on(MAIN);
	open_on(MAIN, CALL);
	finish(NULL);
	assert_int_equal(model.steps_count, 2);
	assert_true(model.steps[1].is_open);
	model_release(&model);
}

static void steps_can_be_chosen(void **state)
{
	const struct model_filter some = {.has_steps = true, .first_step = 3, .last_step = 5},
				  last = {.has_steps = true, .first_step = 9, .last_step = 12};

	begin();
	for (int i = 0; i < 10; i++)
		step();
	finish_with("exit", &some);
	assert_int_equal(model.steps_count, 3);
	for (int i = 0; i < 3; i++)
		assert_false(model.steps[i].is_open);
	assert_int_equal(span_count("forward", 1), 3);
	assert_int_equal(span_count("aten::mm", -1), 6);
	assert_int_equal(span_count("optimizer", 1), 3);
	assert_int_equal(span_count("Optimizer.step#SGD.step", 2), 3);
	model_release(&model);
	begin();
	for (int i = 0; i < 9; i++)
		step();
	data(true);
	forward();
	finish_with(NULL, &last);
	assert_int_equal(model.steps_count, 1);
	assert_true(model.steps[0].is_open);
	model_release(&model);
}

static void compiled_call(void)
{
	open_on(MAIN, COMPILED_CALL);
	open_on(MAIN, REGION);
	open_on(MAIN, OP);
	close_on(MAIN);
	close_on(MAIN);
	close_on(MAIN);
}

/* From the third step on its code is compiled. */
static void a_call_that_is_compiled(void **state)
{
	begin();
	for (int i = 0; i < 6; i++) {
		open_on(MAIN, REGION);
		forward();
		close_on(MAIN);
		backward_on(MAIN);
		if (i < 2)
			call(77);
		else
			compiled_call();
	}
	finish("exit");
	assert_int_equal(model.steps_count, 6);
	assert_int_equal(span_count("optimizer", 1), 6);
	assert_int_equal(span_count("forward", 1), 6);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

static void a_whole_step_that_is_compiled(void **state)
{
	begin();
	for (int i = 0; i < 3; i++) {
		data(true);
		open_on(MAIN, REGION);
		forward();
		open_on(MAIN, REGION);
		forward();
		backward_on(MAIN);
		open_on(MAIN, REGION);
		compiled_call();
		close_on(MAIN);
		close_on(MAIN);
		close_on(MAIN);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("optimizer", -1), 3);
	assert_int_equal(span_count("backward", -1), 3);
	assert_int_equal(span_count("evaluation", -1), 0);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* Without a record in it code is work all the same: these batches are evaluated. */
static void code_that_calls_nothing_is_work(void **state)
{
	begin();
	step();
	for (int i = 0; i < 2; i++) {
		data(true);
		open_on(MAIN, REGION);
		close_on(MAIN);
	}
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 2);
	assert_int_equal(span_count("evaluation", 0), 1);
	model_release(&model);
}

static void a_gap_does_not_lose_the_levels(void **state)
{
	for (int32_t lost = 0; lost < 3; lost++) {
		begin();
		step();
		open_on(MAIN, RANGE);
		uint64_t begin_ns = now;
		data(true);
		segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_BEGIN, OP, 1, (uint64_t)7);
		gap(-lost, -lost);
		uint64_t end_ns = now - 5; /* when the first event was dropped */
		for (int32_t i = lost; i < 2; i++)
			close_on(MAIN);
		if (lost < 2)
			end_ns = now;
		forward();
		backward_on(MAIN);
		call(5);
		step();
		finish("exit");
		assert_int_equal(model.steps_count, 3);
		assert_int_equal(span_count("step", -1), 3);
		assert_int_equal(duration_of("mine"), end_ns - begin_ns);
		assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
		model_release(&model);
	}
	begin();
	step();
	gap(2, -1);
	close_on(MAIN);
	close_on(MAIN);
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 2);
	model_release(&model);
}

static void no_detail_for_a_while(void **state)
{
	begin();
	step();
	open_on(MAIN, NODE);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2, (uint64_t)0,
	            (uint64_t)STEPSCOPE_ACTIVE_STEPS);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2, (uint64_t)0,
	            (uint64_t)STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL);
	step();
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("forward", 1), 3);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_and_phases_are_put_in),
		cmocka_unit_test(a_pause_is_no_phase),
		cmocka_unit_test(a_backward_with_a_pause_is_one),
		cmocka_unit_test(a_pause_between_two_calls_is_no_backward),
		cmocka_unit_test(an_evaluation_lies_between_steps),
		cmocka_unit_test(a_kill_leaves_the_step_open),
		cmocka_unit_test(a_forward_without_its_backward_is_none),
		cmocka_unit_test(preparing_is_no_forward),
		cmocka_unit_test(a_kill_in_the_optimizer),
		cmocka_unit_test(steps_can_be_chosen),
		cmocka_unit_test(a_call_that_is_compiled),
		cmocka_unit_test(a_whole_step_that_is_compiled),
		cmocka_unit_test(code_that_calls_nothing_is_work),
		cmocka_unit_test(a_gap_does_not_lose_the_levels),
		cmocka_unit_test(no_detail_for_a_while),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
