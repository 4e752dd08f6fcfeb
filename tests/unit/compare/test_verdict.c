/* SPDX-License-Identifier: Apache-2.0
 *
 * test_verdict.c: what a verdict is, as values, for results of metrics that are made by hand; no run is read and no
 * sentence is written.
 */
#include "compare/comparison_build.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST_METRICS 4

static const struct compared_run plain_run = {.name = "run"};

/* ---- which answer ---- */

struct decision {
	const char *name;
	/* what is known */
	struct metric_result metrics[MOST_METRICS]; /* up to the first without numbers */
	struct compared_sides sides;
	bool is_whole;
	int contributions, telemetry; /* rows */
	/* what follows from it */
	enum verdict_answer answer;
	enum compare_result result;
	enum compare_metric metric;
	enum verdict_needed needed;
	int others_count, worse_count;
	bool is_unchecked;
};

#define SIDES_OF_STEPS .metrics.has_first = true, .work.is_same = true

/* A metric that takes 10 ms on the base and `change` more or less on the new side. */
#define METRIC(name, found, change, ...)                                                                               \
	{                                                                                                              \
		.metric = (name), .result = (found), .has_sides = true, .base = 10e6, .new = 10e6 * (1 + (change)),    \
		.ratio = (change), __VA_ARGS__                                                                         \
	}

static const struct compared_fact fact = {FACT_HARDWARE, "gpu_name", "A"};

static const struct decision decisions[] = {
	{"a certain change is the answer", .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_REGRESSION, 0.1)},
         .sides = {SIDES_OF_STEPS}, .answer = ANSWER_CHANGED, .result = RESULT_REGRESSION, .metric = COMPARE_STEP_TIME,
         .needed = NEEDED_NOTHING},
	{"a regression does not name the other metrics that are worse",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_REGRESSION, 0.1),
                     METRIC(COMPARE_STEP_TIME_P95, RESULT_REGRESSION, 0.2)},
         .sides = {SIDES_OF_STEPS}, .answer = ANSWER_CHANGED, .result = RESULT_REGRESSION, .metric = COMPARE_STEP_TIME},
	{"an improvement names the other metrics that are worse",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_IMPROVEMENT, -0.1),
                     METRIC(COMPARE_STEP_TIME_P95, RESULT_REGRESSION, 0.2),
                     METRIC(COMPARE_STEP_PERIOD, RESULT_REGRESSION, 0.2)},
         .sides = {SIDES_OF_STEPS}, .answer = ANSWER_CHANGED, .result = RESULT_IMPROVEMENT, .metric = COMPARE_STEP_TIME,
         .worse_count = 2},
	{"a change that is ruled out", .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_SAME, 0.001, .is_told_same = true)},
         .sides = {SIDES_OF_STEPS}, .answer = ANSWER_SAME, .result = RESULT_SAME, .metric = COMPARE_STEP_TIME},
	{"a certain change that is too small",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_SAME, 0.005),
                     METRIC(COMPARE_STEP_TIME_MEAN, RESULT_REGRESSION, 0.05)},
         .sides = {SIDES_OF_STEPS}, .answer = ANSWER_SMALL, .result = RESULT_SAME, .metric = COMPARE_STEP_TIME,
         .worse_count = 1},
	{"an open answer names metrics that are settled and those that are worse",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_INCONCLUSIVE, 0.02, .needed_runs = 7),
                     METRIC(COMPARE_STEP_TIME_FASTEST, RESULT_SAME, 0, .is_told_same = true),
                     METRIC(COMPARE_STEP_CPU_TIME, RESULT_REGRESSION, 0.03),
                     METRIC(COMPARE_STEP_TIME_P95, RESULT_REGRESSION, 0.3)},
         .sides = {SIDES_OF_STEPS}, .answer = ANSWER_OPEN, .result = RESULT_INCONCLUSIVE, .metric = COMPARE_STEP_TIME,
         .needed = NEEDED_RUNS, .others_count = 2, .worse_count = 1},
	{"per token, other metrics of steps say nothing",
         .metrics = {METRIC(COMPARE_TIME_PER_TOKEN, RESULT_INCONCLUSIVE, 0.02, .needed_runs = 7),
                     METRIC(COMPARE_STEP_CPU_TIME, RESULT_REGRESSION, 0.03),
                     METRIC(COMPARE_STEP_TIME_P95, RESULT_REGRESSION, 0.3)},
         .sides = {SIDES_OF_STEPS, .work.amount = PER_TOKEN}, .answer = ANSWER_OPEN, .result = RESULT_INCONCLUSIVE,
         .metric = COMPARE_TIME_PER_TOKEN, .needed = NEEDED_RUNS},
	{"longer runs settle it",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_INCONCLUSIVE, 0.02, .needed_runs = 7, .needed_steps = 300)},
         .sides = {SIDES_OF_STEPS}, .answer = ANSWER_OPEN, .result = RESULT_INCONCLUSIVE, .metric = COMPARE_STEP_TIME,
         .needed = NEEDED_LONGER_RUNS},
	{"no number of runs settles it on this machine",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_INCONCLUSIVE, 0.02, .needed_runs = 201)},
         .sides = {SIDES_OF_STEPS}, .answer = ANSWER_OPEN, .result = RESULT_INCONCLUSIVE, .metric = COMPARE_STEP_TIME,
         .needed = NEEDED_QUIET_MACHINE},
	{"the cost of recording is in doubt",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_INCONCLUSIVE, 0.02, .needed_runs = 7)},
         .sides = {SIDES_OF_STEPS, .prices.doubt = 0.02}, .answer = ANSWER_OPEN, .result = RESULT_INCONCLUSIVE,
         .metric = COMPARE_STEP_TIME, .needed = NEEDED_ALIKE},
	{"one step a run", .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_INCONCLUSIVE, 0.2, .needed_runs = 7)},
         .sides = {SIDES_OF_STEPS, .metrics.first = {.is_single = true}}, .answer = ANSWER_ONE_STEP,
         .result = RESULT_INCONCLUSIVE, .metric = COMPARE_STEP_TIME, .needed = NEEDED_MORE_STEPS},
	{"operators on one side only", .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_NOT_COMPARABLE, 0.2)},
         .sides = {SIDES_OF_STEPS, .prices.is_unlike = true, .work.unchecked = {[FACT_HARDWARE] = {&fact}}},
         .answer = ANSWER_UNLIKE, .result = RESULT_NOT_COMPARABLE, .metric = COMPARE_STEP_TIME, .needed = NEEDED_ALIKE},
	{"other work of an unknown amount", .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_NOT_COMPARABLE, -0.4)},
         .sides = {.metrics.has_first = true, .work.wants_amount = true}, .answer = ANSWER_OTHER_WORK,
         .result = RESULT_NOT_COMPARABLE, .metric = COMPARE_STEP_TIME, .needed = NEEDED_AMOUNT},
	{"other work whose amount would not help", .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_NOT_COMPARABLE, -0.4)},
         .sides = {.metrics.has_first = true}, .answer = ANSWER_OTHER_WORK, .result = RESULT_NOT_COMPARABLE,
         .metric = COMPARE_STEP_TIME, .needed = NEEDED_SAME_WORK},
	{"a mean decides",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_INCONCLUSIVE, 0, .needed_runs = 7),
                     METRIC(COMPARE_STEP_TIME_MEAN, RESULT_REGRESSION, 0.2)},
         .sides = {SIDES_OF_STEPS, .metrics.deciding = 1}, .answer = ANSWER_MEAN, .result = RESULT_REGRESSION,
         .metric = COMPARE_STEP_TIME_MEAN},
	{"the time between steps decides",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_SAME, 0), METRIC(COMPARE_STEP_TIME_MEAN, RESULT_SAME, 0),
                     METRIC(COMPARE_STEP_PERIOD, RESULT_REGRESSION, 0.2)},
         .sides = {SIDES_OF_STEPS, .metrics.deciding = 2}, .answer = ANSWER_PERIOD, .result = RESULT_REGRESSION,
         .metric = COMPARE_STEP_PERIOD},
	{"tokens per second decide",
         .metrics = {METRIC(COMPARE_TIME_PER_TOKEN, RESULT_SAME, 0),
                     METRIC(COMPARE_TOKENS_PER_S, RESULT_REGRESSION, -0.2)},
         .sides = {SIDES_OF_STEPS, .metrics.deciding = 1, .work.amount = PER_TOKEN}, .answer = ANSWER_RATE,
         .result = RESULT_REGRESSION, .metric = COMPARE_TOKENS_PER_S},
	{"on a contended machine other metrics of steps say nothing",
         .metrics = {METRIC(COMPARE_STEP_TIME_FASTEST, RESULT_SAME, 0, .is_told_same = true),
                     METRIC(COMPARE_STEP_TIME_MEAN, RESULT_REGRESSION, 0.2)},
         .sides = {SIDES_OF_STEPS, .metrics.is_fastest = true}, .answer = ANSWER_SAME, .result = RESULT_SAME,
         .metric = COMPARE_STEP_TIME_FASTEST},
	{"what could not be compared is said with the answer",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_SAME, 0, .is_told_same = true)},
         .sides = {SIDES_OF_STEPS, .work.unchecked = {[FACT_HARDWARE] = {[SIDE_NEW] = &fact}}}, .answer = ANSWER_SAME,
         .result = RESULT_SAME, .metric = COMPARE_STEP_TIME, .is_unchecked = true},
	{"also that a step may be something else",
         .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_INCONCLUSIVE, 0, .needed_runs = 2)},
         .sides = {SIDES_OF_STEPS, .work.is_step_unchecked = true}, .answer = ANSWER_OPEN,
         .result = RESULT_INCONCLUSIVE, .metric = COMPARE_STEP_TIME, .needed = NEEDED_RUNS, .is_unchecked = true},
	{"no steps and no tables", .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_NOT_MEASURED, 0)},
         .sides = {.work.is_same = true, .work.is_step_unchecked = true}, .contributions = 3, .answer = ANSWER_NOTHING,
         .result = RESULT_NOT_MEASURED, .metric = COMPARE_STEP_TIME},
	{"whole recordings", .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_NOT_MEASURED, 0)},
         .sides = {.work.is_same = true}, .is_whole = true, .contributions = 3, .answer = ANSWER_WHOLE,
         .result = RESULT_NOT_MEASURED, .metric = COMPARE_STEP_TIME},
	{"telemetry alone", .metrics = {METRIC(COMPARE_STEP_TIME, RESULT_NOT_MEASURED, 0)},
         .sides = {.work.is_same = true}, .is_whole = true, .telemetry = 2, .answer = ANSWER_TABLES,
         .result = RESULT_NOT_MEASURED, .metric = COMPARE_STEP_TIME},
	{"one snapshot a side", .metrics = {METRIC(COMPARE_DEVICE_MEMORY, RESULT_INCONCLUSIVE, 0.1, .needed_runs = 2)},
         .sides = {.work.is_same = true, .metrics.is_memory = true}, .answer = ANSWER_PEAK_WITHOUT,
         .result = RESULT_INCONCLUSIVE, .metric = COMPARE_DEVICE_MEMORY, .needed = NEEDED_SNAPSHOTS},
	{"snapshots whose peaks scatter",
         .metrics = {METRIC(COMPARE_DEVICE_MEMORY, RESULT_INCONCLUSIVE, 0.1, .needed_runs = 9)},
         .sides = {SIDES_OF_STEPS, .metrics.is_memory = true}, .answer = ANSWER_PEAK_OPEN,
         .result = RESULT_INCONCLUSIVE, .metric = COMPARE_DEVICE_MEMORY, .needed = NEEDED_RUNS},
	{"snapshots with the same peak",
         .metrics = {METRIC(COMPARE_DEVICE_MEMORY, RESULT_SAME, 0, .is_told_same = true)},
         .sides = {SIDES_OF_STEPS, .metrics.is_memory = true}, .answer = ANSWER_PEAK_SAME, .result = RESULT_SAME,
         .metric = COMPARE_DEVICE_MEMORY},
	{"snapshots with a peak that is a little larger",
         .metrics = {METRIC(COMPARE_DEVICE_MEMORY, RESULT_SAME, 0.002)},
         .sides = {SIDES_OF_STEPS, .metrics.is_memory = true}, .answer = ANSWER_PEAK_SMALL, .result = RESULT_SAME,
         .metric = COMPARE_DEVICE_MEMORY},
	{"snapshots with a larger peak", .metrics = {METRIC(COMPARE_DEVICE_MEMORY, RESULT_REGRESSION, 0.2)},
         .sides = {SIDES_OF_STEPS, .metrics.is_memory = true}, .answer = ANSWER_PEAK_CHANGED,
         .result = RESULT_REGRESSION, .metric = COMPARE_DEVICE_MEMORY},
};

static struct verdict decide(const struct decision *decision)
{
	struct comparison comparison = {.metric_results = decision->metrics, .is_whole = decision->is_whole};
	struct compared_sides sides = decision->sides;

	while (comparison.metrics.row_count < MOST_METRICS && decision->metrics[comparison.metrics.row_count].has_sides)
		comparison.metrics.row_count++;
	comparison.contributions.row_count = decision->contributions;
	comparison.telemetry.row_count = decision->telemetry;
	sides.options = &comparison_defaults;
	for (int side = 0; side < SIDES; side++) {
		sides.runs[side] = &plain_run;
		sides.count[side] = 1;
	}
	return verdict_decide(&comparison, &sides);
}

static void expect(const char *name, const char *what, int found, int expected)
{
	if (found != expected)
		fail_msg("%s: %s is %d, not %d", name, what, found, expected);
}

static void the_answer_follows_from_the_results(void **state)
{
	for (size_t i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++) {
		const struct decision *decision = &decisions[i];
		struct verdict verdict = decide(decision);

		expect(decision->name, "answer", (int)verdict.answer, (int)decision->answer);
		expect(decision->name, "result", (int)verdict.result, (int)decision->result);
		expect(decision->name, "metric", (int)verdict.metric, (int)decision->metric);
		expect(decision->name, "row", verdict.row, decision->sides.metrics.deciding);
		expect(decision->name, "needed", (int)verdict.needed, (int)decision->needed);
		expect(decision->name, "others_count", verdict.others_count, decision->others_count);
		expect(decision->name, "worse_count", verdict.worse_count, decision->worse_count);
		expect(decision->name, "is_unchecked", verdict.is_unchecked, decision->is_unchecked);
	}
}

static void the_numbers_are_those_of_the_metric_that_decides(void **state)
{
	const struct decision decision = {.metrics = {METRIC(COMPARE_STEP_TIME, RESULT_SAME, 0),
	                                              METRIC(COMPARE_STEP_TIME_MEAN, RESULT_REGRESSION, 0.2, .low = 0.1,
	                                                     .high = 0.3, .same_low = 0.12, .same_high = 0.28)},
	                                  .sides = {SIDES_OF_STEPS, .metrics.deciding = 1}};
	struct verdict verdict = decide(&decision);

	assert_int_equal(verdict.first, RESULT_SAME);
	assert_true(verdict.base == 10e6 && verdict.new == 12e6 && verdict.ratio == 0.2);
	assert_true(verdict.low == 0.1 && verdict.high == 0.3 && verdict.same_low == 0.12 && verdict.same_high == 0.28);
}

/* ---- what a step, the noise and the interval are ---- */

static void the_way_of_the_estimate_says_how_sure_it_is(void **state)
{
	static const struct {
		enum estimate_way way;
		bool has_ranks, is_noise_kept;
		enum verdict_scatter scatter;
		enum verdict_test test;
	} ways[] = {
		{ESTIMATE_PAIRS, false, false, SCATTER_OF_PAIRS, TEST_PAIRS_STUDENT},
		{ESTIMATE_PAIRS, true, true, SCATTER_OF_PAIRS, TEST_PAIRS_RANKS},
		{ESTIMATE_REPEATS, false, false, SCATTER_OF_REPEATS, TEST_REPEATS_STUDENT},
		{ESTIMATE_REPEATS, true, false, SCATTER_OF_REPEATS, TEST_REPEATS_RANKS},
		{ESTIMATE_ASSUMED, false, false, SCATTER_ASSUMED, TEST_BOOTSTRAP},
		{ESTIMATE_ASSUMED, false, true, SCATTER_OF_KEPT, TEST_BOOTSTRAP},
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		const struct comparison_options options = {.tolerance = 0.03, .is_noise_kept = ways[i].is_noise_kept};
		const struct metric_result result = METRIC(COMPARE_STEP_TIME, RESULT_SAME, 0);
		struct comparison comparison = {.metric_results = &result, .metrics = {.row_count = 1}};
		struct compared_sides sides = {SIDES_OF_STEPS, .options = &options,
		                               .metrics.decided = {.way = ways[i].way, .has_ranks = ways[i].has_ranks}};
		struct verdict verdict = verdict_decide(&comparison, &sides);

		assert_int_equal(verdict.noise.scatter, ways[i].scatter);
		assert_int_equal(verdict.test, ways[i].test);
	}
}

static void the_number_of_a_run_is_said(void **state)
{
	static const struct {
		struct compared_sides sides;
		enum verdict_number number;
		enum verdict_subject subject;
		enum verdict_middle middle;
	} numbers[] = {
		{{SIDES_OF_STEPS}, NUMBER_MEDIAN, SUBJECT_STEP, MIDDLE_STEP},
		{{SIDES_OF_STEPS, .work.amount = PER_TOKEN}, NUMBER_MEDIAN, SUBJECT_TOKEN, MIDDLE_OF_WORK},
		{{SIDES_OF_STEPS, .work.amount = PER_SAMPLE}, NUMBER_MEDIAN, SUBJECT_SAMPLE, MIDDLE_OF_WORK},
		{{SIDES_OF_STEPS, .steps.is_evened = {[PER_STEP] = true}}, NUMBER_EVENED, SUBJECT_STEP, MIDDLE_EVENED},
		{{SIDES_OF_STEPS, .steps.is_evened = {[PER_TOKEN] = true}}, NUMBER_MEDIAN, SUBJECT_STEP, MIDDLE_STEP},
		{{SIDES_OF_STEPS, .metrics.deciding = 1}, NUMBER_MEAN, SUBJECT_STEP, MIDDLE_STEP},
		{{SIDES_OF_STEPS, .metrics.is_fastest = true}, NUMBER_FASTEST, SUBJECT_FASTEST, MIDDLE_STEP},
		{{SIDES_OF_STEPS, .metrics.is_memory = true}, NUMBER_PEAK, SUBJECT_STEP, MIDDLE_STEP},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct decision decision = {.metrics = {METRIC(COMPARE_STEP_TIME, RESULT_SAME, 0),
		                                        METRIC(COMPARE_STEP_TIME_MEAN, RESULT_REGRESSION, 0.1)},
		                            .sides = numbers[i].sides};
		struct verdict verdict = decide(&decision);

		assert_int_equal(verdict.number, numbers[i].number);
		assert_int_equal(verdict.subject, numbers[i].subject);
		assert_int_equal(verdict.middle, numbers[i].middle);
	}
}

static void a_base_that_was_chosen_for_its_speed_was_lucky(void **state)
{
	const struct comparison_options options = {.tolerance = 0.03, .assumed_noise = 0.01, .best_of = 8};
	const struct metric_result result = METRIC(COMPARE_STEP_TIME, RESULT_SAME, 0);
	struct comparison comparison = {.metric_results = &result, .metrics = {.row_count = 1}};
	struct compared_sides sides = {SIDES_OF_STEPS, .options = &options};

	assert_true(verdict_decide(&comparison, &sides).noise.luck > 0.01);
	sides.metrics.is_memory = true; /* which says nothing about speed */
	assert_true(verdict_decide(&comparison, &sides).noise.luck == 0);
}

/* ---- trouble of runs ---- */

static void damaged_and_failed_runs_are_counted(void **state)
{
	struct compared_fact damage = {FACT_RECORDING, COMPARED_DAMAGE, "events are missing"};
	struct compared_fact end = {FACT_RECORDING, COMPARED_END, "signal 9"};
	struct compared_fact completed = {FACT_RECORDING, COMPARED_STATUS, COMPARED_COMPLETED};
	struct compared_fact failed = {FACT_RECORDING, COMPARED_STATUS, "failed"};
	struct compared_value fine = {COMPARED_DIVERGED, true, 0, NULL}, bad = {COMPARED_DIVERGED, true, 1, NULL};
	const struct compared_run base[] = {{.facts = &completed, .facts_count = 1},
	                                    {.facts = &damage, .facts_count = 1},
	                                    {.facts = &damage, .facts_count = 1}};
	const struct compared_run new[] = {{.values = &fine, .values_count = 1},
	                                   {.facts = &failed, .facts_count = 1, .values = &bad, .values_count = 1},
	                                   {.facts = &end, .facts_count = 1}};
	const struct metric_result result = METRIC(COMPARE_STEP_TIME, RESULT_SAME, 0);
	struct comparison comparison = {.metric_results = &result, .metrics = {.row_count = 1}};
	struct compared_sides sides = {SIDES_OF_STEPS, .options = &comparison_defaults, .runs = {base, new},
	                               .count = {3, 3}};
	struct verdict verdict = verdict_decide(&comparison, &sides);

	assert_int_equal(verdict.damage[SIDE_BASE].first, 1);
	assert_int_equal(verdict.damage[SIDE_BASE].count, 2);
	assert_int_equal(verdict.damage[SIDE_NEW].first, 2);
	assert_int_equal(verdict.damage[SIDE_NEW].count, 1);
	assert_int_equal(verdict.failure[SIDE_BASE].count, 0);
	assert_int_equal(verdict.failure[SIDE_NEW].first, 1);
	assert_int_equal(verdict.failure[SIDE_NEW].count, 2);
	assert_true(verdict.is_divergence_known);
	assert_int_equal(verdict.diverged.first, 1);
	sides.count[SIDE_NEW] = 1;
	verdict = verdict_decide(&comparison, &sides);
	assert_true(verdict.is_divergence_known && !verdict.diverged.count);
	sides.runs[SIDE_NEW] = base;
	assert_false(verdict_decide(&comparison, &sides).is_divergence_known);
}

/* ---- words that programs read ---- */

static void results_and_metrics_keep_their_names(void **state)
{
	static const char *const results[] = {"not measured",  "regression",   "improvement",    "changed",
	                                      "no difference", "inconclusive", "not comparable", "kept",
	                                      "warning",       "broken"};
	static const char *const metrics[] = {
		"time_per_token",       "time_per_sample",    "step_time",   "step_time_fastest", "step_cpu_time",
		"step_time_mean",       "step_time_p95",      "step_period", "tokens_per_s",      "samples_per_s",
		"device_busy",          "device_memory",      "peak_memory", "utilization",       "wait_ratio",
		"profiled_device_time", "profiled_host_time", "final_loss",  "not_finite"};

	assert_int_equal(sizeof(results) / sizeof(results[0]), RESULT_BROKEN + 1);
	for (int i = 0; i <= RESULT_BROKEN; i++)
		assert_string_equal(compare_result_name((enum compare_result)i), results[i]);
	assert_int_equal(sizeof(metrics) / sizeof(metrics[0]), COMPARE_METRIC_COUNT);
	for (int i = 0; i < COMPARE_METRIC_COUNT; i++)
		assert_string_equal(compare_metric_name((enum compare_metric)i), metrics[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_answer_follows_from_the_results),
		cmocka_unit_test(the_numbers_are_those_of_the_metric_that_decides),
		cmocka_unit_test(the_way_of_the_estimate_says_how_sure_it_is),
		cmocka_unit_test(the_number_of_a_run_is_said),
		cmocka_unit_test(a_base_that_was_chosen_for_its_speed_was_lucky),
		cmocka_unit_test(damaged_and_failed_runs_are_counted),
		cmocka_unit_test(results_and_metrics_keep_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
