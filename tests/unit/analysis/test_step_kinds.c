/* SPDX-License-Identifier: Apache-2.0
 *
 * Which steps are the program, where operators were recorded in some of them only.
 */
#include "analysis/step_times/step_kinds.h"
#include "computed.h"
#include "mixed_model.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static double of_all(const struct model *model, const char *column)
{
	struct table table;
	double value;

	compute("step_time", model, &all_steps, &table);
	value = number(&table, 0, column);
	table_release(&table);
	return value;
}

static void steps_without_operators_are_the_program(void **state)
{
	struct model model;

	mixed_model_init(&model, "....o.......o...", 10, 5);
	assert_double_equal(of_all(&model, "count"), 14, 0);
	assert_double_equal(of_all(&model, "mean_ns"), 10e6, 1);
	assert_double_equal(of_all(&model, "max_ns"), 10e6, 1);
	assert_double_equal(of_all(&model, "outliers"), 0, 0);
	assert_double_equal(of_all(&model, "tokens_per_s"), 1e5, 1e-3);
	model_release(&model);
}

static void all_steps_are_where_only_the_first_have_none(void **state)
{
	static const char *const kinds[] = {"...ooo", "....oo", ".....o", "oooooo", "......", "..", "ooo...", "rrrooo"};
	static const double counts[] = {6, 6, 6, 6, 6, 2, 3, 6};
	struct model model;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		mixed_model_init(&model, kinds[i], 10, 5);
		assert_double_equal(of_all(&model, "count"), counts[i], 0);
		model_release(&model);
	}
}

/* Of a step that has operators in a part of it nobody knows what it cost. */
static void steps_with_some_operators_are_of_neither_kind(void **state)
{
	struct model model;
	struct table table;

	mixed_model_init(&model, "...pop...r", 10, 5);
	assert_double_equal(of_all(&model, "count"), 6, 0);
	compute("ops", &model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "name", "matmul"), "calls"), 1, 0);
	table_release(&table);
	model_release(&model);
}

/* A rank that records makes the others wait. */
static void a_step_of_the_job_is_the_program_where_it_is_in_all_ranks(void **state)
{
	struct analysis_context context;
	const struct step_times *times;
	struct table table;
	struct model model;

	model_init(&model, 0);
	mixed_model_add(&model, &(struct mixed_run){.kinds = "...o...o...", .step_ms = 10, .cost_ms = 5});
	mixed_model_add(&model, &(struct mixed_run){.kinds = ".......o...", .step_ms = 10, .cost_ms = 5, .rank = 1});
	model_finish(&model);
	analysis_context_init(&context, &model, &all_steps);
	times = analysis_context_step_times(&context);
	assert_true(times->has_plain);
	assert_int_equal(times->job_program, 9);
	assert_int_equal(times->job_whole, 1);
	analysis_context_release(&context);
	compute("step_time", &model, &all_steps, &table);
	for (int row = 0; row < 3; row++)
		assert_double_equal(number(&table, row, "count"), 9, 0);
	table_release(&table);
	model_release(&model);
}

static void phases_that_are_marked_are_of_the_program(void **state)
{
	struct table table;
	struct model model;

	mixed_model_init(&model, "....o...o...", 10, 5);
	compute("phases", &model, &all_steps, &table);
	assert_double_equal(number(&table, 0, "of_steps"), 10, 0);
	assert_double_equal(number(&table, find_row(&table, "name", "forward"), "mean_ns"), 9e6, 1);
	assert_non_null(strstr(table.note, "from 10 of 12 steps (those without operators)"));
	table_release(&table);
	model_release(&model);
}

static void phases_that_are_inferred_are_of_the_steps_with_operators(void **state)
{
	struct table table;
	struct model model;

	model_init(&model, 0);
	mixed_model_add(&model,
	                &(struct mixed_run){.kinds = "....o...o...", .step_ms = 10, .cost_ms = 5, .infers = true});
	model_finish(&model);
	compute("phases", &model, &all_steps, &table);
	assert_double_equal(number(&table, 0, "of_steps"), 2, 0);
	assert_double_equal(number(&table, find_row(&table, "name", "forward"), "mean_ns"), 14e6, 1);
	assert_non_null(strstr(table.note, "from 2 of 12 steps (those with operators, from"));
	table_release(&table);
	compute("steps", &model, &all_steps, &table);
	assert_false(table_get(&table, 0, table_find_column(&table, "forward_ns"))->has_value);
	assert_true(table_get(&table, 4, table_find_column(&table, "forward_ns"))->has_value);
	assert_false(table_get(&table, 4, table_find_column(&table, "is_outlier"))->has_value);
	assert_true(table_get(&table, 5, table_find_column(&table, "is_outlier"))->has_value);
	table_release(&table);
	model_release(&model);
}

/* It is recorded, compiles and warms up: the mean of what a budget chose is of the others. */
static void phases_of_a_sample_are_without_the_first_steps(void **state)
{
	static const double more_ms[16] = {500};
	static const char *const budgets[] = {"3 %", "none: --steps"};
	static const double counts[] = {3, 4}, means[] = {14e6, (3 * 14e6 + 514e6) / 4};
	static const char *const notes[] = {"these take 15.00 ms on average, the others 10.00 ms",
	                                    "these take 140.0 ms on average, the others 10.00 ms"};

	for (int i = 0; i < 2; i++) {
		struct table table;
		struct model model;

		model_init(&model, 0);
		mixed_model_add(&model, &(struct mixed_run){.kinds = "o...o...o...o...",
		                                            .step_ms = 10,
		                                            .cost_ms = 5,
		                                            .more_ms = more_ms,
		                                            .infers = true,
		                                            .budget = budgets[i]});
		model_finish(&model);
		compute("phases", &model, &all_steps, &table);
		assert_double_equal(number(&table, 0, "of_steps"), counts[i], 0);
		assert_double_equal(number(&table, find_row(&table, "name", "forward"), "mean_ns"), means[i], 1);
		assert_non_null(strstr(table.note, notes[i]));
		table_release(&table);
		model_release(&model);
	}
}

/* Where all ranks have operators, as there phases are known in all of them; their own time is that of these steps. */
static void ranks_are_compared_in_the_steps_with_operators_in_all(void **state)
{
	struct table table;
	struct model model;

	model_init(&model, 0);
	for (int32_t rank = 0; rank < 2; rank++)
		mixed_model_add(&model, &(struct mixed_run){.kinds = rank ? "...o...o...o...o" : ".......o.......o",
		                                            .step_ms = rank ? 10 : 12,
		                                            .cost_ms = 5,
		                                            .rank = rank,
		                                            .infers = true,
		                                            .budget = "3 %"});
	model_finish(&model);
	compute("ranks", &model, &all_steps, &table);
	assert_double_equal(number(&table, 0, "steps"), 2, 0);
	assert_double_equal(number(&table, 0, "mean_ns"), 17e6, 1);
	assert_double_equal(number(&table, 1, "mean_ns"), 15e6, 1);
	assert_double_equal(number(&table, 0, "behind_ns"), 2e6, 1);
	assert_non_null(strstr(table.note, "from 2 of 16 steps (those with operators, from"));
	table_release(&table);
	compute("rank_phases", &model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "phase", "step"), "mean_ns"), 16e6, 1);
	table_release(&table);
	model_release(&model);
}

/* The table of operators of steps with operators where a budget, or somebody, chose them. */
static void compute_ops(const char *budget, const char *kinds, struct model *model, struct table *table)
{
	model_init(model, 0);
	mixed_model_add(model,
	                &(struct mixed_run){.kinds = kinds, .step_ms = 10, .cost_ms = 5, .rank = -1, .budget = budget});
	model_finish(model);
	compute("ops", model, &all_steps, table);
}

static void what_a_budget_chose_stands_for_the_run(void **state)
{
	struct table table;
	struct model model;
	int row;

	compute_ops("3 %", "....o...o..o....", &model, &table);
	row = find_row(&table, "name", "matmul");
	assert_double_equal(number(&table, row, "calls"), 16, 0);
	assert_double_equal(number(&table, row, "self_ns"), 16 * 4e6, 0);
	assert_double_equal(number(&table, row, "total_ns"), 16 * 4e6, 0);
	assert_double_equal(number(&table, row, "mean_ns"), 4e6, 0);
	assert_double_equal(number(&table, row, "step_mean_ns"), 4e6, 0);
	assert_double_equal(number(&table, row, "step_self_ratio"), 4.0 / 15, 1e-9);
	assert_string_equal(table.note, "from 3 of 16 steps (those with operators); sums are multiplied by 5.33");
	table_release(&table);
	compute("run", &model, &all_steps, &table);
	assert_double_equal(number(&table, 0, "operator_sum_steps"), 16, 1e-9);
	assert_double_equal(number(&table, 0, "operator_steps"), 3, 0);
	table_release(&table);
	model_release(&model);
}

static double calls_of(const char *kinds, const char *seldom, const char *name)
{
	struct table table;
	struct model model;
	double calls;

	model_init(&model, 0);
	mixed_model_add(
		&model,
		&(struct mixed_run){
			.kinds = kinds, .seldom = seldom, .step_ms = 10, .cost_ms = 5, .rank = -1, .budget = "3 %"});
	model_finish(&model);
	compute("ops", &model, &all_steps, &table);
	calls = number(&table, find_row(&table, "name", name), "calls");
	table_release(&table);
	model_release(&model);
	return calls;
}

/* Each second step at first, each 16th then: what was in the first ones alone is not taken for a part of the later ones. */
static void steps_stand_for_those_beside_them(void **state)
{
	const char *kinds = "...o.o.o.o.o.o.o.o.o.o.o.o.o.o.o.....o...............o...............o..........";
	const char *early = "sssssssssssssssssssssssssssssssss...............................................";
	const char *late = ".................................sssssssssssssssssssssssssssssssssssssssssssssss";

	assert_double_equal(calls_of(kinds, NULL, "matmul"), 80, 1e-9);
	assert_double_equal(calls_of(kinds, early, "seldom"), 33, 1.5);
	assert_double_equal(calls_of(kinds, late, "seldom"), 47, 1.5);
}

/* Somebody asked for a stretch. */
static void what_was_asked_for_stands_for_itself(void **state)
{
	const char *kinds = "....o.......o.......o.......o...oooooooooooooooo....o.......o.......o.......o...";
	const char *inside = "................................ssssssssssssssss................................";
	const char *outside = "ssssssssssssssssssssssssssssssss................ssssssssssssssssssssssssssssssss";

	assert_double_equal(calls_of(kinds, inside, "seldom"), 16, 1e-9);
	assert_double_equal(calls_of(kinds, outside, "seldom"), 64, 1e-9);
}

/* A rank with fewer of them is not made less of. */
static void each_process_has_its_own_weights(void **state)
{
	struct table table;
	struct model model;

	model_init(&model, 0);
	mixed_model_add(&model, &(struct mixed_run){.kinds = "....o.o.o.o.o.o.o.o.o.o.o.o.o.o.",
	                                            .step_ms = 10,
	                                            .rank = 0,
	                                            .budget = "3 %"});
	mixed_model_add(&model, &(struct mixed_run){.kinds = "....o.......o.......o.......o...",
	                                            .seldom = "ssssssssssssssssssssssssssssssss",
	                                            .step_ms = 10,
	                                            .rank = 1,
	                                            .budget = "3 %"});
	model_finish(&model);
	compute("ops", &model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "name", "matmul"), "calls"), 64, 1e-9);
	assert_double_equal(number(&table, find_row(&table, "name", "seldom"), "calls"), 32, 1e-9);
	table_release(&table);
	model_release(&model);
}

/* Tables such as host_waits are not multiplied, so their note must not say that they are. */
static void a_table_that_is_not_multiplied_does_not_say_so(void **state)
{
	struct analysis_context context;
	const struct step_times *times;
	struct table table;
	struct model model;
	struct arena arena;

	compute_ops("3 %", "....o...o..o....", &model, &table);
	arena_init(&arena, 0);
	analysis_context_init(&context, &model, &all_steps);
	times = analysis_context_step_times(&context);
	assert_string_equal(step_kinds_operators_note(times, &arena), "from 3 of 16 steps (those with operators)");
	arena_release(&arena);
	analysis_context_release(&context);
	table_release(&table);
	model_release(&model);
}

static void steps_that_were_asked_for_stand_for_themselves(void **state)
{
	static const char *const budgets[] = {NULL, "none", "none: --steps"};
	struct table table;
	struct model model;

	for (int i = 0; i < 3; i++) {
		compute_ops(budgets[i], "....o...o..o....", &model, &table);
		assert_double_equal(number(&table, find_row(&table, "name", "matmul"), "calls"), 3, 0);
		assert_string_equal(table.note, "from 3 of 16 steps (those with operators)");
		table_release(&table);
		model_release(&model);
	}
}

/* ---- what is seldom ---- */

static void add_rare(struct model *model, const char *kinds, const char *garbage, const char *seldom,
                     const char *budget)
{
	model_init(model, 0);
	mixed_model_add(model, &(struct mixed_run){.kinds = kinds,
	                                           .garbage = garbage,
	                                           .seldom = seldom,
	                                           .step_ms = 10,
	                                           .cost_ms = 5,
	                                           .rank = -1,
	                                           .has_rare = strchr(budget, '%') != NULL,
	                                           .budget = budget});
	model_finish(model);
}

static bool is_least(const struct table *table, int row)
{
	return table_get(table, row, table_find_column(table, "is_least"))->b;
}

/* Of four collections one lies in a step with operators. */
static void what_is_known_of_all_steps_is_not_multiplied(void **state)
{
	struct table table;
	struct model model;
	int row;

	add_rare(&model, "....o...o..o....", ".g..g....g...g..", NULL, "3 %");
	compute("ops", &model, &all_steps, &table);
	row = find_row(&table, "name", "garbage collection 2");
	assert_double_equal(number(&table, row, "calls"), 4, 0);
	assert_double_equal(number(&table, row, "self_ns"), 4e6, 0);
	assert_double_equal(number(&table, row, "step_mean_ns"), 4e6 / 16, 1);
	assert_false(is_least(&table, row));
	assert_double_equal(number(&table, find_row(&table, "name", "matmul"), "calls"), 16, 0);
	assert_string_equal(table.note, "from 3 of 16 steps (those with operators); sums are multiplied by 5.33");
	table_release(&table);
	compute("host_waits", &model, &all_steps, &table);
	row = find_row(&table, "cause", "garbage collection");
	assert_double_equal(number(&table, row, "count"), 4, 0);
	assert_double_equal(number(&table, row, "step_own_ns"), 4e6, 0);
	assert_double_equal(number(&table, row, "known_steps"), 16, 0);
	assert_double_equal(number(&table, row, "step_ratio"), 4.0 / (16 * 10 + 3 * 5), 1e-9);
	assert_string_equal(table.note,
	                    "garbage collections, compilations, files and loader workers are from all steps");
	table_release(&table);
	model_release(&model);
}

/* Outside of a schedule's windows they are not recorded, so those inside are all that is told of. */
static void where_it_is_not_known_it_is_of_the_steps_with_operators(void **state)
{
	struct table table;
	struct model model;
	int row;

	add_rare(&model, "....o...o..o....", "....g...........", NULL, "none: --steps");
	compute("host_waits", &model, &all_steps, &table);
	row = find_row(&table, "cause", "garbage collection");
	assert_double_equal(number(&table, row, "known_steps"), 3, 0);
	assert_double_equal(number(&table, row, "step_ratio"), 1.0 / 45, 1e-9);
	assert_string_equal(table.note, "from 3 of 16 steps (those with operators)");
	table_release(&table);
	compute("ops", &model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "name", "garbage collection 2"), "calls"), 1, 0);
	table_release(&table);
	model_release(&model);
}

static void what_is_seen_in_few_steps_is_at_least_so_much(void **state)
{
	struct table table;
	struct model model;
	int row;

	add_rare(&model, "....o...o..o....", NULL, "....s......s....", "3 %");
	compute("ops", &model, &all_steps, &table);
	row = find_row(&table, "name", "seldom");
	assert_double_equal(number(&table, row, "calls"), 2, 0);
	assert_double_equal(number(&table, row, "self_ns"), 2e6, 0);
	assert_true(is_least(&table, row));
	assert_false(is_least(&table, find_row(&table, "name", "matmul")));
	assert_false(table.columns[table_find_column(&table, "is_least")].is_hidden);
	assert_string_equal(table.note,
	                    "from 3 of 16 steps (those with operators); sums are multiplied by 5.33; 1 row seen in "
	                    "fewer than 3 of these steps is a lower bound (not multiplied)");
	table_release(&table);
	model_release(&model);
	add_rare(&model, "....o...o..o....", NULL, "....s...s..s....", "3 %");
	compute("ops", &model, &all_steps, &table);
	row = find_row(&table, "name", "seldom");
	assert_double_equal(number(&table, row, "calls"), 16, 0);
	assert_false(is_least(&table, row));
	table_release(&table);
	model_release(&model);
}

/* Whether they have operators was not drawn. What happens in the first step only happens once. */
static void the_first_steps_stand_for_themselves(void **state)
{
	struct table table;
	struct model model;
	int row;

	add_rare(&model, "o...o...o..o....", NULL, "s...............", "3 %");
	compute("ops", &model, &all_steps, &table);
	row = find_row(&table, "name", "seldom");
	assert_double_equal(number(&table, row, "calls"), 1, 0);
	assert_false(is_least(&table, row));
	assert_double_equal(number(&table, find_row(&table, "name", "matmul"), "calls"), 16, 0);
	assert_string_equal(table.note, "from 4 of 16 steps (those with operators); sums are multiplied by 5");
	table_release(&table);
	model_release(&model);
	/* with two others nothing is told of the run */
	add_rare(&model, "o...o...o.......", NULL, NULL, "3 %");
	compute("ops", &model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "name", "matmul"), "calls"), 3, 0);
	assert_string_equal(table.note, "from 3 of 16 steps (those with operators)");
	table_release(&table);
	model_release(&model);
}

static void few_steps_with_operators_are_said(void **state)
{
	struct table table;
	struct model model;

	compute_ops("3 %", "....o...o..", &model, &table);
	assert_string_equal(table.note, "operators were recorded in 2 of 11 steps; --budget none records all");
	table_release(&table);
	model_release(&model);
	compute_ops("3 %", "ooooooooooo", &model, &table);
	assert_double_equal(number(&table, find_row(&table, "name", "matmul"), "calls"), 11, 0);
	assert_null(table.note);
	table_release(&table);
	model_release(&model);
}

static void every_table_keeps_its_promises(void **state)
{
	static const char *const kinds[] = {"....o...o...", "...ooo", "...pop...r", "ooo...oo", "o", "."};
	struct table table;
	struct model model;

	for (size_t i = 0; i < 2 * sizeof kinds / sizeof *kinds; i++) {
		model_init(&model, 0);
		for (int32_t rank = 0; rank < 2; rank++)
			mixed_model_add(&model, &(struct mixed_run){.kinds = kinds[(i / 2 + (size_t)rank) % 6],
			                                            .step_ms = 10,
			                                            .cost_ms = 5,
			                                            .rank = rank,
			                                            .infers = i % 2,
			                                            .has_rare = i % 3,
			                                            .garbage = "g.gg.ggg.g.g.g",
			                                            .seldom = "s.....ss......",
			                                            .budget = i % 3 ? "3 %" : NULL});
		model_finish(&model);
		for (int k = 0; analyses[k]; k++) {
			compute(analyses[k]->name, &model, &all_steps, &table);
			table_release(&table);
		}
		model_release(&model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_without_operators_are_the_program),
		cmocka_unit_test(all_steps_are_where_only_the_first_have_none),
		cmocka_unit_test(steps_with_some_operators_are_of_neither_kind),
		cmocka_unit_test(a_step_of_the_job_is_the_program_where_it_is_in_all_ranks),
		cmocka_unit_test(phases_that_are_marked_are_of_the_program),
		cmocka_unit_test(phases_that_are_inferred_are_of_the_steps_with_operators),
		cmocka_unit_test(phases_of_a_sample_are_without_the_first_steps),
		cmocka_unit_test(ranks_are_compared_in_the_steps_with_operators_in_all),
		cmocka_unit_test(what_a_budget_chose_stands_for_the_run),
		cmocka_unit_test(steps_stand_for_those_beside_them),
		cmocka_unit_test(what_was_asked_for_stands_for_itself),
		cmocka_unit_test(each_process_has_its_own_weights),
		cmocka_unit_test(a_table_that_is_not_multiplied_does_not_say_so),
		cmocka_unit_test(steps_that_were_asked_for_stand_for_themselves),
		cmocka_unit_test(what_is_known_of_all_steps_is_not_multiplied),
		cmocka_unit_test(where_it_is_not_known_it_is_of_the_steps_with_operators),
		cmocka_unit_test(what_is_seen_in_few_steps_is_at_least_so_much),
		cmocka_unit_test(the_first_steps_stand_for_themselves),
		cmocka_unit_test(few_steps_with_operators_are_said),
		cmocka_unit_test(every_table_keeps_its_promises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
