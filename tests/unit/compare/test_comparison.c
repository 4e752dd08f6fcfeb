/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons of runs that are made by hand: what the tables must say, and that they sum up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compare/comparison.h"

#include "base/memory.h"
#include "hand_model.h"
#include "near.h"

#include <math.h>
#include <string.h>

#define STEPS 50

/* Steps of `ms`, each a little different; compared_run_release() gives them back. */
static void make_run(struct compared_run *run, double ms, double tokens)
{
	memset(run, 0, sizeof(*run));
	arena_init(&run->arena, 0);
	run->name = run->path = "run";
	run->steps = memory_resize(NULL, STEPS, sizeof(*run->steps));
	run->steps_count = STEPS;
	memset(run->steps, 0, STEPS * sizeof(*run->steps));
	for (int i = 0; i < STEPS; i++) {
		run->steps[i] = (struct compared_step){.number = i,
		                                       .dur_ns = 1e6 * ms * (1 + 0.001 * ((i * 7) % 5 - 2)),
		                                       .has_phases = true,
		                                       .has_tokens = tokens > 0,
		                                       .tokens = tokens};
	}
	if (tokens > 0) {
		compared_run_add_fact(run, FACT_WORK, "tokens per step", arena_printf(&run->arena, "%.0f", tokens));
		compared_run_add_value(run, "tokens_per_s", tokens / ms * 1000);
	}
	compared_run_add_value(run, "step_time_mean", 1e6 * ms);
}

/* Of the steps as they are now. */
static void set_mean(struct compared_run *run)
{
	double sum_ns = 0;

	for (size_t i = 0; i < run->steps_count; i++)
		sum_ns += run->steps[i].dur_ns;
	for (size_t i = 0; i < run->values_count; i++)
		if (!strcmp(run->values[i].name, "step_time_mean"))
			run->values[i].value = sum_ns / (double)run->steps_count;
}

static void add_part(struct compared_run *run, const char *level, const char *name, const char *family, double ms)
{
	compared_run_add_part(run, &(struct compared_part){level, name, family, 1e6 * ms, true, 1});
}

struct pair {
	struct compared_run base, new;
	struct comparison comparison;
};

static void compare(struct pair *pair)
{
	comparison_init(&pair->comparison, &pair->base, 1, &pair->new, 1, NULL);
}

static void release(struct pair *pair)
{
	comparison_release(&pair->comparison);
	compared_run_release(&pair->base);
	compared_run_release(&pair->new);
}

static const char *verdict_text(const struct pair *pair, int column)
{
	const struct table_cell *cell = table_get(&pair->comparison.verdict, 0, column);

	return cell->has_value ? cell->text : NULL;
}

static const char *result_of(const struct pair *pair, const char *metric)
{
	return table_get(&pair->comparison.metrics, comparison_metric(&pair->comparison, metric), METRIC_RESULT)->text;
}

static void a_slower_run_is_a_regression(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 11, 0);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_REGRESSION);
	assert_double_equal(table_get(&pair.comparison.verdict, 0, COMPARISON_RATIO)->d, 0.1, 1e-9);
	assert_string_equal(result_of(&pair, "step_time_mean"), RESULT_REGRESSION);
	assert_string_equal(result_of(&pair, "peak_memory"), RESULT_NOT_MEASURED);
	assert_true(table_get(&pair.comparison.verdict, 0, COMPARISON_IS_COMPARABLE)->b);
	release(&pair);
}

static void half_the_tokens_are_compared_by_the_token(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 1000);
	make_run(&pair.new, 6, 500);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_METRIC), "time_per_token");
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_REGRESSION);
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
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_NOT_COMPARABLE);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "train.micro_batch 8 -> 4"));
	assert_string_equal(result_of(&pair, "step_time_mean"), RESULT_NOT_COMPARABLE);
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
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_REGRESSION);
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
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_NOT_COMPARABLE);
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
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_REGRESSION);
	assert_string_equal(verdict_text(&pair, COMPARISON_EXPLANATION), "not the same: devices 8 -> 4");
	assert_int_equal(pair.comparison.differences.row_count, 1);
	release(&pair);
}

static void contributions_sum_to_the_difference_of_their_level(void **state)
{
	const struct table *table;
	double sum = 0, shares = 0;
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 11, 0);
	add_part(&pair.base, "operator", "mm", NULL, 6);
	add_part(&pair.base, "operator", "gone", NULL, 0.25);
	add_part(&pair.base, "operator", "(rest)", NULL, 3);
	add_part(&pair.new, "operator", "mm", NULL, 7.25);
	add_part(&pair.new, "operator", "added", NULL, 0.125);
	add_part(&pair.new, "operator", "(rest)", NULL, 2.875);
	compare(&pair);
	table = &pair.comparison.contributions;
	assert_int_equal(table->row_count, 4);
	assert_string_equal(table_get(table, 0, CONTRIBUTION_NAME)->text, "mm");
	assert_string_equal(table_get(table, 1, CONTRIBUTION_NOTE)->text, "only in the base");
	for (int row = 0; row < table->row_count; row++) {
		sum += table_get(table, row, CONTRIBUTION_DELTA)->d;
		shares += table_get(table, row, CONTRIBUTION_RATIO)->d;
	}
	assert_double_equal(sum, 1e6, 1e-3);
	assert_double_equal(shares, 1, 1e-12);
	assert_false(table_get(table, 0, CONTRIBUTION_IS_CERTAIN)->has_value);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_CAUSE), "mm +1.250 ms"));
	release(&pair);
}

static void rows_that_cancel_out_have_no_shares(void **state)
{
	const struct table *table;
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 11, 0);
	add_part(&pair.base, "operator", "mm", NULL, 5);
	add_part(&pair.base, "operator", "add", NULL, 5);
	add_part(&pair.new, "operator", "mm", NULL, 9.5); /* 450 % of the difference */
	add_part(&pair.new, "operator", "add", NULL, 1.5);
	compare(&pair);
	table = &pair.comparison.contributions;
	assert_int_equal(table->row_count, 2);
	for (int row = 0; row < table->row_count; row++) {
		const struct table_cell *share = table_get(table, row, CONTRIBUTION_RATIO);

		assert_false(share->has_value);
		assert_string_equal(share->reason, "rows of this level cancel out");
	}
	assert_string_equal(verdict_text(&pair, COMPARISON_CAUSE), "operator: mm +4.500 ms");
	release(&pair);
}

/* The cause of a run that is slower by `changes`, in operators a, b, c, ...; the last is called "other". */
static const char *cause_of_changes(struct pair *pair, const double *changes, int count)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

	make_run(&pair->base, 10, 0);
	make_run(&pair->new, 11, 0);
	for (int i = 0; i < count; i++) {
		const char *name = i + 1 < count ? names[i] : "other";

		add_part(&pair->base, "operator", name, NULL, 1);
		add_part(&pair->new, "operator", name, NULL, 1 + changes[i]);
	}
	compare(pair);
	return verdict_text(pair, COMPARISON_CAUSE);
}

static void all_that_is_to_blame_alike_is_named(void **state)
{
	static const double five[] = {0.2, 0.21, 0.19, 0.2, 0.2, 0}, two[] = {0.5, 0.1, 0.3, 0.1, 0},
			    little[] = {0.3, 0.08, 0.08, 0.08, 0.08, 0.38}, least[] = {0.15, 0.05, 0.05, 0.75},
			    against[] = {0.9, -0.6, 0.7, 0};
	struct pair pair;

	assert_string_equal(cause_of_changes(&pair, five, 6),
	                    "operator: b +210.0 us, a +200.0 us, d +200.0 us and 2 more like these");
	release(&pair);
	assert_string_equal(cause_of_changes(&pair, two, 5), "operator: a +500.0 us, c +300.0 us");
	release(&pair);
	assert_string_equal(cause_of_changes(&pair, little, 6), "operator: a +300.0 us, among others");
	release(&pair);
	assert_null(cause_of_changes(&pair, least, 4));
	release(&pair);
	assert_string_equal(cause_of_changes(&pair, against, 4), "operator: a +900.0 us, c +700.0 us");
	release(&pair);
}

static void renamed_kernels_are_one_row(void **state)
{
	const struct table *table;
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 11, 0);
	add_part(&pair.base, "kernel", "sgemm_64", "matrix product", 4);
	add_part(&pair.base, "kernel", "sgemm_128", "matrix product", 1);
	add_part(&pair.base, "kernel", "both_gemm", "matrix product", 2);
	add_part(&pair.base, "kernel", "old_add", "old_add", 1);
	add_part(&pair.new, "kernel", "nvjet", "matrix product", 6);
	add_part(&pair.new, "kernel", "both_gemm", "matrix product", 2);
	compare(&pair);
	table = &pair.comparison.contributions;
	assert_int_equal(table->row_count, 3);
	assert_string_equal(table_get(table, 0, CONTRIBUTION_NAME)->text, "matrix product (renamed)");
	assert_double_equal(table_get(table, 0, CONTRIBUTION_DELTA)->d, 1e6, 1e-3);
	assert_double_equal(table_get(table, 0, CONTRIBUTION_BASE_CALLS)->d, 2, 1e-12);
	assert_string_equal(table_get(table, 1, CONTRIBUTION_NAME)->text, "old_add");
	assert_string_equal(table_get(table, 2, CONTRIBUTION_NAME)->text, "both_gemm");
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
	assert_string_equal(result_of(&pair, "not_finite"), RESULT_REGRESSION);
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
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_NOT_MEASURED);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "it had none"));
	release(&pair);
}

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
	assert_string_equal(table_get(&comparison.metrics, 0, METRIC_RESULT)->text, RESULT_INCONCLUSIVE);
	assert_string_equal(table_get(&comparison.metrics, row, METRIC_RESULT)->text, RESULT_REGRESSION);
	assert_double_equal(table_get(&comparison.metrics, row, METRIC_RATIO)->d, 0.05, 0.001);
	assert_non_null(strstr(table_get(&comparison.verdict, 0, COMPARISON_SENTENCE)->text, "fastest steps"));
	comparison_release(&comparison);
	/* when it is known that other work competed, the verdict is about them */
	compared_run_add_value(&runs[2], "cpu_contention", 0.6);
	comparison_init(&comparison, runs, 5, runs + 5, 5, NULL);
	assert_string_equal(table_get(&comparison.verdict, 0, COMPARISON_METRIC)->text, "step_time_fastest");
	assert_string_equal(table_get(&comparison.verdict, 0, COMPARISON_RESULT)->text, RESULT_REGRESSION);
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
	assert_string_equal(table_get(metrics, 0, METRIC_RESULT)->text, RESULT_SAME);
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
	assert_string_equal(table_get(metrics, 0, METRIC_RESULT)->text, RESULT_INCONCLUSIVE);
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
	assert_string_equal(table_get(&comparison.metrics, 0, METRIC_RESULT)->text, RESULT_SAME);
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
	assert_string_equal(table_get(&comparison.metrics, 0, METRIC_RESULT)->text, RESULT_INCONCLUSIVE);
	assert_string_equal(table_get(&comparison.metrics, row, METRIC_RESULT)->text, RESULT_REGRESSION);
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
	assert_string_equal(table_get(&comparison.metrics, row, METRIC_RESULT)->text, RESULT_NOT_MEASURED);
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
	assert_string_equal(table_get(&comparison.verdict, 0, COMPARISON_RESULT)->text, RESULT_REGRESSION);
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
	assert_string_equal(table_get(&comparison.metrics, row, METRIC_RESULT)->text, RESULT_INCONCLUSIVE);
	assert_true(table_get(&comparison.metrics, row, METRIC_LOW)->d > 0);
	assert_true(table_get(&comparison.metrics, row, METRIC_P)->d > 0.08);
	assert_non_null(strstr(table_text(&comparison.metrics, row, METRIC_REASON), "by itself"));
	comparison_release(&comparison);
	for (int i = 0; i < 6; i++)
		compared_run_release(&runs[i]);
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
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_NOT_COMPARABLE);
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
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_IMPROVEMENT);
	release(&pair);
}

static void one_step_a_side_decides_nothing(void **state)
{
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 20, 0);
	pair.base.steps_count = pair.new.steps_count = 1;
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_INCONCLUSIVE);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "a run with one step"));
	assert_string_equal(result_of(&pair, "step_time_mean"), RESULT_INCONCLUSIVE);
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
	assert_string_equal(result_of(&pair, "step_time_mean"), RESULT_INCONCLUSIVE);
	assert_double_equal(table_get(&pair.comparison.metrics, mean, METRIC_HIGH)->d,
	                    table_get(&pair.comparison.metrics, 0, METRIC_HIGH)->d, 0.006);
	release(&pair);
}

/* ---- steps of two kinds, and means that tell what the median does not ---- */

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
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_REGRESSION);
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
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_SAME);
	assert_double_equal(table_get(&pair.comparison.metrics, 0, METRIC_BASE)->d, 1.5e6, 2e3);
	assert_string_equal(table_text(&pair.comparison.metrics, 0, METRIC_TITLE), "step time evened out");
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_METHOD), "steps evened out"));
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
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_INCONCLUSIVE);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_NOISE), "uneven"));
	release(&pair);
}

static void some_slower_steps_are_a_regression_and_no_improvement(void **state)
{
	struct pair pair;

	make_turns(&pair.base, 200, 4, 1, 2);
	make_turns(&pair.new, 200, 4, 1, 3);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_REGRESSION);
	assert_string_equal(verdict_text(&pair, COMPARISON_METRIC), "step_time_mean");
	assert_double_equal(table_get(&pair.comparison.verdict, 0, COMPARISON_RATIO)->d, 0.2, 0.002);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "longer on average"));
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "though one in the middle takes as long"));
	comparison_release(&pair.comparison);
	comparison_init(&pair.comparison, &pair.new, 1, &pair.base, 1, NULL);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_SAME);
	assert_string_equal(result_of(&pair, "step_time_mean"), RESULT_IMPROVEMENT);
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
		assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_SAME);
		assert_string_equal(result_of(&pair, "step_time_mean"), RESULT_INCONCLUSIVE);
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
		assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), i ? RESULT_SAME : RESULT_REGRESSION);
		assert_string_equal(verdict_text(&pair, COMPARISON_METRIC), i ? "step_time" : "step_period");
		if (!i) {
			assert_string_equal(verdict_text(&pair, COMPARISON_CAUSE), "between steps +5.000 ms");
			assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "from one step to the next"));
		}
		release(&pair);
	}
}

/* ---- runs that were read ---- */

static void read_run(struct compared_run *run, bool has_steps)
{
	const struct analysis_options options = {.has_steps = has_steps, .first_step = 2, .last_step = 3};
	struct report report;
	struct model model;

	hand_model_init(&model);
	model_add_value(&model, 0, intern_add(&model.strings, "host.pressure.cpu.some_ratio"), false, 0, 0.5);
	report_init(&report, &model, &options, "run");
	compared_run_init(run, &report);
	report_release(&report);
	model_release(&model);
}

static void what_competed_is_known_of_a_part_of_the_run_too(void **state)
{
	for (int has_steps = 0; has_steps < 2; has_steps++) {
		struct compared_run run;

		read_run(&run, has_steps);
		assert_int_equal(run.steps_count, has_steps ? 2 : 5);
		assert_non_null(compared_run_value(&run, "cpu_contention"));
		assert_double_equal(compared_run_value(&run, "cpu_contention")->value, 0.5, 1e-9);
		compared_run_release(&run);
	}
}

/* Of the steps 0 to 3 of the hand model, 110, 120, 130 and 140 ms in the mean of its ranks, phases of the first two were removed again. */
static void phases_sum_to_the_step_where_not_all_are_known(void **state)
{
	const struct analysis_options options = {.has_steps = true, .first_step = 0, .last_step = 3};
	struct compared_run run;
	struct report report;
	struct model model;
	double sum = 0, step = 0, unknown = 0;

	hand_model_init(&model);
	for (uint32_t i = 0; i < model.steps_count; i++)
		model.steps[i].has_lost_phases = model.steps[i].number < 2;
	report_init(&report, &model, &options, "run");
	compared_run_init(&run, &report);
	for (size_t i = 0; i < run.steps_count; i++)
		step += run.steps[i].dur_ns / (double)run.steps_count;
	for (size_t i = 0; i < run.parts_count; i++) {
		sum += strcmp(run.parts[i].level, "phase") ? 0 : run.parts[i].amount;
		unknown += strcmp(run.parts[i].name, "(steps whose phases are not known)") ? 0 : run.parts[i].amount;
	}
	assert_int_equal(run.steps_count, 4);
	assert_double_equal(sum, step, 1e-6 * step);
	assert_double_equal(unknown, -10.0 * MS, 1);
	compared_run_release(&run);
	report_release(&report);
	model_release(&model);
}

static void what_is_missing_from_a_side_is_said(void **state)
{
	struct pair pair;

	read_run(&pair.base, false);
	read_run(&pair.new, false);
	pair.new.facts_count = 0;
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_DAMAGE),
	                    "base 'run': events were dropped because the buffer was full (7)");
	assert_false(compared_run_value(&pair.base, "between_steps")->has_value);
	release(&pair);
}

/* ---- clocks ---- */

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
			assert_non_null(strstr(pair.comparison.contributions.note, "clocks of the devices"));
		release(&pair);
	}
}

static void only_words_of_names_are_clocks(void **state)
{
	static const struct {
		const char *name;
		bool is_clock;
	} cases[] = {
		{"gpu0.clocks.sm", true},      {"gpu0.clocks.sm MHz", true},
		{"cpu0.clock_hz", true},       {"clock MHz", true},
		{"gpu0.SM.Clock", true},       {"wall_clock_s", false},
		{"clockwork", false},          {"wall clock", false},
		{"gpu0.clocks.max.sm", false}, {"clocks_event_reasons.active", false},
	};
	const struct analysis_options options = {0};
	struct compared_run run;
	struct report report;
	struct model model;

	hand_model_init(&model);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		model_add_value(&model, 0, intern_add(&model.strings, cases[i].name), false, 0, 1980);
	report_init(&report, &model, &options, "run");
	compared_run_init(&run, &report);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(compared_run_fact(&run, cases[i].name) != NULL, cases[i].is_clock);
	compared_run_release(&run);
	report_release(&report);
	model_release(&model);
}

/* What is another one in each run is no fact: else no two runs are the same. */
static void how_long_something_took_is_no_fact(void **state)
{
	const struct analysis_options options = {0};
	struct compared_run run;
	struct report report;
	struct model model;

	hand_model_init(&model);
	model_add_meta(&model, 0, "torch.owners", "yes: 3 looks at optimizers, 2.8 ms in all");
	model_add_meta(&model, 0, "torch.version", "2.13.0");
	report_init(&report, &model, &options, "run");
	compared_run_init(&run, &report);
	assert_null(compared_run_fact(&run, "torch.owners"));
	assert_non_null(compared_run_fact(&run, "torch.version"));
	compared_run_release(&run);
	report_release(&report);
	model_release(&model);
}

/* ---- functions of sampled stacks ---- */

static void add_function(struct compared_run *run, const char *what, const char *name, const char *file, double self,
                         double total)
{
	compared_run_add_function(run,
	                          &(struct compared_function){what, name, file, self, total, self / 100, total / 100});
}

static void make_profiles(struct pair *pair)
{
	*pair = (struct pair){0};
	for (int side = 0; side < 2; side++) {
		struct compared_run *run = side ? &pair->new : &pair->base;

		arena_init(&run->arena, 0);
		run->name = run->path = "profile";
		run->no_steps = "stacks are not of steps";
	}
}

static const struct table_cell *function_cell(const struct pair *pair, const char *name, int column)
{
	const struct table *functions = &pair->comparison.functions;

	for (int row = 0; row < functions->row_count; row++)
		if (!strcmp(table_text(functions, row, FUNCTIONS_NAME), name))
			return table_get(functions, row, column);
	fail_msg("no function %s", name);
	return NULL;
}

static void shares_of_functions_are_compared(void **state)
{
	struct pair pair;
	double sum = 0;

	(void)state;
	make_profiles(&pair);
	add_function(&pair.base, "samples", "slow", "/main/a.py", 60, 100);
	add_function(&pair.base, "samples", "gone", "/main/a.py", 40, 40);
	add_function(&pair.new, "samples", "slow", "/mine/a.py", 90, 100);
	add_function(&pair.new, "samples", "came", NULL, 10, 10);
	compare(&pair);
	assert_int_equal(pair.comparison.functions.row_count, 3);
	for (int row = 0; row < 3; row++)
		sum += table_get(&pair.comparison.functions, row, FUNCTIONS_SELF_CHANGE)->d;
	assert_double_equal(sum, 0, 1e-12);
	assert_double_equal(function_cell(&pair, "slow", FUNCTIONS_SELF_CHANGE)->d, 0.3, 1e-12);
	assert_double_equal(function_cell(&pair, "slow", FUNCTIONS_TOTAL_CHANGE)->d, 0, 1e-12);
	assert_string_equal(function_cell(&pair, "slow", FUNCTIONS_NOTE)->text, "in another folder");
	assert_string_equal(function_cell(&pair, "slow", FUNCTIONS_FILE)->text, "/mine/a.py");
	assert_string_equal(function_cell(&pair, "gone", FUNCTIONS_NOTE)->text, "only in the base");
	assert_string_equal(function_cell(&pair, "came", FUNCTIONS_NOTE)->text, "only on the new side");
	assert_false(function_cell(&pair, "slow", FUNCTIONS_IS_CERTAIN)->has_value);
	assert_string_equal(table_text(&pair.comparison.functions, 0, FUNCTIONS_NAME), "gone");
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_NOT_MEASURED);
	assert_string_equal(verdict_text(&pair, COMPARISON_CAUSE),
	                    "function: gone 40.0 % -> 0.0 % of the samples (self)");
	release(&pair);
}

/* Two of one name in one file name: which is which cannot be told. */
static void functions_are_not_joined_by_guess(void **state)
{
	struct pair pair;

	(void)state;
	make_profiles(&pair);
	add_function(&pair.base, "time", "forward", "/a/x/model.py", 50, 50);
	add_function(&pair.base, "time", "forward", "/a/y/model.py", 50, 50);
	add_function(&pair.new, "time", "forward", "/b/x/model.py", 100, 100);
	compare(&pair);
	assert_int_equal(pair.comparison.functions.row_count, 3);
	release(&pair);
}

static void an_address_in_a_name_is_no_difference(void **state)
{
	struct pair pair;

	(void)state;
	make_profiles(&pair);
	add_function(&pair.base, "time", "<built-in method mean of Tensor object at 0x7f01a>", NULL, 100, 100);
	add_function(&pair.new, "time", "<built-in_method_x_at_0x7f02b>", NULL, 20, 20);
	add_function(&pair.new, "time", "<built-in method mean of Tensor object at 0x7f02b>", NULL, 80, 80);
	compare(&pair);
	assert_int_equal(pair.comparison.functions.row_count, 2);
	assert_double_equal(function_cell(&pair, "<built-in method mean of Tensor object>", FUNCTIONS_SELF_CHANGE)->d,
	                    -0.2, 1e-12);
	assert_double_equal(function_cell(&pair, "<built-in_method_x>", FUNCTIONS_NEW_SELF)->d, 20, 1e-12);
	release(&pair);
}

static void what_counts_different_things_is_not_compared(void **state)
{
	struct pair pair;

	(void)state;
	make_profiles(&pair);
	add_function(&pair.base, "time", "f", NULL, 100, 100);
	add_function(&pair.base, "bytes", "f", NULL, 100, 100);
	add_function(&pair.new, "samples", "f", NULL, 100, 100);
	compare(&pair);
	assert_int_equal(pair.comparison.functions.row_count, 0);
	assert_non_null(strstr(pair.comparison.functions.empty, "do not count the same"));
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "cannot be compared"));
	release(&pair);
}

static void repeats_tell_which_functions_changed_for_certain(void **state)
{
	static const double shares[2][3] = {{50, 52, 48}, {70, 71, 69}};
	struct compared_run runs[2][3];
	struct pair pair = {0};

	(void)state;
	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < 3; i++) {
			struct compared_run *run = &runs[side][i];

			memset(run, 0, sizeof(*run));
			arena_init(&run->arena, 0);
			run->name = run->path = "profile";
			add_function(run, "time", "changed", NULL, shares[side][i], 100);
			add_function(run, "time", "steady", NULL, 10 + i, 10 + i);
			add_function(run, "time", "rest", NULL, 90 - i - shares[side][i], 50);
		}
	}
	comparison_init(&pair.comparison, runs[0], 3, runs[1], 3, NULL);
	assert_true(function_cell(&pair, "changed", FUNCTIONS_IS_CERTAIN)->b);
	assert_false(function_cell(&pair, "steady", FUNCTIONS_IS_CERTAIN)->b);
	assert_double_equal(function_cell(&pair, "changed", FUNCTIONS_NEW_SELF_RATIO)->d, 0.7, 1e-12);
	comparison_release(&pair.comparison);
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < 3; i++)
			compared_run_release(&runs[side][i]);
}

/* A kept run has the functions with the largest shares; the others are one row there. */
static void what_was_left_out_of_a_side_is_not_said_to_be_new(void **state)
{
	struct pair pair;
	double sum = 0;

	(void)state;
	make_profiles(&pair);
	add_function(&pair.base, "time", "large", NULL, 80, 80);
	add_function(&pair.base, "time", COMPARED_OTHERS, NULL, 20, 20);
	add_function(&pair.new, "time", "large", NULL, 60, 60);
	add_function(&pair.new, "time", "small", NULL, 40, 40);
	compare(&pair);
	for (int row = 0; row < pair.comparison.functions.row_count; row++)
		sum += table_get(&pair.comparison.functions, row, FUNCTIONS_SELF_CHANGE)->d;
	assert_double_equal(sum, 0, 1e-12);
	assert_false(function_cell(&pair, "small", FUNCTIONS_BASE_SELF_RATIO)->has_value);
	assert_false(function_cell(&pair, "small", FUNCTIONS_BASE_TOTAL)->has_value);
	assert_double_equal(function_cell(&pair, "small", FUNCTIONS_NEW_SELF_RATIO)->d, 0.4, 1e-12);
	assert_non_null(strstr(function_cell(&pair, "small", FUNCTIONS_NOTE)->text, "one of the others"));
	assert_double_equal(function_cell(&pair, COMPARED_OTHERS, FUNCTIONS_BASE_SELF_RATIO)->d, 0.2, 1e-12);
	assert_string_equal(verdict_text(&pair, COMPARISON_CAUSE),
	                    "function: small (small) -> 40.0 % of the samples (self)");
	release(&pair);
}

/* ---- memory ---- */

static void add_memory(struct compared_run *run, const char *name, double bytes)
{
	compared_run_add_part(run, &(struct compared_part){COMPARED_MEMORY "category", name, NULL, bytes, true, 1});
}

static void make_snapshot(struct compared_run *run, double weights, double activations)
{
	memset(run, 0, sizeof(*run));
	arena_init(&run->arena, 0);
	run->name = run->path = "snapshot";
	run->no_steps = "the snapshot has no steps";
	add_memory(run, "weights", weights);
	add_memory(run, "activations", activations);
	compared_run_add_value(run, "device_memory", weights + activations);
}

static void one_snapshot_each_has_no_interval(void **state)
{
	struct pair pair;
	const struct table *memory = &pair.comparison.memory;

	(void)state;
	make_snapshot(&pair.base, 1000, 1000);
	make_snapshot(&pair.new, 1000, 1500);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_METRIC), "device_memory");
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_INCONCLUSIVE);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "no interval"));
	assert_false(table_get(&pair.comparison.verdict, 0, COMPARISON_LOW)->has_value);
	assert_double_equal(table_get(&pair.comparison.verdict, 0, COMPARISON_RATIO)->d, 0.25, 1e-12);
	assert_int_equal(memory->row_count, 2);
	assert_string_equal(table_text(memory, 0, CONTRIBUTION_NAME), "activations");
	assert_double_equal(table_get(memory, 0, CONTRIBUTION_DELTA)->d, 500, 1e-9);
	assert_false(table_get(memory, 0, CONTRIBUTION_LOW)->has_value);
	assert_false(table_get(memory, 0, CONTRIBUTION_IS_CERTAIN)->has_value);
	assert_int_equal(pair.comparison.contributions.row_count, 0);
	release(&pair);
}

static void repeated_snapshots_have_a_verdict_of_their_peak(void **state)
{
	struct compared_run runs[2][3];
	struct pair pair = {0};
	const struct table *memory = &pair.comparison.memory;

	(void)state;
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < 3; i++)
			make_snapshot(&runs[side][i], 1000, side ? 1500 + i : 1000 - i);
	comparison_init(&pair.comparison, runs[0], 3, runs[1], 3, NULL);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), RESULT_REGRESSION);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "peak memory of a device"));
	assert_true(table_get(memory, 0, CONTRIBUTION_IS_CERTAIN)->b);
	assert_true(table_get(memory, 0, CONTRIBUTION_LOW)->d < 502 && table_get(memory, 0, CONTRIBUTION_LOW)->d > 490);
	assert_true(table_get(memory, 0, CONTRIBUTION_HIGH)->d > 502);
	assert_false(table_get(memory, 1, CONTRIBUTION_IS_CERTAIN)->b);
	comparison_release(&pair.comparison);
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < 3; i++)
			compared_run_release(&runs[side][i]);
}

/* ---- telemetry ---- */

static void add_telemetry(struct compared_run *run, const char *quantity, const char *unit, double median, double error)
{
	compared_run_add_telemetry(run, &(struct compared_telemetry){"GPU 0", quantity, unit, median, error, 1, 100});
}

static const char *telemetry_result(const struct pair *pair, const char *quantity)
{
	const struct table *telemetry = &pair->comparison.telemetry;

	for (int row = 0; row < telemetry->row_count; row++)
		if (!strcmp(table_text(telemetry, row, TELEMETRY_CHANGE_QUANTITY), quantity))
			return table_text(telemetry, row, TELEMETRY_CHANGE_RESULT);
	fail_msg("no quantity %s", quantity);
	return NULL;
}

static void telemetry_is_compared_by_medians(void **state)
{
	struct pair pair;

	(void)state;
	make_profiles(&pair);
	for (int side = 0; side < 2; side++) {
		struct compared_run *run = side ? &pair.new : &pair.base;

		add_telemetry(run, "utilization.gpu", "%", side ? 60 : 90, 1);
		add_telemetry(run, "memory.used", "MiB", 1000, 0);
		add_telemetry(run, "idle", "%", 0, 0);
		add_telemetry(run, "temperature.gpu", NULL, side ? 64 : 60, 5);
		add_telemetry(run, "power.draw", side ? "kW" : "W", 500, 1);
	}
	add_telemetry(&pair.base, "fan.speed", "%", 30, 0);
	compare(&pair);
	assert_string_equal(telemetry_result(&pair, "utilization.gpu"), RESULT_CHANGED);
	assert_string_equal(telemetry_result(&pair, "memory.used"), RESULT_SAME);
	assert_string_equal(telemetry_result(&pair, "idle"), RESULT_SAME);
	assert_string_equal(telemetry_result(&pair, "temperature.gpu"), RESULT_INCONCLUSIVE);
	assert_string_equal(telemetry_result(&pair, "power.draw"), RESULT_NOT_MEASURED);
	assert_string_equal(telemetry_result(&pair, "fan.speed"), RESULT_NOT_MEASURED);
	assert_string_equal(verdict_text(&pair, COMPARISON_CAUSE), "GPU 0 utilization.gpu 90 -> 60 %");
	assert_double_equal(table_get(&pair.comparison.telemetry, 0, TELEMETRY_CHANGE_DELTA)->d, -30, 1e-12);
	release(&pair);
}

static void another_kind_of_gpu_is_not_comparable(void **state)
{
	struct pair pair;

	(void)state;
	make_profiles(&pair);
	add_telemetry(&pair.base, "utilization.gpu", "%", 90, 1);
	add_telemetry(&pair.new, "utilization.gpu", "%", 60, 1);
	compared_run_add_fact(&pair.base, FACT_HARDWARE, "GPU 0.name", "one");
	compared_run_add_fact(&pair.new, FACT_HARDWARE, "GPU 0.name", "another");
	compare(&pair);
	assert_string_equal(telemetry_result(&pair, "utilization.gpu"), RESULT_NOT_COMPARABLE);
	assert_false(table_get(&pair.comparison.verdict, 0, COMPARISON_IS_COMPARABLE)->b);
	release(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slower_run_is_a_regression),
		cmocka_unit_test(half_the_tokens_are_compared_by_the_token),
		cmocka_unit_test(other_work_of_unknown_amount_is_not_comparable),
		cmocka_unit_test(the_same_work_in_other_portions_is_comparable_and_named),
		cmocka_unit_test(another_model_is_not_comparable_though_tokens_are_known),
		cmocka_unit_test(other_hardware_is_said_and_does_not_hide_the_change),
		cmocka_unit_test(contributions_sum_to_the_difference_of_their_level),
		cmocka_unit_test(rows_that_cancel_out_have_no_shares),
		cmocka_unit_test(all_that_is_to_blame_alike_is_named),
		cmocka_unit_test(renamed_kernels_are_one_row),
		cmocka_unit_test(values_that_are_not_finite_need_no_statistics),
		cmocka_unit_test(a_run_without_steps_is_not_measured),
		cmocka_unit_test(on_a_contended_machine_the_fastest_steps_tell),
		cmocka_unit_test(that_nothing_changed_is_told_by_the_90_per_cent_interval),
		cmocka_unit_test(a_certain_change_that_is_small_keeps_its_own_interval),
		cmocka_unit_test(what_waits_for_a_processor_is_told_by_its_cpu_time),
		cmocka_unit_test(steps_that_waited_long_are_compared_without_their_waits),
		cmocka_unit_test(the_noise_that_is_assumed_follows_from_the_steps),
		cmocka_unit_test(cpu_time_is_not_compared_with_the_duration),
		cmocka_unit_test(the_other_metrics_share_their_chance_of_error),
		cmocka_unit_test(programs_without_a_common_operator_are_not_comparable),
		cmocka_unit_test(other_operators_with_the_same_kernels_are_comparable),
		cmocka_unit_test(one_step_a_side_decides_nothing),
		cmocka_unit_test(few_steps_are_as_uncertain_in_their_mean),
		cmocka_unit_test(steps_that_take_turns_are_as_certain_as_others),
		cmocka_unit_test(steps_of_two_kinds_have_no_step_in_the_middle),
		cmocka_unit_test(a_run_that_changed_its_speed_is_uneven),
		cmocka_unit_test(some_slower_steps_are_a_regression_and_no_improvement),
		cmocka_unit_test(one_long_step_is_no_regression),
		cmocka_unit_test(more_time_between_steps_is_a_regression),
		cmocka_unit_test(what_competed_is_known_of_a_part_of_the_run_too),
		cmocka_unit_test(phases_sum_to_the_step_where_not_all_are_known),
		cmocka_unit_test(what_is_missing_from_a_side_is_said),
		cmocka_unit_test(clocks_of_several_runs_are_compared_by_their_mean),
		cmocka_unit_test(clocks_of_processors_are_none_of_devices),
		cmocka_unit_test(only_words_of_names_are_clocks),
		cmocka_unit_test(how_long_something_took_is_no_fact),
		cmocka_unit_test(shares_of_functions_are_compared),
		cmocka_unit_test(functions_are_not_joined_by_guess),
		cmocka_unit_test(an_address_in_a_name_is_no_difference),
		cmocka_unit_test(what_counts_different_things_is_not_compared),
		cmocka_unit_test(repeats_tell_which_functions_changed_for_certain),
		cmocka_unit_test(what_was_left_out_of_a_side_is_not_said_to_be_new),
		cmocka_unit_test(one_snapshot_each_has_no_interval),
		cmocka_unit_test(repeated_snapshots_have_a_verdict_of_their_peak),
		cmocka_unit_test(telemetry_is_compared_by_medians),
		cmocka_unit_test(another_kind_of_gpu_is_not_comparable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
