/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operators against numbers worked out on paper: recursion, lanes of a thread, and calls outside of steps.
 */
#include "computed.h"
#include "hand_model.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A step that crosses calls of Python lies in a lane of its own: what the thread does lies in the first one, and is time of the step. */
static void lanes_of_a_thread_count_their_steps_once(void **state)
{
	struct table table;
	struct model model;
	uint32_t first, second;

	model_init(&model, 0);
	first = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	second = model_add_track(&model, 0, TRACK_THREAD);
	model.tracks[first]->tid = model.tracks[second]->tid = 7;
	model_span_complete(&model, first, 0, 150 * MS, SPAN_PYTHON, intern_add(&model.strings, "train"));
	model_span_complete(&model, first, 110 * MS, 20 * MS, SPAN_OP, intern_add(&model.strings, "mm"));
	*model_add_step(&model) = (struct model_step){.track = second,
	                                              .row = model_span_complete(&model, second, 100 * MS, 100 * MS,
	                                                                         SPAN_STEP,
	                                                                         intern_add(&model.strings, "step")),
	                                              .start_ns = 100 * MS,
	                                              .end_ns = 200 * MS,
	                                              .has_detail = true};
	model_finish(&model);
	compute("ops", &model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "name", "mm"), "step_self_ns"), 20 * MS, 0);
	assert_double_equal(number(&table, find_row(&table, "name", "mm"), "step_self_ratio"), 0.2, 1e-12);
	assert_double_equal(number(&table, find_row(&table, "kind", "rest"), "step_self_ns"), 80 * MS, 0);
	table_release(&table);
	model_release(&model);
}

static void recursion_counts_once_in_total_and_wholly_in_self(void **state)
{
	struct table table;
	struct model model;
	int row;

	hand_model_init(&model);
	compute("ops", &model, &all_steps, &table);
	row = find_row(&table, "name", "matmul");
	assert_double_equal(number(&table, row, "calls"), 18, 0); /* not those of the step that was cut off */
	assert_double_equal(number(&table, row, "total_ns"), 9 * 10.0 * MS, 0);
	assert_double_equal(number(&table, row, "self_ns"), 9 * 10.0 * MS, 0);
	assert_double_equal(number(&table, row, "min_ns"), 4.0 * MS, 0);
	assert_double_equal(number(&table, row, "flops"), 9 * 4e6, 0);
	assert_double_equal(number(&table, row, "flops_per_s"), 1e9, 1);
	table_release(&table);
	model_release(&model);
}

static void calls_outside_of_the_measured_steps_are_counted_in_the_note(void **state)
{
	struct analysis_options some = {.filter = {.has_steps = true, .first_step = 0, .last_step = 3}};
	struct table table;
	struct model model;

	hand_model_init(&model);
	compute("ops", &model, &all_steps, &table); /* the step that was cut off is not measured */
	assert_string_equal(table.note, "3 of 30 calls are outside the measured steps and are not counted");
	table_release(&table);
	compute("ops", &model, &some, &table); /* a step has two calls of matmul and one of layer */
	assert_string_equal(table.note, "6 of 30 calls are outside the measured steps and are not counted");
	table_release(&table);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_of_a_thread_count_their_steps_once),
		cmocka_unit_test(recursion_counts_once_in_total_and_wholly_in_self),
		cmocka_unit_test(calls_outside_of_the_measured_steps_are_counted_in_the_note),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
