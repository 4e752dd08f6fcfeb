/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_metrics.c: the table `metrics`: each quantity on both sides, the change, and what can be said of it.
 */
#include "base/memory.h"
#include "base/units.h"
#include "compare/comparison_build.h"
#include "compare/holm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONTENDED 0.25 /* of the time steps, or somebody, waited for a CPU */

enum metric_source {
	FROM_STEPS,
	FROM_FASTEST, /* steps */
	FROM_CPU,     /* time of steps */
	FROM_VALUE,   /* compared_run_value() of the metric's name */
	FROM_FEW,     /* the same; no row where no run has it */
	FROM_MEAN,    /* the same; its error is that of the mean step */
	FROM_P95,     /* of the 95 % quantile of the steps */
	FROM_COUNT,   /* the same; any more of it is worse, without noise */
};

enum better {
	BETTER_LOWER,
	BETTER_HIGHER,
	BETTER_NEITHER
};
static const char *const better_names[] = {"lower", "higher", "neither"};

struct metric {
	const char *name, *title, *unit;
	enum better better;
	enum metric_source source;
	enum step_amount amount; /* FROM_STEPS */
};

static const struct metric metrics[] = {
	{"time_per_token", "step time p50 per token", "ns", BETTER_LOWER, FROM_STEPS, PER_TOKEN},
	{"time_per_sample", "step time p50 per sample", "ns", BETTER_LOWER, FROM_STEPS, PER_SAMPLE},
	{"step_time", "step time p50", "ns", BETTER_LOWER, FROM_STEPS, PER_STEP},
	{"step_time_fastest", "step time, fastest 1 %", "ns", BETTER_LOWER, FROM_FASTEST, 0},
	{"step_cpu_time", "CPU time of a step p50", "ns", BETTER_LOWER, FROM_CPU, 0},
	{"step_time_mean", "step time mean", "ns", BETTER_LOWER, FROM_MEAN, 0},
	{"step_time_p95", "step time p95", "ns", BETTER_LOWER, FROM_P95, 0},
	{"step_period", "from step to step", "ns", BETTER_LOWER, FROM_MEAN, 0},
	{"tokens_per_s", "tokens/s", "per_s", BETTER_HIGHER, FROM_MEAN, 0},
	{"samples_per_s", "samples/s", "per_s", BETTER_HIGHER, FROM_MEAN, 0},
	{"device_busy", "devices busy", "ratio", BETTER_NEITHER, FROM_VALUE, 0},
	{"device_memory", "peak memory of a device", "bytes", BETTER_LOWER, FROM_VALUE, 0},
	{"peak_memory", "peak memory of the host", "bytes", BETTER_LOWER, FROM_VALUE, 0},
	{"utilization", "utilization of the GPU", "ratio", BETTER_NEITHER, FROM_FEW, 0},
	{"wait_ratio", "between steps, of step time", "ratio", BETTER_NEITHER, FROM_FEW, 0},
	{"profiled_device_time", "CUDA time as profiled", "ns", BETTER_NEITHER, FROM_FEW, 0},
	{"profiled_host_time", "CPU time as profiled", "ns", BETTER_NEITHER, FROM_FEW, 0},
	{"final_loss", "last loss", "none", BETTER_LOWER, FROM_VALUE, 0},
	{"not_finite", "values not finite", "count", BETTER_LOWER, FROM_COUNT, 0},
};
#define METRIC_COUNT (sizeof(metrics) / sizeof(metrics[0]))

static const struct table_column columns[METRIC_COLUMNS] = {
	[METRIC_NAME] = {.name = "metric", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "what is compared"},
	[METRIC_TITLE] = {.name = "title", .type = TABLE_TEXT, .definition = "the same in words"},
	[METRIC_UNIT] = {.name = "unit",
                         .type = TABLE_TEXT,
                         .definition = "of base, new and delta: ns, bytes, ratio, per_s, count or none"},
	[METRIC_BETTER] = {.name = "better", .type = TABLE_TEXT, .definition = "lower, higher or neither"},
	[METRIC_BASE] = {.name = "base",
                         .type = TABLE_DOUBLE,
                         .definition = "geometric mean over the runs of the base: of the median step (evened out, where "
                                       "the title says so), or of the run's number; steps of the warm-up left out"},
	[METRIC_NEW] = {.name = "new", .type = TABLE_DOUBLE, .definition = "the same of the new side"},
	[METRIC_DELTA] = {.name = "delta", .type = TABLE_DOUBLE, .definition = "new minus base"},
	[METRIC_RATIO] =
		{.name = "change_ratio",
                 .title = "change",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .denominator = "the base",
                 .definition = "the change; of runs made in turns the mean over the pairs, of many runs the middle of "
                               "all their differences"},
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
                         "lower end of the 90 % interval of the change: where it lies within the tolerance, a change of "
                         "that size is ruled out by two tests at 5 %, one for either direction",
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
                 .definition = "chance of a change as large when there is none; of all rows but the first adjusted for "
                               "their number (Holm)",
                 .is_hidden = true},
	[METRIC_RESULT] =
		{.name = "result",
                 .type = TABLE_TEXT,
                 .definition =
                         "regression, improvement, changed, no difference, inconclusive, not comparable or not measured"},
	[METRIC_NEEDED_RUNS] =
		{.name = "needed_runs",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .role = ROLE_EVIDENCE,
                 .definition = "runs a side that tell a change of the tolerance from none in 19 of 20 cases, "
                               "when it is inconclusive",
                 .is_hidden = true},
	[METRIC_NEEDED_STEPS] = {.name = "needed_steps",
                                 .type = TABLE_INT,
                                 .unit = UNIT_COUNT,
                                 .role = ROLE_EVIDENCE,
                                 .definition = "steps a run that do the same, where longer runs are enough",
                                 .is_hidden = true},
	[METRIC_REASON] = {.name = "reason", .type = TABLE_TEXT, .definition = "why the result is that"},
};

/* ---- what is compared ---- */

/* A metric of both sides: one level per run. */
struct question {
	const struct metric *metric;
	struct run_level *levels[SIDES];
	double sums[SIDES]; /* of values: for what has no logarithm, and of a single run as it was read */
	const char *reason; /* it cannot be asked; NULL: it can */
	bool is_zero[SIDES];
	bool has_estimate;
	struct estimate estimate;
	double outside; /* adjusted */
};

static bool value_of(const struct compared_run *run, const char *name, double *value, const char **reason)
{
	const struct compared_value *found = compared_run_value(run, name);

	if (!found || !found->has_value) {
		*reason = found ? found->reason : "not recorded";
		return false;
	}
	*value = found->value;
	return true;
}

/* From one step's begin to the next. */
static bool period_of(const struct compared_run *run, double *value, const char **reason)
{
	double between;

	if (!value_of(run, "step_time_mean", value, reason) || !value_of(run, "between_steps", &between, reason))
		return false;
	*value += between;
	return true;
}

/* Its mean step takes the mean between steps as a share of both. Runs that were kept before that was known have no error there. */
static double error_of_period(const struct compared_run *run, double error)
{
	double mean, between, between_error;
	const char *reason;

	if (!value_of(run, "step_time_mean", &mean, &reason) || !value_of(run, "between_steps", &between, &reason) ||
	    mean + between <= 0)
		return error;
	if (!value_of(run, "between_steps_error", &between_error, &reason))
		between_error = 0;
	return hypot(error * mean, between_error) / (mean + between);
}

/* Only asked for where no repeats tell the noise. */
static double error_of(const struct metric *metric, const struct compared_sides *sides, int side, size_t i)
{
	const struct step_level *level = &sides->levels[side][i];
	const struct compared_run *run = &sides->runs[side][i];
	double error;

	if (has_repeats(sides) || !sides->has_level[side][i])
		return 0;
	if (metric->source == FROM_P95)
		return step_level_error(level, run, RESAMPLE_P95);
	if (metric->source != FROM_MEAN)
		return 0;
	error = step_level_error(level, run, RESAMPLE_MEAN);
	return step_level_error_of_logarithm(!strcmp(metric->name, "step_period") ? error_of_period(run, error)
	                                                                          : error);
}

static void set_value(struct question *question, const struct compared_sides *sides, int side, size_t i)
{
	const char *name = question->metric->name;
	const struct compared_run *run = &sides->runs[side][i];
	double value = 0;
	bool is_known = !strcmp(name, "step_period") ? period_of(run, &value, &question->reason)
	                                             : value_of(run, name, &value, &question->reason);

	if (!is_known)
		return;
	question->sums[side] += value;
	question->is_zero[side] |= !(value > 0);
	question->levels[side][i] = sides->levels[side][i].run;
	question->levels[side][i].error = error_of(question->metric, sides, side, i);
	question->levels[side][i].level = value > 0 ? log(value) : 0;
	if (question->metric->source == FROM_MEAN)
		question->levels[side][i].uneven = sides->levels[side][i].uneven_mean;
	if (question->metric->source != FROM_VALUE && question->metric->source != FROM_FEW)
		return;
	question->levels[side][i].uneven = 0; /* what competes for a CPU makes steps longer, and no memory larger */
	question->levels[side][i].contended = 0;
}

static void set_steps(struct question *question, const struct compared_sides *sides, int side, size_t i)
{
	const struct compared_run *run = &sides->runs[side][i];
	struct step_level level = {0};

	if (question->metric->amount == PER_STEP) {
		level = sides->levels[side][i];
		question->sums[side] += run->steps_count ? 0 : run->summary.median_ns;
		if (!sides->has_level[side][i])
			question->reason = run->no_steps ? run->no_steps : "no step was completed";
	} else if (!step_level_compute(&level, run, question->metric->amount,
	                               sides->is_evened[question->metric->amount])) {
		question->reason = "not every step says how much work it had";
	}
	question->levels[side][i] = level.run;
}

static void set_fastest(struct question *question, const struct compared_sides *sides, int side, size_t i)
{
	struct step_level level = sides->levels[side][i];

	if (!sides->has_level[side][i] || !step_level_fastest(&level, &sides->runs[side][i], sides->is_running))
		question->reason = "fewer than 30 steps";
	question->levels[side][i] = level.run;
}

static void set_cpu(struct question *question, const struct compared_sides *sides, int side, size_t i)
{
	struct step_level level = {0};

	if (!step_level_cpu(&level, &sides->runs[side][i], sides->is_cpu_evened))
		question->reason = "recorded only of steps that the program marks and that are long enough";
	question->levels[side][i] = level.run;
}

static void question_init(struct question *question, const struct metric *metric, const struct compared_sides *sides)
{
	memset(question, 0, sizeof(*question));
	question->metric = metric;
	question->outside = NAN;
	for (int side = 0; side < SIDES; side++) {
		question->levels[side] = memory_resize(NULL, sides->count[side], sizeof(*question->levels[side]));
		memset(question->levels[side], 0, sides->count[side] * sizeof(*question->levels[side]));
		for (size_t i = 0; i < sides->count[side] && !question->reason; i++) {
			if (metric->source == FROM_STEPS)
				set_steps(question, sides, side, i);
			else if (metric->source == FROM_FASTEST)
				set_fastest(question, sides, side, i);
			else if (metric->source == FROM_CPU)
				set_cpu(question, sides, side, i);
			else
				set_value(question, sides, side, i);
		}
	}
}

static void question_release(struct question *question)
{
	free(question->levels[SIDE_BASE]);
	free(question->levels[SIDE_NEW]);
}

static bool metrics_is_time(const struct metric *metric)
{
	return metric->source != FROM_VALUE && metric->source != FROM_FEW && metric->source != FROM_COUNT;
}

/* Whoever is chosen for a short step has all of its times short. */
static double luck_of(const struct metric *metric, const struct comparison_options *options)
{
	double luck = estimate_luck(options->best_of, options->assumed_noise);

	if (metric->source == FROM_VALUE || metric->source == FROM_COUNT)
		return 0;
	return metric->better == BETTER_HIGHER ? -luck : luck;
}

static void question_answer(struct question *question, const struct compared_sides *sides)
{
	const struct estimate_options options = {sides->options->assumed_noise, log1p(sides->options->tolerance),
	                                         luck_of(question->metric, sides->options),
	                                         metrics_is_time(question->metric) ? sides->doubt : 0};

	if (question->reason || question->metric->source == FROM_COUNT || question->is_zero[SIDE_BASE] ||
	    question->is_zero[SIDE_NEW] || (sides->is_memory && !has_repeats(sides)))
		return;
	estimate_compute(&question->estimate, question->levels[SIDE_BASE], sides->count[SIDE_BASE],
	                 question->levels[SIDE_NEW], sides->count[SIDE_NEW], &options);
	question->has_estimate = true;
	question->outside = question->estimate.outside;
}

/* ---- rows ---- */

const char *percent_text(struct arena *arena, double ratio)
{
	char text[UNITS_BYTES];

	return arena_dup(arena, units_change(text, ratio));
}

static double side_mean(const struct question *question, const struct compared_sides *sides, int side)
{
	double sum = 0;

	if (!question->has_estimate || (sides->count[side] == 1 && question->sums[side] > 0))
		return question->sums[side] / (double)sides->count[side];
	for (size_t i = 0; i < sides->count[side]; i++)
		sum += question->levels[side][i].level;
	return exp(sum / (double)sides->count[side]);
}

static const char *metrics_judge(const struct question *question, const struct comparison_options *options)
{
	const struct estimate *estimate = &question->estimate;
	const struct tested_change tested = {expm1(estimate->change), expm1(estimate->same_low),
	                                     expm1(estimate->same_high), question->outside};
	const char *result = tested_result(&tested, options->smallest, options->tolerance);

	if (estimate->is_single && metrics_is_time(question->metric))
		return RESULT_INCONCLUSIVE;
	if (strcmp(result, RESULT_CHANGED) != 0 || question->metric->better == BETTER_NEITHER)
		return result;
	return (tested.change > 0) == (question->metric->better == BETTER_HIGHER) ? RESULT_IMPROVEMENT
	                                                                          : RESULT_REGRESSION;
}

static const char *explain(const struct question *question, const struct comparison_options *options,
                           const char *result, struct arena *arena)
{
	const char *low = percent_text(arena, expm1(question->estimate.low));
	const char *high = percent_text(arena, expm1(question->estimate.high));

	if (question->estimate.is_single && metrics_is_time(question->metric))
		return REASON_ONE_STEP;
	if (!strcmp(result, RESULT_INCONCLUSIVE) && (question->estimate.low > 0 || question->estimate.high < 0))
		return arena_printf(arena, "%s to %s by itself, but of this many metrics one looks like that by chance",
		                    low, high);
	if (!strcmp(result, RESULT_INCONCLUSIVE))
		return arena_printf(
			arena, "anything from %s to %s is possible: neither is 0 ruled out nor a change of %.3g %%",
			low, high, 100 * options->tolerance);
	if (strcmp(result, RESULT_SAME) != 0)
		return arena_printf(arena, "0 is ruled out: %s to %s", low, high);
	if (question->outside < SURE)
		return arena_printf(arena, "certain, but less than %.3g %%: %s to %s", 100 * options->smallest, low,
		                    high);
	return arena_printf(arena, "a change of %.3g %% is ruled out: %s to %s (90 %%)", 100 * options->tolerance,
	                    percent_text(arena, expm1(question->estimate.same_low)),
	                    percent_text(arena, expm1(question->estimate.same_high)));
}

static void set_estimate(struct table *table, int row, const struct question *question,
                         const struct compared_sides *sides)
{
	const struct estimate *estimate = &question->estimate;
	const char *result = metrics_judge(question, sides->options);
	bool is_open = !strcmp(result, RESULT_INCONCLUSIVE);

	table_set_double(table, row, METRIC_RATIO, expm1(estimate->change));
	table_set_double(table, row, METRIC_LOW, expm1(estimate->low));
	table_set_double(table, row, METRIC_HIGH, expm1(estimate->high));
	table_set_double(table, row, METRIC_SAME_LOW, expm1(estimate->same_low));
	table_set_double(table, row, METRIC_SAME_HIGH, expm1(estimate->same_high));
	table_set_double(table, row, METRIC_P, question->outside);
	if (is_open)
		table_set_int(table, row, METRIC_NEEDED_RUNS, (int64_t)estimate->needed_runs);
	else
		table_set_missing(table, row, METRIC_NEEDED_RUNS, "it is settled");
	if (is_open && estimate->needed_steps)
		table_set_int(table, row, METRIC_NEEDED_STEPS, (int64_t)estimate->needed_steps);
	else
		table_set_missing(table, row, METRIC_NEEDED_STEPS,
		                  is_open ? "longer runs do not settle it" : "it is settled");
	table_set_text(table, row, METRIC_REASON, explain(question, sides->options, result, &table->arena));
	if (metrics_is_time(question->metric) && sides->unlike) {
		result = RESULT_NOT_COMPARABLE;
		table_set_text(table, row, METRIC_REASON, sides->unlike);
	} else if (metrics_is_time(question->metric) && !sides->is_same_work) {
		result = RESULT_NOT_COMPARABLE;
		table_set_text(table, row, METRIC_REASON, "the work per step is not the same");
	}
	table_set_text(table, row, METRIC_RESULT, result);
}

static void set_unmeasured(struct table *table, int row, const char *result, const char *reason)
{
	for (int column = METRIC_RATIO; column < METRIC_RESULT; column++)
		table_set_missing(table, row, column, reason);
	table_set_missing(table, row, METRIC_NEEDED_RUNS, reason);
	table_set_missing(table, row, METRIC_NEEDED_STEPS, reason);
	table_set_text(table, row, METRIC_RESULT, result);
	table_set_text(table, row, METRIC_REASON, reason);
}

/* Of what is 0 somewhere, or counted: no ratio. */
static void set_plain(struct table *table, int row, const struct question *question, double delta)
{
	if (!(fabs(delta) > 0))
		set_unmeasured(table, row, RESULT_SAME, "the same on both sides");
	else if (question->metric->source == FROM_COUNT)
		set_unmeasured(table, row, delta > 0 ? RESULT_REGRESSION : RESULT_IMPROVEMENT,
		               "counted, without noise");
	else
		set_unmeasured(table, row, RESULT_NOT_MEASURED, "a change from or to 0 or less has no ratio");
}

/* Of snapshots without repeats: what differs, and that nothing tells how much of it is noise. */
static void set_without_interval(struct table *table, int row, double base, double delta)
{
	const char *reason = "one snapshot each, or few: no interval";

	set_unmeasured(table, row, RESULT_INCONCLUSIVE, reason);
	table_set_double(table, row, METRIC_RATIO, delta / base);
	table_set_int(table, row, METRIC_NEEDED_RUNS, LEAST_RUNS / SIDES);
}

/* "step time p50", or of steps that are evened out what they are. */
static const char *title_of(const struct metric *metric, const struct compared_sides *sides, struct arena *arena)
{
	bool is_evened = (metric->source == FROM_STEPS && sides->is_evened[metric->amount]) ||
	                 (metric->source == FROM_CPU && sides->is_cpu_evened);
	const char *p50 = is_evened ? strstr(metric->title, "p50") : NULL;

	if (!p50)
		return metric->title;
	return arena_printf(arena, "%.*sevened out%s", (int)(p50 - metric->title), metric->title, p50 + strlen("p50"));
}

static void metrics_add_row(struct table *table, const struct question *question, const struct compared_sides *sides)
{
	const struct metric *metric = question->metric;
	int row = table_row(table);
	double base, new;

	table_set_text(table, row, METRIC_NAME, metric->name);
	table_set_text(table, row, METRIC_TITLE, title_of(metric, sides, &table->arena));
	table_set_text(table, row, METRIC_UNIT, metric->unit);
	table_set_text(table, row, METRIC_BETTER, better_names[metric->better]);
	if (question->reason) {
		for (int column = METRIC_BASE; column <= METRIC_DELTA; column++)
			table_set_missing(table, row, column, question->reason);
		set_unmeasured(table, row, RESULT_NOT_MEASURED, question->reason);
		return;
	}
	base = side_mean(question, sides, SIDE_BASE);
	new = side_mean(question, sides, SIDE_NEW);
	table_set_double(table, row, METRIC_BASE, base);
	table_set_double(table, row, METRIC_NEW, new);
	table_set_double(table, row, METRIC_DELTA, new - base);
	if (question->has_estimate)
		set_estimate(table, row, question, sides);
	else if (sides->is_memory && base > 0 && new > 0)
		set_without_interval(table, row, base, new - base);
	else
		set_plain(table, row, question, new - base);
}

/* ---- the table ---- */

bool is_told_same(const struct table *table, int row)
{
	double outside;

	return !strcmp(table_text(table, row, METRIC_RESULT), RESULT_SAME) &&
	       table_number(table, row, METRIC_P, &outside) && outside >= SURE;
}

/* "no difference" beside a 95 % interval that goes beyond the tolerance wants a word. */
static void metrics_add_note(struct table *table, double tolerance)
{
	struct arena *arena = &table->arena;
	const char *list = NULL;

	for (int row = 0; row < table->row_count; row++) {
		if (!is_told_same(table, row) || (table_get(table, row, METRIC_LOW)->d >= -tolerance &&
		                                  table_get(table, row, METRIC_HIGH)->d <= tolerance))
			continue;
		list = arena_printf(arena, "%s%s%s %s to %s", list ? list : "", list ? ", " : "",
		                    table_text(table, row, METRIC_TITLE),
		                    percent_text(arena, table_get(table, row, METRIC_SAME_LOW)->d),
		                    percent_text(arena, table_get(table, row, METRIC_SAME_HIGH)->d));
	}
	if (list)
		table->note = arena_printf(arena,
		                           "that there is no difference is told by the 90 %% interval (two tests at "
		                           "5 %%, one for either direction), which lies within %.3g %%: %s",
		                           100 * tolerance, list);
}

static bool has_value(const struct compared_sides *sides, const char *name)
{
	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			if (compared_run_value(&sides->runs[side][i], name))
				return true;
	return false;
}

/* Times per token or sample are asked for when steps have different amounts of them. */
static bool is_asked(const struct metric *metric, const struct compared_sides *sides)
{
	if (metric->source == FROM_FEW && !has_value(sides, metric->name))
		return false;
	return metric->source != FROM_STEPS || metric->amount == PER_STEP || metric->amount == sides->amount;
}

static void adjust(struct question *questions, size_t count)
{
	double outside[METRIC_COUNT];

	for (size_t i = 1; i < count; i++)
		outside[i] = questions[i].outside;
	holm_adjust(outside + 1, count - 1);
	for (size_t i = 1; i < count; i++)
		questions[i].outside = outside[i];
}

/* Where the steps wait for CPUs that others use, the median says how much of that there was: the fastest steps are asked first. */
static bool is_contended(const struct compared_sides *sides)
{
	bool is_contended = false;

	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; i < sides->count[side]; i++) {
			struct step_level level = sides->levels[side][i];

			if (!sides->has_level[side][i] ||
			    !step_level_fastest(&level, &sides->runs[side][i], sides->is_running))
				return false;
			is_contended |= sides->levels[side][i].contended > CONTENDED;
		}
	}
	return is_contended && sides->amount == PER_STEP && sides->is_same_work;
}

/* The place of the question that the verdict is about. */
static void put_first(struct question *questions, size_t count, const char *name)
{
	for (size_t i = 1; i < count; i++) {
		struct question first = questions[i];

		if (strcmp(first.metric->name, name) != 0)
			continue;
		memmove(questions + 1, questions, i * sizeof(*questions));
		questions[0] = first;
	}
}

/* All that is known of the run is its memory: a snapshot. */
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

/* ---- what decides ---- */

/* Steps themselves tell how much their mean is by chance, or repeats do; of a summary nothing does, and of runs that were kept before that was
 * known, nothing tells it of the time between steps. */
static bool is_mean_known(const struct compared_sides *sides, const char *name)
{
	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; i < sides->count[side] && !has_repeats(sides); i++) {
			const struct compared_run *run = &sides->runs[side][i];

			if (!run->steps_count ||
			    (!strcmp(name, "step_period") && !compared_run_value(run, "between_steps_error")))
				return false;
		}
	}
	return true;
}

/* Some steps can be slower, or what lies between them, and the one in the middle not: what is certainly slower on average is slower. That it is faster on
 * average is not enough to be an improvement. Where other work competed for the machine, that is what long steps are of. */
static int find_deciding(const struct table *table, const struct compared_sides *sides)
{
	static const struct {
		const char *name;
		enum step_amount amount;
	} means[] = {{"step_time_mean", PER_STEP},
	             {"step_period", PER_STEP},
	             {"tokens_per_s", PER_TOKEN},
	             {"samples_per_s", PER_SAMPLE}};
	const char *result = table_text(table, 0, METRIC_RESULT);

	if (sides->is_memory || sides->is_fastest || !sides->has_first || !strcmp(result, RESULT_REGRESSION))
		return 0;
	for (size_t i = 0; i < sizeof(means) / sizeof(means[0]); i++) {
		if (means[i].amount != sides->amount || !is_mean_known(sides, means[i].name))
			continue;
		for (int row = 1; row < table->row_count; row++)
			if (!strcmp(table_text(table, row, METRIC_NAME), means[i].name) &&
			    !strcmp(table_text(table, row, METRIC_RESULT), RESULT_REGRESSION))
				return row;
	}
	return 0;
}

void comparison_add_metrics(struct table *table, struct compared_sides *sides)
{
	struct question questions[METRIC_COUNT];
	size_t count = 0;

	sides->is_memory = are_snapshots(sides);
	table_init(table, "metrics", "Metrics",
	           "each quantity on both sides; the verdict is about the first, or a mean that is certainly worse");
	table_columns(table, columns, METRIC_COLUMNS);
	for (size_t i = 0; i < METRIC_COUNT; i++) {
		if (!is_asked(&metrics[i], sides))
			continue;
		question_init(&questions[count], &metrics[i], sides);
		question_answer(&questions[count++], sides);
	}
	sides->is_fastest = is_contended(sides);
	if (sides->is_fastest)
		put_first(questions, count, "step_time_fastest");
	if (sides->is_memory)
		put_first(questions, count, "device_memory");
	adjust(questions, count);
	for (size_t i = 0; i < count; i++)
		metrics_add_row(table, &questions[i], sides);
	metrics_add_note(table, sides->options->tolerance);
	sides->has_first = questions[0].has_estimate;
	sides->first = questions[0].estimate;
	sides->deciding = find_deciding(table, sides);
	sides->decided = questions[sides->deciding].estimate;
	for (size_t i = 0; i < count; i++)
		question_release(&questions[i]);
}
