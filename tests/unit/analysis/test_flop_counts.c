/* SPDX-License-Identifier: Apache-2.0
 *
 * test_flop_counts.c: floating point operations in the tables of operations, steps and modules, where not all operators have sizes.
 */
#include "analysis/analysis_context.h"
#include "analysis/operators/flop_likeness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SIZES "[2, 3] [3, 5]" /* of a product that takes 60 */

static struct model model;
static uint32_t track;
static int64_t now_ns;

static uint32_t begin(enum span_kind kind, const char *name)
{
	return model_span_begin(&model, track, now_ns += 10, kind, intern_add(&model.strings, name));
}

static void end(void)
{
	model_span_end(&model, track, now_ns += 10, 0);
}

static void op(const char *name, const char *inputs)
{
	uint32_t row = begin(SPAN_OP, name);

	if (inputs)
		model_span_set_inputs(&model, track, row, intern_add(&model.strings, inputs));
	end();
}

static void begin_step(bool has_shapes)
{
	struct model_step step = {
		.track = track, .number = model.steps_count, .start_ns = now_ns + 10, .has_detail = true};

	step.has_shapes = has_shapes;
	step.row = begin(SPAN_STEP, "step");
	*model_add_step(&model) = step;
}

static void end_step(void)
{
	end();
	model.steps[model.steps_count - 1].end_ns = now_ns;
}

static void module_with(const char *name, const char *operator, const char * inputs)
{
	begin(SPAN_MODULE, name);
	op(operator, inputs);
	end();
}

/* A window with sizes, one without, a step in which they begin, and one that has none to count. */
static int set_up(void **state)
{
	model_init(&model, 0);
	track = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	begin_step(true);
	begin(SPAN_MODULE, "Net");
	module_with("sized", "aten::mm", SIZES);
	module_with("odd", "aten::mm", "[2, 3] []");
	module_with("plain", "aten::relu", "[2, 3]");
	end();
	end_step();
	begin_step(false);
	module_with("bare", "aten::mm", NULL);
	module_with("sized", "aten::mm", NULL);
	end_step();
	begin_step(false);
	op("aten::mm", NULL);
	op("aten::mm", SIZES);
	end_step();
	begin_step(true);
	op("aten::relu", "[2, 3]");
	end_step();
	begin_step(true);
	begin(SPAN_OP, "aten::mm"); /* no sizes of its own: what is inside has them */
	op("aten::mm", SIZES);
	end();
	model_span_set_inputs(&model, track, begin(SPAN_OP, "aten::mm"), intern_add(&model.strings, SIZES));
	op("aten::mm", SIZES); /* the same work */
	end();
	end_step();
	uint32_t lane = model_add_track(&model, 0, TRACK_OTHER);
	model_span_begin(&model, lane, now_ns - 20, SPAN_OP, intern_add(&model.strings, "aten::mm"));
	model_span_set_inputs(&model, lane, 0, intern_add(&model.strings, SIZES));
	model_span_end(&model, lane, now_ns - 10, 0);
	model_finish(&model);
	return 0;
}

static int tear_down(void **state)
{
	model_release(&model);
	return 0;
}

static struct table compute(const char *name)
{
	static const struct analysis_options all_steps;
	struct analysis_context context;
	struct table table;
	struct error err = {0};

	analysis_context_init(&context, &model, &all_steps);
	assert_int_equal(analysis_find(name)->run(&context, &table, &err), STATUS_OK);
	analysis_context_release(&context);
	if (table_check(&table, &err))
		fail_msg("%s", err.text);
	return table;
}

static void check(const struct table *table, int row, const char *column, double expected)
{
	double value;

	assert_true(table_number(table, row, table_find_column(table, column), &value));
	assert_true(value == expected);
}

static void check_missing(const struct table *table, int row, const char *column, const char *why)
{
	const struct table_cell *cell = table_get(table, row, table_find_column(table, column));

	assert_false(cell->has_value);
	assert_string_equal(cell->reason, why);
}

static int find_module(const struct table *table, const char *path)
{
	int row = 0;

	while (strcmp(table_get(table, row, table_find_column(table, "module"))->text, path) != 0)
		row++;
	return row;
}

static void each_step_says_why_it_has_no_sum(void **state)
{
	struct table table = compute("steps");

	check(&table, 0, "flops", 60);
	check(&table, 0, "uncounted_operators", 1);
	check_missing(&table, 1, "flops", FLOP_LIKENESS_MISSING);
	check(&table, 1, "uncounted_operators", 2);
	check_missing(&table, 2, "flops", FLOP_LIKENESS_MISSING);
	check(&table, 2, "uncounted_operators", 1);
	check_missing(&table, 3, "flops", "no operator in it has a formula");
	check(&table, 3, "uncounted_operators", 0);
	check(&table, 4, "flops", 120);
	check(&table, 4, "uncounted_operators", 0);
	table_release(&table);
}

static void each_module_says_why_it_has_no_sum(void **state)
{
	struct table table = compute("modules");

	check_missing(&table, find_module(&table, "Net"), "flops", FLOP_LIKENESS_MISSING);
	check(&table, find_module(&table, "Net"), "self_flops", 0);
	check(&table, find_module(&table, "Net"), "uncounted_operators", 2);
	check_missing(&table, find_module(&table, "sized"), "flops",
	              FLOP_LIKENESS_MISSING); /* 60 in one of two calls */
	check(&table, find_module(&table, "sized"), "uncounted_operators", 1);
	check_missing(&table, find_module(&table, "odd"), "flops",
	              "the recorded inputs do not give the number of operations");
	check_missing(&table, find_module(&table, "bare"), "flops", FLOP_LIKENESS_MISSING);
	check_missing(&table, find_module(&table, "plain"), "self_flops", "no operator in it has a formula");
	table_release(&table);
}

static void a_part_is_no_sum_of_an_operator(void **state)
{
	struct table table = compute("ops");
	int row = 0;

	while (strcmp(table_get(&table, row, table_find_column(&table, "name"))->text, "aten::mm") != 0)
		row++;
	check_missing(&table, row, "flops", FLOP_LIKENESS_MISSING);
	table_release(&table);
}

static int set_up_with_sizes(void **state)
{
	int result = set_up(state);

	model.steps[1].has_detail = model.steps[2].has_detail = false;
	return result;
}

static void operators_and_steps_count_the_same(void **state)
{
	struct table table = compute("ops");
	int row = 0;

	while (strcmp(table_get(&table, row, table_find_column(&table, "name"))->text, "aten::mm") != 0)
		row++;
	check(&table, row, "flops", 180); /* not those of the lane, which is no thread */
	table_release(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_step_says_why_it_has_no_sum, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_module_says_why_it_has_no_sum, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_part_is_no_sum_of_an_operator, set_up, tear_down),
		cmocka_unit_test_setup_teardown(operators_and_steps_count_the_same, set_up_with_sizes, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
