/* SPDX-License-Identifier: Apache-2.0
 *
 * Verdicts on the time of steps: few steps, steps of two kinds, means that differ where medians do not, and the time between steps.
 */
#include "base/memory.h"
#include "compared_pair.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_slower_run_is_a_regression(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 11, 0);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "regression");
	assert_double_equal(table_get(&pair.comparison.verdict, 0, COMPARISON_RATIO)->d, 0.1, 1e-9);
	assert_string_equal(result_of(&pair, "step_time_mean"), "regression");
	assert_string_equal(result_of(&pair, "peak_memory"), "not measured");
	assert_true(table_get(&pair.comparison.verdict, 0, COMPARISON_IS_COMPARABLE)->b);
	release(&pair);
}

static void values_that_are_not_finite_need_no_statistics(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 10, 0);
	compared_run_add_value(&pair.base, "not_finite", 0);
	compared_run_add_value(&pair.new, "not_finite", 2);
	compare(&pair);
	assert_string_equal(result_of(&pair, "not_finite"), "regression");
	release(&pair);
}

static void a_run_without_steps_is_not_measured(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 10, 0);
	pair.new.steps_count = 0;
	pair.new.no_steps = "it had none";
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "not measured");
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "it had none"));
	release(&pair);
}

static void one_step_a_side_decides_nothing(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 20, 0);
	pair.base.steps_count = pair.new.steps_count = 1;
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "inconclusive");
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "a run with one step"));
	assert_string_equal(result_of(&pair, "step_time_mean"), "inconclusive");
	release(&pair);
}

/* The same 5 % from step to step for each number of the steps. */
static void few_steps_are_as_uncertain_in_their_mean(void **state)
{
	struct pair pair;
	int mean;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 10.4, 0);
	pair.base.steps_count = pair.new.steps_count = 2;
	compare(&pair);
	mean = comparison_metric(&pair.comparison, "step_time_mean");
	assert_string_equal(result_of(&pair, "step_time_mean"), "inconclusive");
	assert_double_equal(table_get(&pair.comparison.metrics, mean, METRIC_HIGH)->d,
	                    table_get(&pair.comparison.metrics, 0, METRIC_HIGH)->d, 0.006);
	release(&pair);
}

/* Steps of which each `period`-th takes `long_ms` and the others `ms`, `count` of them, that scatter by 0.1 %. */
static void make_turns(struct compared_run *run, int count, int period, double ms, double long_ms)
{
	make_run(run, ms, 0);
	run->steps = memory_resize(run->steps, (size_t)count, sizeof(*run->steps));
	run->steps_count = (size_t)count;
	for (int i = 0; i < count; i++) {
		double dur_ms = i % period ? ms : long_ms;

		run->steps[i] = (struct compared_step){
			.number = i, .dur_ns = 1e6 * dur_ms * (1 + 0.001 * ((i * 29) % 23 - 11) / 11)};
	}
	set_mean(run);
}

/* Half of the step time's interval, of runs of which the new one is a fifth slower in each step. */
static double half_of_turns(int count, int period)
{
	struct pair pair;
	double half;

	make_turns(&pair.base, count, period, 1, 2);
	make_turns(&pair.new, count, period, 1.2, 2.4);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "regression");
	assert_string_equal(verdict_text(&pair, COMPARISON_METRIC), "step_time");
	assert_double_equal(table_get(&pair.comparison.verdict, 0, COMPARISON_RATIO)->d, 0.2, 0.002);
	assert_null(strstr(verdict_text(&pair, COMPARISON_NOISE), "uneven"));
	half = (table_get(&pair.comparison.verdict, 0, COMPARISON_HIGH)->d -
	        table_get(&pair.comparison.verdict, 0, COMPARISON_LOW)->d) /
	       2;
	release(&pair);
	return half;
}

/* An eighth of 60, 200 or 201 steps is no whole number of periods: its median is on one level or the other, and that of the run between. */
static void steps_that_take_turns_are_as_certain_as_others(void **state)
{
	static const int counts[] = {60, 64, 200, 201};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		for (int period = 2; period <= 5; period++)
			assert_true(half_of_turns(counts[i], period) < 0.04);
}

/* 2, 1 ms in turns are 1.5 ms; and without an order, as many of either. */
static void steps_of_two_kinds_have_no_step_in_the_middle(void **state)
{
	struct pair pair;

	make_turns(&pair.base, 201, 2, 1, 2);
	make_turns(&pair.new, 201, 2, 1, 2);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "no difference");
	assert_double_equal(table_get(&pair.comparison.metrics, 0, METRIC_BASE)->d, 1.5e6, 2e3);
	assert_string_equal(table_text(&pair.comparison.metrics, 0, METRIC_TITLE), "step time evened out");
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_METHOD), "evened-out steps"));
	comparison_release(&pair.comparison);
	for (int i = 0; i < 201; i++) /* no period of 32 or less */
		pair.new.steps[i].dur_ns = 1e6 * ((i * i) % 211 % 2 ? 1 : 2);
	set_mean(&pair.new);
	compare(&pair);
	assert_double_equal(table_get(&pair.comparison.metrics, 0, METRIC_NEW)->d,
	                    compared_run_value(&pair.new, "step_time_mean")->value, 1);
	release(&pair);
}

/* Half of the run twice as slow as the other half: that is no work, and may be the other way the next time. */
static void a_run_that_changed_its_speed_is_uneven(void **state)
{
	struct pair pair;

	make_turns(&pair.base, 200, 2, 1, 1);
	make_turns(&pair.new, 200, 2, 1, 1);
	for (int i = 100; i < 200; i++)
		pair.new.steps[i].dur_ns *= 2;
	set_mean(&pair.new);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "inconclusive");
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_NOISE), "uneven"));
	release(&pair);
}

static void some_slower_steps_are_a_regression_and_no_improvement(void **state)
{
	struct pair pair;

	make_turns(&pair.base, 200, 4, 1, 2);
	make_turns(&pair.new, 200, 4, 1, 3);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "regression");
	assert_string_equal(verdict_text(&pair, COMPARISON_METRIC), "step_time_mean");
	assert_double_equal(table_get(&pair.comparison.verdict, 0, COMPARISON_RATIO)->d, 0.2, 0.002);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "longer on average"));
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "although the median step is unchanged"));
	comparison_release(&pair.comparison);
	comparison_init(&pair.comparison, &pair.new, 1, &pair.base, 1, NULL);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "no difference");
	assert_string_equal(result_of(&pair, "step_time_mean"), "improvement");
	release(&pair);
}

/* It is not known how often that happens. */
static void one_long_step_is_no_regression(void **state)
{
	for (double factor = 10; factor < 2e5; factor *= 10) {
		struct pair pair;

		make_turns(&pair.base, 60, 2, 1, 1);
		make_turns(&pair.new, 60, 2, 1, 1);
		pair.new.steps[30].dur_ns *= factor;
		set_mean(&pair.new);
		compare(&pair);
		assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "no difference");
		assert_string_equal(result_of(&pair, "step_time_mean"), "inconclusive");
		release(&pair);
	}
}

static void add_between(struct compared_run *run, double ms, double error_ms)
{
	compared_run_add_value(run, "between_steps", 1e6 * ms);
	if (error_ms >= 0)
		compared_run_add_value(run, "between_steps_error", 1e6 * error_ms);
}

static void more_time_between_steps_is_a_regression(void **state)
{
	/* long each time, once, or not known which */
	static const double errors_ms[] = {0, 5, -1};

	for (int i = 0; i < 3; i++) {
		struct pair pair;

		make_run(&pair.base, 10, 0);
		make_run(&pair.new, 10, 0);
		add_between(&pair.base, 0, errors_ms[i] < 0 ? -1 : 0);
		add_between(&pair.new, 5, errors_ms[i]);
		compare(&pair);
		assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), i ? "no difference" : "regression");
		assert_string_equal(verdict_text(&pair, COMPARISON_METRIC), i ? "step_time" : "step_period");
		if (!i) {
			assert_string_equal(verdict_text(&pair, COMPARISON_CAUSE), "between steps +5.000 ms");
			assert_non_null(
				strstr(verdict_text(&pair, COMPARISON_SENTENCE), "the time between step starts"));
		}
		release(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slower_run_is_a_regression),
		cmocka_unit_test(values_that_are_not_finite_need_no_statistics),
		cmocka_unit_test(a_run_without_steps_is_not_measured),
		cmocka_unit_test(one_step_a_side_decides_nothing),
		cmocka_unit_test(few_steps_are_as_uncertain_in_their_mean),
		cmocka_unit_test(steps_that_take_turns_are_as_certain_as_others),
		cmocka_unit_test(steps_of_two_kinds_have_no_step_in_the_middle),
		cmocka_unit_test(a_run_that_changed_its_speed_is_uneven),
		cmocka_unit_test(some_slower_steps_are_a_regression_and_no_improvement),
		cmocka_unit_test(one_long_step_is_no_regression),
		cmocka_unit_test(more_time_between_steps_is_a_regression),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
