/* SPDX-License-Identifier: Apache-2.0
 *
 * test_input_steps.c: runs in which PyTorch was asked for inputs in a part of the steps with operators: floating point operations of the others, and
 * tables that are split by inputs.
 */
#include "analysis/analysis_context.h"
#include "analysis/operators/flop_likeness.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SMALL "[2, 3] [3, 5]" /* a product that takes 60 */
#define LARGE "[4, 3] [3, 5]" /* 120 */
#define NS_OF_OP 1000

struct step_kind {
	bool has_detail, has_shapes;
	const char *inputs[3]; /* of its products, in order; NULL: no more */
};
typedef struct step_kind describe(uint32_t step);

static struct model model;
static uint32_t track, gloo;
static const char *operator_name; /* of what steps run */
static int64_t now_ns;

static void add_op(const char *name, const char *inputs, bool has_shapes)
{
	uint32_t row = model_span_complete(&model, track, now_ns += 10, NS_OF_OP, SPAN_OP,
	                                   intern_add(&model.strings, name));

	if (has_shapes) {
		model_span_set_shape(&model, track, row, intern_add(&model.strings, inputs));
		model_span_set_inputs(&model, track, row, intern_add(&model.strings, inputs));
	}
	now_ns += NS_OF_OP;
}

static void add_execution(bool has_shapes)
{
	uint32_t row = model_span_complete(&model, gloo, now_ns += 10, NS_OF_OP, SPAN_OP,
	                                   intern_add(&model.strings, "gloo:all_reduce"));

	if (has_shapes)
		model_span_set_inputs(&model, gloo, row, intern_add(&model.strings, "[100]\nt float"));
	now_ns += NS_OF_OP;
}

static void add_step(uint32_t number, const struct step_kind *kind)
{
	int64_t start_ns = now_ns += 10;
	uint32_t row = model_span_begin(&model, track, start_ns, SPAN_STEP, intern_add(&model.strings, "step"));
	struct model_step step = {.track = track,
	                          .row = row,
	                          .number = number,
	                          .start_ns = start_ns,
	                          .has_detail = kind->has_detail,
	                          .has_any_detail = kind->has_detail,
	                          .has_shapes = kind->has_shapes};

	for (int i = 0; kind->has_detail && i < 3 && kind->inputs[i]; i++)
		add_op(operator_name, kind->inputs[i], kind->has_shapes);
	if (kind->has_detail && strncmp(operator_name, "c10d::", 6) == 0)
		add_execution(kind->has_shapes);
	now_ns += kind->has_detail ? 0 : NS_OF_OP;
	model_span_end(&model, track, now_ns += 10, 0);
	step.end_ns = now_ns;
	*model_add_step(&model) = step;
}

static void make_of(const char *name, describe *of, uint32_t steps)
{
	uint32_t process;

	operator_name = name;
	model_init(&model, 0);
	process = model_add_process(&model);
	track = model_add_track(&model, process, TRACK_THREAD);
	gloo = model_add_track(&model, process, TRACK_THREAD);
	model_add_meta(&model, process, "budget", "3 %");
	for (uint32_t i = 0; i < steps; i++) {
		struct step_kind kind = of(i);

		add_step(i, &kind);
	}
	model_finish(&model);
}

static void make(describe *of, uint32_t steps)
{
	make_of("aten::mm", of, steps);
}

static struct table compute(const char *name, unsigned by)
{
	const struct analysis_options options = {.by = by};
	struct analysis_context context;
	struct table table;
	struct error err = {0};

	analysis_context_init(&context, &model, &options);
	assert_int_equal(analysis_find(name)->run(&context, &table, &err), STATUS_OK);
	analysis_context_release(&context);
	if (table_check(&table, &err))
		fail_msg("%s", err.text);
	return table;
}

static const struct table_cell *cell(const struct table *table, int row, const char *column)
{
	return table_get(table, row, table_find_column(table, column));
}

static int find(const struct table *table, const char *name, const char *shape)
{
	for (int row = 0; row < table->row_count; row++) {
		const struct table_cell *has = cell(table, row, "shape");

		if (strcmp(cell(table, row, "name")->text, name) == 0 &&
		    (shape ? has->has_value && strcmp(has->text, shape) == 0 : !has->has_value))
			return row;
	}
	return -1;
}

static void check_missing(const struct table *table, int row, const char *column)
{
	assert_false(cell(table, row, column)->has_value);
	assert_string_equal(cell(table, row, column)->reason, FLOP_LIKENESS_MISSING);
}

/* Each second one with operators, each 8th with inputs. */
static struct step_kind constant(uint32_t step)
{
	return (struct step_kind){step % 2 == 0, step % 8 == 0, {SMALL, LARGE}};
}

static struct step_kind alternating(uint32_t step)
{
	bool is_large = step / 8 % 2;

	return (struct step_kind){step % 2 == 0, step % 8 == 0, {is_large ? LARGE : SMALL, SMALL}};
}

/* Their sum is the same, their calls are not. */
static struct step_kind turning(uint32_t step)
{
	bool is_turned = step / 8 % 2;

	return (struct step_kind){step % 2 == 0, step % 8 == 0, {is_turned ? LARGE : SMALL, is_turned ? SMALL : LARGE}};
}

/* In some of those without inputs is a third call. */
static struct step_kind longer(uint32_t step)
{
	return (struct step_kind){step % 2 == 0, step % 8 == 0, {SMALL, LARGE, step % 8 == 4 ? SMALL : NULL}};
}

static void steps_without_inputs_are_like_others(void **state)
{
	make(constant, 64);
	struct table steps = compute("steps", 0), ops = compute("ops", 0);
	int row = find(&ops, "aten::mm", NULL);

	for (int i = 0; i < 64; i += 2)
		assert_true(cell(&steps, i, "flops")->has_value && cell(&steps, i, "flops")->d == 180.0);
	assert_false(cell(&steps, 1, "flops")->has_value);
	assert_double_equal(cell(&ops, row, "flops")->d, 64 * 180.0, 1e-6);
	assert_double_equal(cell(&ops, row, "profiler_flops")->d, 64 * 180.0, 1e-6);
	assert_int_equal(cell(&ops, row, "calls")->i, 128);
	table_release(&steps);
	table_release(&ops);
	model_release(&model);
}

static void check_unknown(describe *of, uint32_t steps, int unknown)
{
	make(of, steps);
	struct table table = compute("steps", 0), ops = compute("ops", 0);
	int row = find(&ops, "aten::mm", NULL);

	assert_true(cell(&table, 0, "flops")->has_value);
	check_missing(&table, unknown, "flops");
	check_missing(&ops, row, "flops");
	check_missing(&ops, row, "profiler_flops");
	table_release(&table);
	table_release(&ops);
	model_release(&model);
}

static void what_is_not_alike_is_not_measured(void **state)
{
	check_unknown(alternating, 128, 2);
	check_unknown(turning, 128, 2);
	check_unknown(longer, 128, 4);
	check_unknown(constant, 56, 2); /* seven steps with inputs: by chance, perhaps */
}

static void steps_with_as_many_calls_are_still_like_others(void **state)
{
	make(longer, 128);
	struct table table = compute("steps", 0);

	assert_true(cell(&table, 2, "flops")->has_value && cell(&table, 2, "flops")->d == 180.0);
	check_missing(&table, 4, "flops");
	table_release(&table);
	model_release(&model);
}

/* Three of four steps have no inputs: they are not in it, neither as a row without inputs nor in the sums. */
static void rows_by_shape_stand_for_the_run(void **state)
{
	make(constant, 64);
	struct table table = compute("ops", BY_SHAPE);

	assert_int_equal(find(&table, "aten::mm", NULL), -1);
	assert_int_equal(cell(&table, find(&table, "aten::mm", SMALL), "calls")->i, 64);
	assert_int_equal(cell(&table, find(&table, "aten::mm", LARGE), "calls")->i, 64);
	assert_int_equal(cell(&table, find(&table, "aten::mm", SMALL), "self_ns")->i, 64 * NS_OF_OP);
	assert_double_equal(cell(&table, find(&table, "aten::mm", LARGE), "flops")->d, 64 * 120.0, 1e-6);
	assert_non_null(strstr(table.note, "from 8 of 64 steps (those with inputs); sums are multiplied by 9"));
	table_release(&table);
	model_release(&model);
}

static struct step_kind without_inputs(uint32_t step)
{
	return (struct step_kind){step % 2 == 0, false, {SMALL}};
}

static void without_any_inputs_there_is_one_row(void **state)
{
	make(without_inputs, 64);
	struct table table = compute("ops", BY_SHAPE);
	int row = find(&table, "aten::mm", NULL);

	assert_int_equal(cell(&table, row, "calls")->i, 64);
	assert_non_null(strstr(table.note, "from 32 of 64 steps (those with operators)"));
	assert_string_equal(cell(&table, row, "flops")->reason,
	                    "the sizes of inputs were not recorded: record with --with shapes");
	table_release(&table);
	model_release(&model);
}

static struct step_kind odd(uint32_t step)
{
	return (struct step_kind){
		step % 2 == 0, step % 8 == 0, {"[2, 3] [3, 5]\nt Half;Half", "[8, 8] [8, 8]\nt Half;Half"}};
}

/* Products without inputs are no products of good sizes, nor are they in the way of an answer. */
static void patterns_of_sizes_are_found_where_inputs_are(void **state)
{
	make(odd, 64);
	struct table table = compute("operator_patterns", 0);
	int row = 0;

	while (strcmp(cell(&table, row, "pattern")->text, "sizes that tensor cores dislike") != 0)
		row++;
	assert_int_equal(cell(&table, row, "count")->i, 64);
	assert_int_equal(cell(&table, row, "total_ns")->i, 64 * NS_OF_OP);
	table_release(&table);
	model_release(&model);
}

static struct step_kind exchange(uint32_t step)
{
	return (struct step_kind){step % 2 == 0, step % 8 == 0, {"[[100]] []\nt TensorList;"}};
}

static void collectives_by_size_stand_for_the_run(void **state)
{
	make_of("c10d::allreduce_", exchange, 64);
	struct table table = compute("collectives", 0);

	assert_int_equal(table.row_count, 1);
	assert_int_equal(cell(&table, 0, "bytes")->i, 400);
	assert_int_equal(cell(&table, 0, "count")->i, 64);
	assert_non_null(
		strstr(table.note, "from 8 of 64 steps (those with inputs in all ranks); sums are multiplied by 9"));
	table_release(&table);
	model_release(&model);
}

static void sizes_that_change_are_told(void **state)
{
	describe *const kinds[] = {constant, alternating, without_inputs};

	for (int i = 0; i < 3; i++) {
		struct flop_likeness likeness;

		make(kinds[i], 64);
		flop_likeness_init(&likeness, &model);
		assert_int_equal(flop_likeness_varies(&likeness), i == 1);
		assert_int_equal(likeness.is_mixed, i < 2);
		flop_likeness_release(&likeness);
		model_release(&model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_without_inputs_are_like_others),
		cmocka_unit_test(what_is_not_alike_is_not_measured),
		cmocka_unit_test(steps_with_as_many_calls_are_still_like_others),
		cmocka_unit_test(rows_by_shape_stand_for_the_run),
		cmocka_unit_test(without_any_inputs_there_is_one_row),
		cmocka_unit_test(patterns_of_sizes_are_found_where_inputs_are),
		cmocka_unit_test(collectives_by_size_stand_for_the_run),
		cmocka_unit_test(sizes_that_change_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
