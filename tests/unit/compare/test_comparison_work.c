/* SPDX-License-Identifier: Apache-2.0
 *
 * Which runs can be compared: the same work per step, divided differently, other work, hardware, clocks and programs.
 */
#include "compared_pair.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void half_the_tokens_are_compared_by_the_token(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 1000);
	make_run(&pair.new, 6, 500);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_METRIC), "time_per_token");
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "regression");
	assert_double_equal(table_get(&pair.comparison.verdict, 0, COMPARISON_RATIO)->d, 0.2, 1e-9);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_EXPLANATION), "tokens per step 1000 -> 500"));
	assert_false(table_get(&pair.comparison.verdict, 0, COMPARISON_IS_COMPARABLE)->b);
	release(&pair);
}

static void other_work_of_unknown_amount_is_not_comparable(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 6, 0);
	compared_run_add_fact(&pair.base, FACT_WORK, "train.micro_batch", "8");
	compared_run_add_fact(&pair.new, FACT_WORK, "train.micro_batch", "4");
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "not comparable");
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "train.micro_batch 8 -> 4"));
	assert_string_equal(result_of(&pair, "step_time_mean"), "not comparable");
	release(&pair);
}

static void the_same_work_in_other_portions_is_comparable_and_named(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 1000);
	make_run(&pair.new, 12, 1000);
	compared_run_add_fact(&pair.base, FACT_WORK, "train.micro_batch", "8");
	compared_run_add_fact(&pair.new, FACT_WORK, "train.micro_batch", "1");
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_METRIC), "step_time");
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "regression");
	assert_true(table_get(&pair.comparison.verdict, 0, COMPARISON_IS_COMPARABLE)->b);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_EXPLANATION), "micro_batch 8 -> 1"));
	release(&pair);
}

static void another_model_is_not_comparable_though_tokens_are_known(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 1000);
	make_run(&pair.new, 20, 1000);
	compared_run_add_fact(&pair.base, FACT_WORK, "model.layers", "2");
	compared_run_add_fact(&pair.new, FACT_WORK, "model.layers", "4");
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "not comparable");
	release(&pair);
}

static void other_hardware_is_said_and_does_not_hide_the_change(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 20, 0);
	compared_run_add_fact(&pair.base, FACT_HARDWARE, "devices", "8");
	compared_run_add_fact(&pair.new, FACT_HARDWARE, "devices", "4");
	compared_run_add_fact(&pair.base, FACT_SOFTWARE, "torch.version", "2.13.0"); /* on one side only */
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "regression");
	assert_string_equal(verdict_text(&pair, COMPARISON_EXPLANATION), "these facts differ: devices 8 -> 4");
	assert_int_equal(pair.comparison.differences.row_count, 1);
	release(&pair);
}

static void programs_without_a_common_operator_are_not_comparable(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 6, 0);
	add_part(&pair.base, "operator", "matmul", NULL, 8);
	add_part(&pair.base, "operator", "copy", NULL, 0.1);
	add_part(&pair.new, "operator", "aten::conv2d", NULL, 5);
	add_part(&pair.new, "operator", "copy", NULL, 0.05);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "not comparable");
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "operators matmul, ... -> aten::conv2d"));
	assert_null(verdict_text(&pair, COMPARISON_NEEDED));
	release(&pair);
}

/* As a compiled model beside the same model that is not. */
static void other_operators_with_the_same_kernels_are_comparable(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 6, 0);
	add_part(&pair.base, "operator", "aten::mm", NULL, 8);
	add_part(&pair.base, "kernel", "sgemm_128", "matrix products", 8);
	add_part(&pair.new, "operator", "CompiledFunction", NULL, 5);
	add_part(&pair.new, "kernel", "sgemm_64", "matrix products", 5);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "improvement");
	release(&pair);
}

static void add_clocked_run(struct compared_run *run, const char *name, const char *clock)
{
	make_run(run, 10, 0);
	compared_run_add_fact(run, FACT_HARDWARE, "devices", "1");
	compared_run_add_fact(run, FACT_CLOCK, name, clock);
	add_part(run, "kernel", "gemm", NULL, 5);
}

static void clocks_of_several_runs_are_compared_by_their_mean(void **state)
{
	static const char *const clocks[2][4] = {{"1980", "1978.5", "1977", "1981"}, {"1980", "1979", "1500", "1505"}};

	for (int is_lower = 0; is_lower < 2; is_lower++) {
		struct compared_run runs[4];
		struct comparison comparison;
		const struct table *table = &comparison.differences;

		for (int i = 0; i < 4; i++)
			add_clocked_run(&runs[i], "clocks.sm", clocks[is_lower][i]);
		comparison_init(&comparison, runs, 2, runs + 2, 2, NULL);
		assert_int_equal(table->row_count, is_lower);
		if (is_lower) {
			assert_string_equal(table_get(table, 0, DIFFERENCE_BASE)->text, "1979.5");
			assert_string_equal(table_get(table, 0, DIFFERENCE_NEW)->text, "1502.5");
			assert_double_equal(table_get(table, 0, DIFFERENCE_RATIO)->d, 1502.5 / 1979.5, 1e-9);
		}
		comparison_release(&comparison);
		for (int i = 0; i < 4; i++)
			compared_run_release(&runs[i]);
	}
}

static void clocks_of_processors_are_none_of_devices(void **state)
{
	for (int is_device = 0; is_device < 2; is_device++) {
		struct pair pair;

		add_clocked_run(&pair.base, is_device ? "gpu0.clocks.sm" : "cpu0.clock_hz", "1980");
		add_clocked_run(&pair.new, is_device ? "gpu0.clocks.sm" : "cpu0.clock_hz", "1980");
		compare(&pair);
		assert_int_equal(pair.comparison.contributions.note != NULL, !is_device);
		if (!is_device)
			assert_non_null(strstr(pair.comparison.contributions.note, "device clocks"));
		release(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_the_tokens_are_compared_by_the_token),
		cmocka_unit_test(other_work_of_unknown_amount_is_not_comparable),
		cmocka_unit_test(the_same_work_in_other_portions_is_comparable_and_named),
		cmocka_unit_test(another_model_is_not_comparable_though_tokens_are_known),
		cmocka_unit_test(other_hardware_is_said_and_does_not_hide_the_change),
		cmocka_unit_test(programs_without_a_common_operator_are_not_comparable),
		cmocka_unit_test(other_operators_with_the_same_kernels_are_comparable),
		cmocka_unit_test(clocks_of_several_runs_are_compared_by_their_mean),
		cmocka_unit_test(clocks_of_processors_are_none_of_devices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
