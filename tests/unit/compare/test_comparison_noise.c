/* SPDX-License-Identifier: Apache-2.0
 *
 * Noise of runs: contended machines, intervals, waits for a processor, and the noise that is assumed where one run a side is known.
 */
#include "compared_pair.h"
#include "near.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Other work makes half of the steps longer, by much and differently on the sides; the fastest ones say what the program takes. */
static void on_a_contended_machine_the_fastest_steps_tell(void **state)
{
	struct compared_run runs[10];
	struct comparison comparison;
	int row;

	for (int i = 0; i < 10; i++) {
		make_run(&runs[i], i < 5 ? 10 : 10.5, 0);
		for (int step = 0; step < STEPS; step++)
			if ((step * 7 + i) % 10 < 8)
				runs[i].steps[step].dur_ns *= 1.2 + 0.3 * ((i * 13) % 7);
		set_mean(&runs[i]);
	}
	comparison_init(&comparison, runs, 5, runs + 5, 5, NULL);
	row = comparison_metric(&comparison, "step_time_fastest");
	assert_string_equal(table_get(&comparison.metrics, 0, METRIC_RESULT)->text, "inconclusive");
	assert_string_equal(table_get(&comparison.metrics, row, METRIC_RESULT)->text, "regression");
	assert_double_equal(table_get(&comparison.metrics, row, METRIC_RATIO)->d, 0.05, 0.001);
	assert_non_null(strstr(table_get(&comparison.verdict, 0, COMPARISON_SENTENCE)->text, "fastest steps"));
	comparison_release(&comparison);
	/* when it is known that other work competed, the verdict is about them */
	compared_run_add_value(&runs[2], "cpu_contention", 0.6);
	comparison_init(&comparison, runs, 5, runs + 5, 5, NULL);
	assert_string_equal(table_get(&comparison.verdict, 0, COMPARISON_METRIC)->text, "step_time_fastest");
	assert_string_equal(table_get(&comparison.verdict, 0, COMPARISON_RESULT)->text, "regression");
	assert_int_equal(comparison_metric(&comparison, "step_time"), 1);
	comparison_release(&comparison);
	for (int i = 0; i < 10; i++)
		compared_run_release(&runs[i]);
}

/* Five runs a side whose levels scatter by `scatter` around 10 ms, the new ones `ratio` times that. */
static void compare_scattered(struct comparison *comparison, struct compared_run *runs, double scatter, double ratio)
{
	static const double places[] = {-1, 0, 0, 0, 1};

	for (int i = 0; i < 10; i++)
		make_run(&runs[i], 10 * exp(scatter * places[i % 5]) * (i < 5 ? 1 : ratio), 0);
	comparison_init(comparison, runs, 5, runs + 5, 5, NULL);
}

/* Of eight degrees of freedom half a 95 % interval is 1.03 times this scatter, and half a 90 % interval 0.83 times. */
static void that_nothing_changed_is_told_by_the_90_per_cent_interval(void **state)
{
	struct compared_run runs[10];
	struct comparison comparison;
	const struct table *metrics = &comparison.metrics;

	compare_scattered(&comparison, runs, 0.032, 1);
	assert_string_equal(table_get(metrics, 0, METRIC_RESULT)->text, "no difference");
	assert_true(table_get(metrics, 0, METRIC_HIGH)->d > 0.03 && table_get(metrics, 0, METRIC_LOW)->d < -0.03);
	assert_double_equal(log1p(table_get(metrics, 0, METRIC_SAME_HIGH)->d), 1.8595480 * 0.032 / sqrt(5), 1e-6);
	assert_string_equal(table_get(metrics, 0, METRIC_REASON)->text,
	                    "a change of 3 % is ruled out: -2.6 % to +2.7 % (90 %)");
	assert_string_equal(table_get(&comparison.verdict, 0, COMPARISON_SENTENCE)->text,
	                    "a step takes the same time: -2.6 % to +2.7 % (90 %), a change of 3 % is ruled out");
	assert_non_null(strstr(metrics->note, "step time p50 -2.6 % to +2.7 %"));
	comparison_release(&comparison);
	for (int i = 0; i < 10; i++)
		compared_run_release(&runs[i]);
	compare_scattered(&comparison, runs, 0.032, 1.01); /* half a 90 % interval above it lie 3.7 % */
	assert_string_equal(table_get(metrics, 0, METRIC_RESULT)->text, "inconclusive");
	assert_null(metrics->note);
	comparison_release(&comparison);
	for (int i = 0; i < 10; i++)
		compared_run_release(&runs[i]);
}

static void a_certain_change_that_is_small_keeps_its_own_interval(void **state)
{
	struct compared_run runs[10];
	struct comparison comparison;

	compare_scattered(&comparison, runs, 0.001, 1.005);
	assert_string_equal(table_get(&comparison.metrics, 0, METRIC_RESULT)->text, "no difference");
	assert_non_null(strstr(table_get(&comparison.metrics, 0, METRIC_REASON)->text, "certain, but less than 1 %"));
	assert_non_null(strstr(table_get(&comparison.verdict, 0, COMPARISON_SENTENCE)->text, "(95 %: +0."));
	assert_null(comparison.metrics.note);
	comparison_release(&comparison);
	for (int i = 0; i < 10; i++)
		compared_run_release(&runs[i]);
}

/* Steps of a run in which its thread waited for a processor, `waits` times as long as it ran or more, differently; of its CPU time a tenth more
 * is certain. */
static void make_waiting_runs(struct compared_run *runs, int count, double waits)
{
	for (int i = 0; i < count; i++) {
		make_run(&runs[i], i < count / 2 ? 10 : 11, 0);
		for (int n = 0; n < STEPS; n++) {
			struct compared_step *step = &runs[i].steps[n];

			step->has_cpu = n > 0;
			step->cpu_ns = step->running_ns = step->dur_ns;
			step->dur_ns *= 1 + waits * (1 + (i * 13) % 7);
		}
		set_mean(&runs[i]);
	}
}

static void what_waits_for_a_processor_is_told_by_its_cpu_time(void **state)
{
	struct compared_run runs[10];
	struct comparison comparison;
	int row;

	make_waiting_runs(runs, 10, 0.04);
	comparison_init(&comparison, runs, 5, runs + 5, 5, NULL);
	row = comparison_metric(&comparison, "step_cpu_time");
	assert_string_equal(table_get(&comparison.metrics, 0, METRIC_NAME)->text, "step_time");
	assert_string_equal(table_get(&comparison.metrics, 0, METRIC_RESULT)->text, "inconclusive");
	assert_string_equal(table_get(&comparison.metrics, row, METRIC_RESULT)->text, "regression");
	assert_double_equal(table_get(&comparison.metrics, row, METRIC_RATIO)->d, 0.1, 1e-9);
	assert_non_null(strstr(table_get(&comparison.verdict, 0, COMPARISON_SENTENCE)->text, "CPU time of a step"));
	row = comparison_metric(&comparison, "step_time_fastest");
	assert_double_equal(table_get(&comparison.metrics, row, METRIC_RATIO)->d, 0.1, 1e-9);
	comparison_release(&comparison);
	/* durations and CPU times are not compared with each other */
	for (int n = 0; n < STEPS; n++)
		runs[3].steps[n].has_cpu = n % 2;
	comparison_init(&comparison, runs, 5, runs + 5, 5, NULL);
	row = comparison_metric(&comparison, "step_cpu_time");
	assert_string_equal(table_get(&comparison.metrics, row, METRIC_RESULT)->text, "not measured");
	row = comparison_metric(&comparison, "step_time_fastest");
	assert_true(table_get(&comparison.metrics, row, METRIC_BASE)->d > 1.03 * 9.9e6);
	comparison_release(&comparison);
	for (int i = 0; i < 10; i++)
		compared_run_release(&runs[i]);
}

/* The machine's pressure need not be known: steps say themselves that they waited. */
static void steps_that_waited_long_are_compared_without_their_waits(void **state)
{
	struct compared_run runs[10];
	struct comparison comparison;

	make_waiting_runs(runs, 10, 0.7);
	comparison_init(&comparison, runs, 5, runs + 5, 5, NULL);
	assert_string_equal(table_get(&comparison.verdict, 0, COMPARISON_METRIC)->text, "step_time_fastest");
	assert_string_equal(table_get(&comparison.verdict, 0, COMPARISON_RESULT)->text, "regression");
	assert_non_null(
		strstr(table_get(&comparison.verdict, 0, COMPARISON_NOISE)->text, "without their waits for a CPU"));
	comparison_release(&comparison);
	for (int i = 0; i < 10; i++)
		compared_run_release(&runs[i]);
}

/* Half the 95 % interval of the median's change of two runs alike, whose steps used a processor for such a share of their time; 0: that is
 * not known. */
static double half_of_two(double scatter, double used, double pressure)
{
	struct compared_run runs[2];
	struct comparison comparison;
	double half;

	for (int side = 0; side < 2; side++) {
		make_run(&runs[side], 10, 0);
		if (pressure > 0)
			compared_run_add_value(&runs[side], "cpu_contention", pressure);
		for (int n = 0; n < STEPS; n++) {
			struct compared_step *step = &runs[side].steps[n];

			step->dur_ns *= 1 + scatter * ((n * 13) % 25 - 12) / 12;
			step->has_cpu = used > 0;
			step->cpu_ns = step->running_ns = used * step->dur_ns;
		}
	}
	comparison_init(&comparison, &runs[0], 1, &runs[1], 1, NULL);
	half = table_get(&comparison.metrics, comparison_metric(&comparison, "step_time"), METRIC_HIGH)->d;
	comparison_release(&comparison);
	compared_run_release(&runs[0]);
	compared_run_release(&runs[1]);
	return half;
}

/* 1 % from run to run, or what their steps give reason to expect; 2.77 = 1.96 * sqrt(2) */
static void the_noise_that_is_assumed_follows_from_the_steps(void **state)
{
	assert_double_equal(half_of_two(0, 1, 0), 0.0277, 0.002);
	/* evenly from -10 to 10 %: the middle half is 10 % wide, 7.4 % is the deviation, half of it what runs differ by */
	assert_true(half_of_two(0.1, 1, 0) > 2.77 * 0.037);
	assert_true(half_of_two(0.1, 1, 0) < 2 * 2.77 * 0.037);
	/* that the work differs from step to step, or a device does, says nothing about runs */
	assert_true(half_of_two(0.1, 0, 0) < 0.7 * half_of_two(0.1, 1, 0));
	/* somebody always waited for a CPU: steps that are known not to have are longer by what the others did to caches */
	assert_double_equal(half_of_two(0, 1, 1), 2.77 * hypot(0.01, 0.04), 0.01);
	assert_true(half_of_two(0, 0, 1) > 2.77 * 0.25);
	/* a tenth of their time was such waits */
	assert_double_equal(half_of_two(0, 0.9, 0), 2.77 * hypot(0.01, 0.05), 0.02);
}

static const char *noise_of_fastest(const struct comparison *comparison, double *ratio)
{
	*ratio = table_get(&comparison->metrics, comparison_metric(comparison, "step_time_fastest"), METRIC_RATIO)->d;
	return table_get(&comparison->verdict, 0, COMPARISON_NOISE)->text;
}

/* Steps of 7 ms of CPU time in 10 ms; those of the new side, all but so many, also waited for a lock for a moment. */
static void cpu_time_is_not_compared_with_the_duration(void **state)
{
	static const int without_waits[] = {0, STEPS / 2, STEPS};

	for (int i = 0; i < 3; i++) {
		struct compared_run runs[2];
		struct comparison comparison;
		const char *noise;
		double ratio;

		for (int side = 0; side < 2; side++) {
			make_run(&runs[side], 10, 0);
			compared_run_add_value(&runs[side], "cpu_contention", 0.6);
			for (int n = 0; n < STEPS; n++) {
				struct compared_step *step = &runs[side].steps[n];

				step->has_cpu = true;
				step->cpu_ns = 0.7 * step->dur_ns;
				step->running_ns = side && n >= without_waits[i] ? step->dur_ns : step->cpu_ns;
			}
		}
		for (int side = 0; side < 2; side++) {
			comparison_init(&comparison, &runs[side], 1, &runs[!side], 1, NULL);
			noise = noise_of_fastest(&comparison, &ratio);
			assert_double_equal(ratio, 0, 1e-9);
			assert_non_null(strstr(noise, "the fastest steps are compared"));
			assert_int_equal(strstr(noise, "without their waits for a CPU") != NULL, i == 2);
			comparison_release(&comparison);
		}
		compared_run_release(&runs[0]);
		compared_run_release(&runs[1]);
	}
}

/* An uncertain metric among many is no finding; alone it would be. */
static void the_other_metrics_share_their_chance_of_error(void **state)
{
	static const char *const names[] = {"final_loss", "peak_memory", "step_time_p95", "tokens_per_s"};
	struct compared_run runs[6];
	struct comparison comparison;
	int row;

	for (int i = 0; i < 6; i++) {
		make_run(&runs[i], 10, 0);
		/* p = 0.02 by itself */
		compared_run_add_value(&runs[i], names[0], exp(1 + 0.01 * (i % 3) + (i < 3 ? 0 : 0.03)));
		for (int n = 1; n < 4; n++)
			compared_run_add_value(&runs[i], names[n], exp(1 + 0.01 * (i % 3) + 0.001 * n * (i == 4)));
	}
	comparison_init(&comparison, runs, 3, runs + 3, 3, NULL);
	row = comparison_metric(&comparison, names[0]);
	assert_string_equal(table_get(&comparison.metrics, row, METRIC_RESULT)->text, "inconclusive");
	assert_true(table_get(&comparison.metrics, row, METRIC_LOW)->d > 0);
	assert_true(table_get(&comparison.metrics, row, METRIC_P)->d > 0.08);
	assert_non_null(strstr(table_text(&comparison.metrics, row, METRIC_REASON), "likely by chance"));
	comparison_release(&comparison);
	for (int i = 0; i < 6; i++)
		compared_run_release(&runs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_a_contended_machine_the_fastest_steps_tell),
		cmocka_unit_test(that_nothing_changed_is_told_by_the_90_per_cent_interval),
		cmocka_unit_test(a_certain_change_that_is_small_keeps_its_own_interval),
		cmocka_unit_test(what_waits_for_a_processor_is_told_by_its_cpu_time),
		cmocka_unit_test(steps_that_waited_long_are_compared_without_their_waits),
		cmocka_unit_test(the_noise_that_is_assumed_follows_from_the_steps),
		cmocka_unit_test(cpu_time_is_not_compared_with_the_duration),
		cmocka_unit_test(the_other_metrics_share_their_chance_of_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
