/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_metrics.c: the table `metrics`: the result of each quantity, decided first and then written into a row.
 */
#include "base/template.h"
#include "base/units.h"
#include "compare/holm.h"
#include "compare/metric_question.h"
#include "compare/verdict_sentences.h"

#include <math.h>
#include <string.h>

#define CONTENDED 0.25 /* share of the time in which steps or other work waited for a CPU */

static const struct table_column columns[METRIC_COLUMNS] = {
	[METRIC_NAME] = {.name = "metric", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name of the metric"},
	[METRIC_TITLE] = {.name = "title", .type = TABLE_TEXT, .definition = "the metric in words"},
	[METRIC_UNIT] = {.name = "unit",
                         .type = TABLE_TEXT,
                         .definition = "unit of base, new and delta: ns, bytes, ratio, per_s, count or none"},
	[METRIC_BETTER] = {.name = "better",
                           .type = TABLE_TEXT,
                           .definition = "better direction: lower, higher or neither"},
	[METRIC_BASE] = {.name = "base",
                         .type = TABLE_DOUBLE,
                         .definition = "geometric mean over the runs of the base, of the median step (evened out if the "
                                       "title says so) or of the run's value; warm-up steps are excluded"},
	[METRIC_NEW] = {.name = "new", .type = TABLE_DOUBLE, .definition = "same for the new side"},
	[METRIC_DELTA] = {.name = "delta", .type = TABLE_DOUBLE, .definition = "new minus base"},
	[METRIC_RATIO] =
		{.name = "change_ratio",
                 .title = "change",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .denominator = "the base",
                 .definition = "change from base to new. For alternating runs, the mean over the pairs; for many "
                               "runs, the median of all their differences"},
	[METRIC_LOW] = {.name = "ci95_low_ratio",
                        .title = "low",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .denominator = "the base",
                        .definition = "lower end of the 95 % interval of the change"},
	[METRIC_HIGH] = {.name = "ci95_high_ratio",
                         .title = "high",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_RATIO,
                         .role = ROLE_SHARE,
                         .denominator = "the base",
                         .definition = "upper end of the 95 % interval of the change"},
	[METRIC_SAME_LOW] =
		{.name = "ci90_low_ratio",
                 .title = "low for none",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .denominator = "the base",
                 .definition =
                         "lower end of the 90 % interval of the change. If the interval is within the tolerance, two "
                         "tests at 5 %, one per direction, rule out a change of that size",
                 .is_hidden = true},
	[METRIC_SAME_HIGH] = {.name = "ci90_high_ratio",
                              .title = "high for none",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_RATIO,
                              .role = ROLE_SHARE,
                              .denominator = "the base",
                              .definition = "upper end of the 90 % interval of the change",
                              .is_hidden = true},
	[METRIC_P] =
		{.name = "p_value",
                 .title = "p",
                 .type = TABLE_DOUBLE,
                 .role = ROLE_EVIDENCE,
                 .definition = "probability of a change of this size if there is none; adjusted for the number of rows "
                               "(Holm), except in the first row",
                 .is_hidden = true},
	[METRIC_RESULT] =
		{.name = "result",
                 .type = TABLE_TEXT,
                 .definition =
                         "regression, improvement, changed, no difference, inconclusive, not comparable or not measured"},
	[METRIC_NEEDED_RUNS] = {.name = "needed_runs",
                                .type = TABLE_INT,
                                .unit = UNIT_COUNT,
                                .role = ROLE_EVIDENCE,
                                .definition = "if the result is inconclusive: runs per side that distinguish a change of "
                                              "the tolerance from no change in 19 of 20 cases",
                                .is_hidden = true},
	[METRIC_NEEDED_STEPS] = {.name = "needed_steps",
                                 .type = TABLE_INT,
                                 .unit = UNIT_COUNT,
                                 .role = ROLE_EVIDENCE,
                                 .definition = "steps per run that achieve the same, if longer runs are sufficient",
                                 .is_hidden = true},
	[METRIC_REASON] = {.name = "reason", .type = TABLE_TEXT, .definition = "reason for the result"},
};

/* ---- the result ---- */

/* Decides by the estimate, as if both sides did the same work and were recorded in the same way. */
static void metrics_judge(struct metric_result *result, const struct metric_question *question,
                          const struct comparison_options *options)
{
	const struct estimate *estimate = &question->estimate;
	const struct tested_change tested = {expm1(estimate->change), expm1(estimate->same_low),
	                                     expm1(estimate->same_high), question->outside};
	enum metric_better better = metric_kinds[question->metric].better;

	result->result = tested_result(&tested, options->smallest, options->tolerance);
	result->reason = question->outside < SURE ? REASON_SMALL : REASON_RULED_OUT;
	if (result->result == RESULT_CHANGED) {
		result->reason = REASON_NOT_ZERO;
		if (better != BETTER_NEITHER)
			result->result = (tested.change > 0) == (better == BETTER_HIGHER) ? RESULT_IMPROVEMENT
			                                                                  : RESULT_REGRESSION;
	} else if (result->result == RESULT_INCONCLUSIVE) {
		result->reason = estimate->low > 0 || estimate->high < 0 ? REASON_BY_CHANCE : REASON_OPEN;
	}
	if (estimate->is_single && metric_is_time(question->metric)) {
		result->result = RESULT_INCONCLUSIVE;
		result->reason = REASON_ONE_STEP;
	}
}

static void metrics_decide_estimate(struct metric_result *result, const struct metric_question *question,
                                    const struct compared_sides *sides)
{
	const struct estimate *estimate = &question->estimate;

	result->ratio = expm1(estimate->change);
	result->low = expm1(estimate->low);
	result->high = expm1(estimate->high);
	result->same_low = expm1(estimate->same_low);
	result->same_high = expm1(estimate->same_high);
	result->has_ratio = result->has_interval = true;
	metrics_judge(result, question, sides->options);
	if (result->result == RESULT_INCONCLUSIVE) {
		result->needed_runs = (int64_t)estimate->needed_runs;
		result->needed_steps = (int64_t)estimate->needed_steps;
	}
	if (metric_is_time(question->metric) && (sides->prices.is_unlike || !sides->work.is_same)) {
		result->result = RESULT_NOT_COMPARABLE;
		result->reason = sides->prices.is_unlike ? REASON_UNLIKE : REASON_OTHER_WORK;
	}
	result->is_told_same = result->result == RESULT_SAME && question->outside >= SURE;
}

/* Decides a metric without an estimate: a number that is 0 on a side, or a count. */
static void metrics_decide_plain(struct metric_result *result, enum metric_source source)
{
	double delta = result->new - result->base;

	if (!(fabs(delta) > 0)) {
		result->result = RESULT_SAME;
		result->reason = REASON_EQUAL;
	} else if (source == FROM_COUNT) {
		result->result = delta > 0 ? RESULT_REGRESSION : RESULT_IMPROVEMENT;
		result->reason = REASON_COUNTED;
	} else {
		result->result = RESULT_NOT_MEASURED;
		result->reason = REASON_NO_RATIO;
	}
}

static struct metric_result metrics_decide(const struct metric_question *question, const struct compared_sides *sides)
{
	const struct metric_kind *kind = &metric_kinds[question->metric];
	struct metric_result result = {.metric = question->metric, .unit = kind->unit};

	if (question->missing) {
		bool is_in_part = !strncmp(question->missing, COMPARED_IN_PART, strlen(COMPARED_IN_PART));

		result.result = RESULT_NOT_MEASURED;
		result.reason = is_in_part ? REASON_IN_PART : REASON_MISSING;
		return result;
	}
	result.has_sides = true;
	result.base = metric_question_mean(question, sides, SIDE_BASE);
	result.new = metric_question_mean(question, sides, SIDE_NEW);
	if (question->has_estimate) {
		metrics_decide_estimate(&result, question, sides);
	} else if (sides->metrics.is_memory && result.base > 0 && result.new > 0) { /* the noise is unknown */
		result.result = RESULT_INCONCLUSIVE;
		result.reason = REASON_NO_INTERVAL;
		result.has_ratio = true;
		result.ratio = (result.new - result.base) / result.base;
		result.needed_runs = LEAST_RUNS / SIDES;
	} else {
		metrics_decide_plain(&result, kind->source);
	}
	return result;
}

/* ---- rows ---- */

const char *percent_text(struct arena *arena, double ratio)
{
	char text[UNITS_BYTES];

	return arena_dup(arena, units_change(text, ratio));
}

const char *percent_range_text(struct arena *arena, double low, double high)
{
	return arena_printf(arena, "%s to %s", percent_text(arena, low), percent_text(arena, high));
}

static const char *metrics_reason(const struct metric_result *result, const struct metric_question *question,
                                  const struct compared_sides *sides, struct arena *arena)
{
	const char *what = question->missing, *range = NULL;

	if (result->reason == REASON_UNLIKE)
		what = operators_unlike_text(sides, arena);
	if (result->reason == REASON_RULED_OUT)
		range = percent_range_text(arena, result->same_low, result->same_high);
	else if (result->has_interval)
		range = percent_range_text(arena, result->low, result->high);
	return result_reason_text(result->reason, range, what, sides->options, arena);
}

/* Sets the cells that follow from the estimate. */
static void metrics_set_estimate(struct table *table, int row, const struct metric_result *result, double outside)
{
	table_set_double(table, row, METRIC_RATIO, result->ratio);
	table_set_double(table, row, METRIC_LOW, result->low);
	table_set_double(table, row, METRIC_HIGH, result->high);
	table_set_double(table, row, METRIC_SAME_LOW, result->same_low);
	table_set_double(table, row, METRIC_SAME_HIGH, result->same_high);
	table_set_double(table, row, METRIC_P, outside);
	if (result->needed_runs)
		table_set_int(table, row, METRIC_NEEDED_RUNS, result->needed_runs);
	else
		table_set_missing(table, row, METRIC_NEEDED_RUNS, "the result is settled");
	if (result->needed_steps)
		table_set_int(table, row, METRIC_NEEDED_STEPS, result->needed_steps);
	else
		table_set_missing(table, row, METRIC_NEEDED_STEPS,
		                  result->needed_runs ? "longer runs cannot settle the result"
		                                      : "the result is settled");
}

/* Sets the cells of a row without an interval. */
static void metrics_set_without(struct table *table, int row, const struct metric_result *result, const char *reason)
{
	for (int column = METRIC_RATIO; column < METRIC_RESULT; column++)
		table_set_missing(table, row, column, reason);
	table_set_missing(table, row, METRIC_NEEDED_RUNS, reason);
	table_set_missing(table, row, METRIC_NEEDED_STEPS, reason);
	if (result->has_ratio) {
		table_set_double(table, row, METRIC_RATIO, result->ratio);
		table_set_int(table, row, METRIC_NEEDED_RUNS, result->needed_runs);
	}
}

/* Returns "step time p50", or "step time evened out" if the steps are evened out. */
static const char *metrics_title(const struct metric_kind *kind, const struct compared_sides *sides,
                                 struct arena *arena)
{
	bool is_evened = (kind->source == FROM_STEPS && sides->steps.is_evened[kind->amount]) ||
	                 (kind->source == FROM_CPU && sides->steps.is_cpu_evened);
	const struct template_text middle = {"middle", is_evened ? "evened out" : "p50"};

	return template_write(arena, kind->title, &middle, 1);
}

static void metrics_add_row(struct table *table, const struct metric_result *result,
                            const struct metric_question *question, const struct compared_sides *sides)
{
	static const char *const units[] = {
		[UNIT_NONE] = "none",   [UNIT_NS] = "ns",       [UNIT_BYTES] = "bytes",
		[UNIT_COUNT] = "count", [UNIT_RATIO] = "ratio", [UNIT_PER_SECOND] = "per_s"};
	static const char *const betters[] = {
		[BETTER_LOWER] = "lower", [BETTER_HIGHER] = "higher", [BETTER_NEITHER] = "neither"};
	const struct metric_kind *kind = &metric_kinds[question->metric];
	const char *reason = metrics_reason(result, question, sides, &table->arena);
	int row = table_row(table);

	table_set_text(table, row, METRIC_NAME, compare_metric_name(question->metric));
	table_set_text(table, row, METRIC_TITLE, metrics_title(kind, sides, &table->arena));
	table_set_text(table, row, METRIC_UNIT, units[kind->unit]);
	table_set_text(table, row, METRIC_BETTER, betters[kind->better]);
	table_set_text(table, row, METRIC_RESULT, compare_result_name(result->result));
	table_set_text(table, row, METRIC_REASON, reason);
	if (result->has_interval)
		metrics_set_estimate(table, row, result, question->outside);
	else
		metrics_set_without(table, row, result, reason);
	if (!result->has_sides) {
		for (int column = METRIC_BASE; column <= METRIC_DELTA; column++)
			table_set_missing(table, row, column, reason);
		return;
	}
	table_set_double(table, row, METRIC_BASE, result->base);
	table_set_double(table, row, METRIC_NEW, result->new);
	table_set_double(table, row, METRIC_DELTA, result->new - result->base);
}

/* Explains "no difference" beside a 95 % interval that goes beyond the tolerance. */
static void metrics_add_note(struct table *table, const struct metric_result *results, double tolerance)
{
	struct arena *arena = &table->arena;
	const char *list = NULL;

	for (int row = 0; row < table->row_count; row++) {
		const struct metric_result *result = &results[row];

		if (!result->is_told_same || (result->low >= -tolerance && result->high <= tolerance))
			continue;
		list = arena_printf(arena, "%s%s%s %s", list ? list : "", list ? ", " : "",
		                    table_text(table, row, METRIC_TITLE),
		                    percent_range_text(arena, result->same_low, result->same_high));
	}
	if (list)
		table->note = arena_printf(arena,
		                           "'no difference' follows from the 90 %% interval (two tests at 5 %%, one "
		                           "per direction), which is within %.3g %%: %s",
		                           100 * tolerance, list);
}

/* ---- which metric is the first ---- */

/* Returns true if the fastest steps are compared first. If steps wait for CPUs that other work uses, the median mainly
 * shows how much other work there was. */
static bool is_contended(const struct compared_sides *sides)
{
	bool is_contended = false;

	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; i < sides->count[side]; i++) {
			struct step_level level = sides->levels[side][i];

			if (!sides->has_level[side][i] ||
			    !step_level_fastest(&level, &sides->runs[side][i], sides->steps.is_running))
				return false;
			is_contended |= sides->levels[side][i].contended > CONTENDED;
		}
	}
	return is_contended && sides->work.amount == PER_STEP && sides->work.is_same;
}

/* Moves the question about a metric to the first place. */
static void put_first(struct metric_question *questions, size_t count, enum compare_metric metric)
{
	for (size_t i = 1; i < count; i++) {
		struct metric_question first = questions[i];

		if (first.metric != metric)
			continue;
		memmove(questions + 1, questions, i * sizeof(*questions));
		questions[0] = first;
	}
}

/* Returns true for a snapshot: only memory is known of the run. */
static bool is_snapshot(const struct compared_run *run)
{
	const struct compared_value *peak = compared_run_value(run, "device_memory");

	if (run->steps_count || run->summary.steps || run->functions_count || !peak || !peak->has_value)
		return false;
	for (size_t i = 0; i < run->parts_count; i++)
		if (strncmp(run->parts[i].level, COMPARED_MEMORY, strlen(COMPARED_MEMORY)) != 0)
			return false;
	return true;
}

static bool are_snapshots(const struct compared_sides *sides)
{
	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			if (!is_snapshot(&sides->runs[side][i]))
				return false;
	return true;
}

/* ---- which metric decides ---- */

/* Returns true if the steps themselves or repeated runs show how much of a mean is chance. A summary does not show it,
 * nor does the time between steps in old runs of a history, which have no error for it. */
static bool is_mean_known(const struct compared_sides *sides, enum compare_metric mean)
{
	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; i < sides->count[side] && !has_repeats(sides); i++) {
			const struct compared_run *run = &sides->runs[side][i];

			if (!run->steps_count ||
			    (mean == COMPARE_STEP_PERIOD && !compared_run_value(run, "between_steps_error")))
				return false;
		}
	}
	return true;
}

/* Returns the row that the verdict is about. If some steps or the time between steps are slower, but not the median
 * step, a certainly longer mean still makes the run slower. A shorter mean is not enough for an improvement. On a
 * contended machine, long steps show the effect of other work, so means do not decide. */
static int find_deciding(const struct metric_result *results, size_t count, const struct compared_sides *sides)
{
	static const struct {
		enum compare_metric metric;
		enum step_amount amount;
	} means[] = {{COMPARE_STEP_TIME_MEAN, PER_STEP},
	             {COMPARE_STEP_PERIOD, PER_STEP},
	             {COMPARE_TOKENS_PER_S, PER_TOKEN},
	             {COMPARE_SAMPLES_PER_S, PER_SAMPLE}};

	if (sides->metrics.is_memory || sides->metrics.is_fastest || !sides->metrics.has_first ||
	    results[0].result == RESULT_REGRESSION)
		return 0;
	for (size_t i = 0; i < sizeof(means) / sizeof(means[0]); i++) {
		if (means[i].amount != sides->work.amount || !is_mean_known(sides, means[i].metric))
			continue;
		for (size_t row = 1; row < count; row++)
			if (results[row].metric == means[i].metric && results[row].result == RESULT_REGRESSION)
				return (int)row;
	}
	return 0;
}

/* ---- the table ---- */

/* All questions but the first share their chance of error. */
static void metrics_adjust(struct metric_question *questions, size_t count)
{
	double outside[COMPARE_METRIC_COUNT];

	for (size_t i = 1; i < count; i++)
		outside[i] = questions[i].outside;
	holm_adjust(outside + 1, count - 1);
	for (size_t i = 1; i < count; i++)
		questions[i].outside = outside[i];
}

static size_t metrics_ask(struct metric_question *questions, struct compared_sides *sides)
{
	size_t count = 0;

	for (int metric = 0; metric < COMPARE_METRIC_COUNT; metric++) {
		if (!metric_is_asked((enum compare_metric)metric, sides))
			continue;
		metric_question_init(&questions[count], (enum compare_metric)metric, sides);
		metric_question_answer(&questions[count++], sides);
	}
	sides->metrics.is_fastest = is_contended(sides);
	if (sides->metrics.is_fastest)
		put_first(questions, count, COMPARE_STEP_TIME_FASTEST);
	if (sides->metrics.is_memory)
		put_first(questions, count, COMPARE_DEVICE_MEMORY);
	metrics_adjust(questions, count);
	return count;
}

void comparison_add_metrics(struct comparison *comparison, struct compared_sides *sides)
{
	struct metric_question questions[COMPARE_METRIC_COUNT];
	struct table *table = &comparison->metrics;
	struct metric_result *results;
	size_t count;

	table_init(table, "metrics", "Metrics",
	           "each metric on both sides; the first decides the verdict, or a mean that is certainly worse");
	table_columns(table, columns, METRIC_COLUMNS);
	sides->metrics.is_memory = are_snapshots(sides);
	count = metrics_ask(questions, sides);
	comparison->metric_results = results = arena_array(&table->arena, count, sizeof(*results));
	for (size_t i = 0; i < count; i++) {
		results[i] = metrics_decide(&questions[i], sides);
		metrics_add_row(table, &results[i], &questions[i], sides);
	}
	metrics_add_note(table, results, sides->options->tolerance);
	sides->metrics.has_first = questions[0].has_estimate;
	sides->metrics.first = questions[0].estimate;
	sides->metrics.deciding = find_deciding(results, count, sides);
	sides->metrics.decided = questions[sides->metrics.deciding].estimate;
	for (size_t i = 0; i < count; i++)
		metric_question_release(&questions[i]);
}
