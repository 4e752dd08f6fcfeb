/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a PyTorch program that trains in several threads, in turns, after each other or at once.
 */
#include "torch_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* As with a GPU: micro-batches whose gradients another thread computes are no evaluations. */
static void another_threads_backward_is_put_in(void **state)
{
	begin();
	for (int i = 0; i < 6; i++) {
		data(true);
		forward();
		open_on(MAIN, RANGE);
		backward_on(OTHER);
		backward_on(OTHER);
		close_on(MAIN);
		if (i % 2)
			call(5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("backward", 2), 6);
	assert_int_equal(span_count("evaluation", -1), 0);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* A thread that trains a model of its own: what it does is none of the other's backward, and that its steps are not shown is said. */
static void another_thread_that_trains_is_told_of(void **state)
{
	begin();
	for (int i = 0; i < 6; i++) {
		step();
		backward_on(OTHER);
		if (i < 3)
			call_on(OTHER, 6);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 6);
	assert_int_equal(span_count("backward", -1), 6);
	assert_int_equal(ledger_count(LEDGER_OTHER), 1);
	model_release(&model);
}

static void step_on(uint32_t stream, uint64_t optimizer)
{
	forward_on(stream);
	backward_on(stream);
	call_on(stream, optimizer);
}

static uint32_t steps_on(const char *thread)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < model.steps_count; i++)
		count += !strcmp(model_text(&model, model.tracks[model.steps[i].track]->name), thread);
	return count;
}

/* One after the other, each with optimizers of its own: the steps are where they were made, and no end is missing. */
static void training_goes_on_in_another_thread(void **state)
{
	begin();
	for (int i = 0; i < 3; i++)
		step_on(MAIN, 5);
	data(true); /* an evaluation, while the other one trains */
	for (int i = 0; i < 4; i++)
		step_on(OTHER, 6);
	data(true);
	finish(NULL);
	assert_int_equal(model.steps_count, 7);
	assert_int_equal(steps_on("main"), 3);
	assert_int_equal(steps_on("other"), 4);
	assert_int_equal(span_count("backward", 1), 3); /* of the first step's thread */
	assert_int_equal(ledger_count(LEDGER_OTHER), 0);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* Two threads that take turns with one optimizer; a range lasts as long as the second lives. */
static void threads_take_turns(void **state)
{
	begin();
	open_on(OTHER, RANGE);
	for (int i = 0; i < 6; i++)
		step_on(i % 2 ? OTHER : MAIN, 5);
	close_on(OTHER);
	finish("exit");
	assert_int_equal(model.steps_count, 6);
	assert_int_equal(steps_on("main"), 3);
	assert_int_equal(steps_on("other"), 3);
	assert_int_equal(ledger_count(LEDGER_OTHER), 0);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* The range before a turn's first record belongs to the turn: a step must not begin in it. */
static void fault_G9_a_range_at_the_start_of_a_turn_ends_with_its_end(void **state)
{
	begin();
	for (int i = 0; i < 6; i++) {
		uint32_t thread = i % 2 ? OTHER : MAIN;
		open_on(thread, RANGE);
		forward_on(thread);
		close_on(thread);
		backward_on(thread);
		call_on(thread, 5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 6);
	for (uint32_t t = 0; t < model.tracks_count; t++) {
		for (uint32_t row = 0; row < model.tracks[t]->span_count; row++) {
			uint32_t i;
			const struct span_chunk *chunk = track_chunk(model.tracks[t], row, &i);
			if (chunk->kind[i] == SPAN_RANGE)
				assert_int_equal(chunk->dur_ns[i], 30);
		}
	}
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* With one optimizer, but not one at a time. */
static void threads_that_train_at_once_are_not_one(void **state)
{
	begin();
	for (int i = 0; i < 4; i++) {
		backward_on(MAIN);
		if (i < 3)
			backward_on(OTHER);
		call(5);
		if (i < 3)
			call_on(OTHER, 5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 4);
	assert_int_equal(steps_on("main"), 4);
	assert_int_equal(ledger_count(LEDGER_OTHER), 1);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_threads_backward_is_put_in),
		cmocka_unit_test(training_goes_on_in_another_thread),
		cmocka_unit_test(threads_take_turns),
		cmocka_unit_test(fault_G9_a_range_at_the_start_of_a_turn_ends_with_its_end),
		cmocka_unit_test(threads_that_train_at_once_are_not_one),
		cmocka_unit_test(another_thread_that_trains_is_told_of),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
