/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict.c: see the header.
 */
#include "compare/verdict.h"

#include "compare/comparison_build.h"

#include <math.h>
#include <string.h>

#define MANY_RUNS 200 /* more runs are unrealistic */

/* ---- the answer ---- */

static enum verdict_answer verdict_peak_answer(const struct metric_result *first, bool has_interval)
{
	if (!has_interval)
		return ANSWER_PEAK_WITHOUT;
	if (first->result == RESULT_INCONCLUSIVE)
		return ANSWER_PEAK_OPEN;
	if (first->is_told_same)
		return ANSWER_PEAK_SAME;
	return first->result == RESULT_SAME ? ANSWER_PEAK_SMALL : ANSWER_PEAK_CHANGED;
}

static enum verdict_answer verdict_answer_without_steps(const struct comparison *comparison)
{
	if (comparison->is_whole && comparison->contributions.row_count)
		return ANSWER_WHOLE;
	if (comparison->functions.row_count || comparison->memory.row_count || comparison->telemetry.row_count)
		return ANSWER_TABLES;
	return ANSWER_NOTHING;
}

static enum verdict_answer verdict_first_answer(const struct metric_result *first, const struct compared_sides *sides)
{
	switch (first->result) {
	case RESULT_NOT_COMPARABLE:
		return sides->prices.is_unlike ? ANSWER_UNLIKE : ANSWER_OTHER_WORK;
	case RESULT_INCONCLUSIVE:
		return sides->metrics.first.is_single ? ANSWER_ONE_STEP : ANSWER_OPEN;
	case RESULT_SAME:
		return first->is_told_same ? ANSWER_SAME : ANSWER_SMALL;
	default:
		return ANSWER_CHANGED;
	}
}

static enum verdict_answer verdict_find_answer(const struct comparison *comparison, const struct compared_sides *sides)
{
	const struct metric_result *results = comparison->metric_results;

	if (sides->metrics.is_memory)
		return verdict_peak_answer(&results[0], sides->metrics.has_first);
	if (!sides->metrics.has_first)
		return verdict_answer_without_steps(comparison);
	if (!sides->metrics.deciding)
		return verdict_first_answer(&results[0], sides);
	switch (results[sides->metrics.deciding].metric) {
	case COMPARE_STEP_TIME_MEAN:
		return ANSWER_MEAN;
	case COMPARE_STEP_PERIOD:
		return ANSWER_PERIOD;
	default:
		return ANSWER_RATE;
	}
}

static enum verdict_subject verdict_find_subject(const struct compared_sides *sides)
{
	if (sides->metrics.is_fastest)
		return SUBJECT_FASTEST;
	switch (sides->work.amount) {
	case PER_TOKEN:
		return SUBJECT_TOKEN;
	case PER_SAMPLE:
		return SUBJECT_SAMPLE;
	default:
		return SUBJECT_STEP;
	}
}

static enum verdict_middle verdict_find_middle(const struct compared_sides *sides)
{
	if (sides->steps.is_evened[sides->work.amount])
		return MIDDLE_EVENED;
	return sides->work.amount == PER_STEP ? MIDDLE_STEP : MIDDLE_OF_WORK;
}

/* Finds the metrics that are settled although the first is not. */
static void verdict_find_others(struct verdict *verdict, const struct comparison *comparison,
                                const struct compared_sides *sides)
{
	static const enum compare_metric others[VERDICT_OTHERS] = {COMPARE_STEP_TIME_FASTEST, COMPARE_STEP_CPU_TIME};

	for (int i = 0; i < VERDICT_OTHERS && sides->work.amount == PER_STEP; i++) {
		int row = comparison_row(comparison, others[i]);

		if (row > 0 && compare_result_is_settled(comparison->metric_results[row].result))
			verdict->others[verdict->others_count++] = row;
	}
}

static void verdict_add_worse(struct verdict *verdict, const struct comparison *comparison, enum compare_metric metric)
{
	int row = comparison_row(comparison, metric);

	if (row > 0 && comparison->metric_results[row].result == RESULT_REGRESSION)
		verdict->worse[verdict->worse_count++] = row;
}

/* Finds the metrics that are a regression although the first is not. */
static void verdict_find_worse(struct verdict *verdict, const struct comparison *comparison,
                               const struct compared_sides *sides)
{
	static const enum compare_metric slower[VERDICT_SLOWER] = {COMPARE_STEP_TIME_MEAN, COMPARE_STEP_TIME_P95,
	                                                           COMPARE_STEP_PERIOD};
	static const enum compare_metric memory[VERDICT_MEMORY] = {COMPARE_DEVICE_MEMORY, COMPARE_PEAK_MEMORY};

	for (int i = 0; i < VERDICT_SLOWER && !sides->metrics.is_fastest && sides->work.amount == PER_STEP; i++)
		verdict_add_worse(verdict, comparison, slower[i]);
	for (int i = 0; i < VERDICT_MEMORY; i++)
		verdict_add_worse(verdict, comparison, memory[i]);
}

static bool has_unchecked(const struct compared_sides *sides)
{
	for (int kind = 0; kind < FACT_KINDS; kind++)
		for (int side = 0; side < SIDES; side++)
			if (sides->work.unchecked[kind][side])
				return true;
	return sides->work.is_step_unchecked;
}

static void verdict_set_answer(struct verdict *verdict, const struct comparison *comparison,
                               const struct compared_sides *sides)
{
	verdict->answer = verdict_find_answer(comparison, sides);
	verdict->subject = verdict_find_subject(sides);
	verdict->middle = verdict_find_middle(sides);
	if (verdict->answer == ANSWER_OPEN)
		verdict_find_others(verdict, comparison, sides);
	if (verdict->answer == ANSWER_OPEN || verdict->answer == ANSWER_SAME || verdict->answer == ANSWER_SMALL ||
	    (verdict->answer == ANSWER_CHANGED && verdict->result != RESULT_REGRESSION))
		verdict_find_worse(verdict, comparison, sides);
	verdict->is_unchecked = (compare_result_is_settled(verdict->result) ||
	                         verdict->result == RESULT_INCONCLUSIVE) &&
	                        has_unchecked(sides);
}

/* ---- why ---- */

static enum verdict_explanation verdict_find_explanation(const struct comparison *comparison)
{
	const struct table *differences = &comparison->differences;
	enum verdict_explanation found = EXPLAINED_BY_NOTHING;

	for (int row = 0; row < differences->row_count; row++) {
		if (comparison->difference_kinds[row] == FACT_WORK)
			return EXPLAINED_BY_WORK;
		if (table_get(differences, row, DIFFERENCE_MATTERS)->b)
			found = EXPLAINED_BY_FACTS;
	}
	return found;
}

/* ---- certainty ---- */

/* Returns true if the doubt about the cost of recording prevents an answer: more runs do not reduce it. */
static bool wants_alike(const struct compared_sides *sides)
{
	return sides->prices.doubt > log1p(sides->options->tolerance) / 2;
}

static enum verdict_needed verdict_find_needed(const struct metric_result *first, const struct compared_sides *sides)
{
	enum verdict_needed nothing = sides->work.is_same ? NEEDED_NOTHING : NEEDED_SAME_WORK;

	if (sides->metrics.is_memory && !sides->metrics.has_first)
		return NEEDED_SNAPSHOTS;
	if (sides->prices.is_unlike)
		return NEEDED_ALIKE;
	if (first->result == RESULT_NOT_COMPARABLE)
		return sides->work.wants_amount ? NEEDED_AMOUNT : nothing;
	if (sides->metrics.has_first && sides->metrics.first.is_single)
		return NEEDED_MORE_STEPS;
	if (!first->needed_runs || sides->metrics.deciding)
		return nothing;
	if (wants_alike(sides))
		return NEEDED_ALIKE;
	if (first->needed_runs > MANY_RUNS)
		return NEEDED_QUIET_MACHINE;
	return first->needed_steps ? NEEDED_LONGER_RUNS : NEEDED_RUNS;
}

static enum verdict_scatter verdict_find_scatter(const struct compared_sides *sides)
{
	if (!sides->metrics.has_first)
		return SCATTER_UNKNOWN;
	switch (sides->metrics.decided.way) {
	case ESTIMATE_PAIRS:
		return SCATTER_OF_PAIRS;
	case ESTIMATE_REPEATS:
		return SCATTER_OF_REPEATS;
	default:
		return sides->options->is_noise_kept ? SCATTER_OF_KEPT : SCATTER_ASSUMED;
	}
}

static struct verdict_noise verdict_find_noise(const struct compared_sides *sides)
{
	const struct comparison_options *options = sides->options;
	const struct estimate *decided = &sides->metrics.decided;

	return (struct verdict_noise){
		.scatter = verdict_find_scatter(sides),
		.ratio = decided->noise,
		.is_uneven = decided->is_uneven,
		.is_contended = decided->is_contended,
		.is_few = decided->is_few,
		.luck = sides->metrics.is_memory ? 0 : estimate_luck(options->best_of, options->assumed_noise),
		.best_of = options->best_of,
		.is_running = sides->steps.is_running};
}

static enum verdict_number verdict_find_number(const struct compared_sides *sides)
{
	if (sides->metrics.is_memory)
		return NUMBER_PEAK;
	if (sides->metrics.is_fastest)
		return NUMBER_FASTEST;
	if (sides->metrics.deciding)
		return NUMBER_MEAN;
	return sides->steps.is_evened[sides->work.amount] ? NUMBER_EVENED : NUMBER_MEDIAN;
}

static enum verdict_test verdict_find_test(const struct compared_sides *sides)
{
	bool has_ranks = sides->metrics.decided.has_ranks;

	if (!sides->metrics.has_first)
		return TEST_UNKNOWN;
	switch (sides->metrics.decided.way) {
	case ESTIMATE_PAIRS:
		return has_ranks ? TEST_PAIRS_RANKS : TEST_PAIRS_STUDENT;
	case ESTIMATE_REPEATS:
		return has_ranks ? TEST_REPEATS_RANKS : TEST_REPEATS_STUDENT;
	default:
		return TEST_BOOTSTRAP;
	}
}

/* ---- trouble of runs ---- */

static bool is_damaged(const struct compared_run *run)
{
	return compared_run_fact(run, COMPARED_END) || compared_run_fact(run, COMPARED_DAMAGE);
}

static bool has_failed(const struct compared_run *run)
{
	const char *status = compared_run_fact(run, COMPARED_STATUS);

	return compared_run_fact(run, COMPARED_END) || (status && strcmp(status, COMPARED_COMPLETED) != 0);
}

/* Returns true if the run itself reports it, as rlhf-canary's metrics.json does. */
static bool has_diverged(const struct compared_run *run)
{
	const struct compared_value *said = compared_run_value(run, COMPARED_DIVERGED);

	return said && said->has_value && said->value > 0;
}

static bool tells_divergence(const struct compared_run *run)
{
	const struct compared_value *said = compared_run_value(run, COMPARED_DIVERGED);

	return said && said->has_value;
}

static struct verdict_trouble verdict_find_trouble(const struct compared_sides *sides, int side,
                                                   bool (*is_troubled)(const struct compared_run *))
{
	struct verdict_trouble trouble = {0};

	for (size_t i = 0; i < sides->count[side]; i++) {
		if (!is_troubled(&sides->runs[side][i]))
			continue;
		if (!trouble.count++)
			trouble.first = i;
	}
	return trouble;
}

/* ---- the whole verdict ---- */

struct verdict verdict_decide(const struct comparison *comparison, const struct compared_sides *sides)
{
	const struct metric_result *first = &comparison->metric_results[0];
	const struct metric_result *about = &comparison->metric_results[sides->metrics.deciding];
	struct verdict verdict = {.result = about->result,
	                          .metric = about->metric,
	                          .row = sides->metrics.deciding,
	                          .first = first->result,
	                          .number = verdict_find_number(sides),
	                          .base = about->base,
	                          .new = about->new,
	                          .ratio = about->ratio,
	                          .low = about->low,
	                          .high = about->high,
	                          .same_low = about->same_low,
	                          .same_high = about->same_high,
	                          .explanation = verdict_find_explanation(comparison),
	                          .needed = verdict_find_needed(first, sides),
	                          .needed_runs = first->needed_runs,
	                          .needed_steps = first->needed_steps,
	                          .noise = verdict_find_noise(sides),
	                          .test = verdict_find_test(sides)};

	verdict_set_answer(&verdict, comparison, sides);
	for (int side = 0; side < SIDES; side++) {
		verdict.damage[side] = verdict_find_trouble(sides, side, is_damaged);
		verdict.failure[side] = verdict_find_trouble(sides, side, has_failed);
	}
	verdict.is_divergence_known = verdict_find_trouble(sides, SIDE_NEW, tells_divergence).count > 0;
	verdict.diverged = verdict_find_trouble(sides, SIDE_NEW, has_diverged);
	return verdict;
}
