/* SPDX-License-Identifier: Apache-2.0
 *
 * limits_check.c: the table `limits`: each limit is decided first, then put into words. All numbers come from the
 * comparison.
 */
#include "base/template.h"
#include "compare/limits.h"
#include "model/cell_words.h"

#include <math.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

static const struct table_column columns[CHECKED_COLUMNS] = {
	[CHECKED_NAME] = {.name = "check", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name of the limit"},
	[CHECKED_TITLE] = {.name = "title", .type = TABLE_TEXT, .definition = "the limit in words"},
	[CHECKED_METRIC] = {.name = "metric", .type = TABLE_TEXT, .definition = "the limited metric"},
	[CHECKED_LIMIT] = {.name = "limit", .type = TABLE_TEXT, .definition = "largest allowed change for the worse"},
	[CHECKED_MOST] = {.name = "most",
                          .type = TABLE_DOUBLE,
                          .definition = "the limit as a number: per cent, MiB or a count",
                          .is_hidden = true},
	[CHECKED_RESULT] = {.name = "result",
                            .type = TABLE_TEXT,
                            .definition = "kept, broken, warning, inconclusive, not comparable or not measured"},
	[CHECKED_MESSAGE] = {.name = "message", .type = TABLE_TEXT, .definition = "the result in words"},
};

/* ---- deciding ---- */

struct limit_kind {
	const char *title;
	enum limit_index index;
	double factor; /* 1: more is worse; -1: less is worse */
	const char *unit;
	enum compare_result broken;
};

static const struct limit_kind limit_kinds[LIMIT_CHECK_COUNT] = {
	[CHECK_NOT_FINITE] = {.title = "NaN or infinite values"},
	[CHECK_DIVERGENCE] = {.title = "loss"},
	[CHECK_STEP_TIME] = {"step time", LIMIT_STEP_TIME, 1, "%", RESULT_BROKEN},
	[CHECK_TOKENS] = {"tokens per second", LIMIT_TOKENS, -1, "%", RESULT_BROKEN},
	[CHECK_MEMORY_MIB] = {"peak memory", LIMIT_MEMORY_MB, 1, "MiB", RESULT_BROKEN},
	[CHECK_MEMORY] = {"peak memory", LIMIT_MEMORY, 1, "%", RESULT_BROKEN},
	[CHECK_LOSS] = {"final loss", LIMIT_LOSS, 1, "%", RESULT_WARNING},
};

static bool limits_decide(struct checked_limit *checked, enum compare_result result, enum limit_reason reason)
{
	checked->result = result;
	checked->reason = reason;
	return true;
}

/* Returns the metric of a limit. For the step time it is that of the verdict. For memory it is PyTorch's memory on a
 * device, or, if that was not recorded, the resident memory of the process. */
static enum compare_metric limits_metric(const struct comparison *comparison, enum limit_check check)
{
	enum compare_metric first = comparison->metric_results[0].metric;
	int device = comparison_row(comparison, COMPARE_DEVICE_MEMORY);

	switch (check) {
	case CHECK_STEP_TIME:
		return first == COMPARE_TIME_PER_TOKEN || first == COMPARE_TIME_PER_SAMPLE ? first : COMPARE_STEP_TIME;
	case CHECK_TOKENS:
		return COMPARE_TOKENS_PER_S;
	case CHECK_MEMORY_MIB:
	case CHECK_MEMORY:
		return device < 0 || (comparison->metric_results[device].result == RESULT_NOT_MEASURED &&
		                      comparison->metric_results[device].reason != REASON_IN_PART)
		               ? COMPARE_PEAK_MEMORY
		               : COMPARE_DEVICE_MEMORY;
	case CHECK_LOSS:
		return COMPARE_FINAL_LOSS;
	default:
		return COMPARE_NOT_FINITE;
	}
}

/* Returns true if the work of a step differs and the metric does not account for it, as times of steps do. */
static bool has_other_work(const struct comparison *comparison, enum compare_metric metric)
{
	if (metric == COMPARE_STEP_TIME || metric == COMPARE_TIME_PER_TOKEN || metric == COMPARE_TIME_PER_SAMPLE ||
	    metric == COMPARE_TOKENS_PER_S)
		return false;
	return comparison_difference(comparison, FACT_WORK) >= 0;
}

/* Returns true if the comparison itself says that this metric cannot be judged. The limit is then decided. */
static bool limits_is_settled(struct checked_limit *checked, const struct comparison *comparison)
{
	const struct metric_result *metric = checked->metric < 0 ? NULL : &comparison->metric_results[checked->metric];

	if (!metric || metric->result == RESULT_NOT_MEASURED)
		return limits_decide(checked, RESULT_NOT_MEASURED, LIMIT_BY_METRIC);
	if (has_other_work(comparison, metric->metric))
		return limits_decide(checked, RESULT_NOT_COMPARABLE, LIMIT_OTHER_WORK);
	if (metric->result == RESULT_NOT_COMPARABLE)
		return limits_decide(checked, RESULT_NOT_COMPARABLE, LIMIT_BY_METRIC);
	if (comparison_difference(comparison, FACT_HARDWARE) >= 0)
		return limits_decide(checked, RESULT_NOT_COMPARABLE, LIMIT_OTHER_HARDWARE);
	if (metric->reason == REASON_ONE_STEP)
		return limits_decide(checked, RESULT_INCONCLUSIVE, LIMIT_BY_METRIC);
	if (!metric->has_ratio)
		return limits_decide(checked, RESULT_NOT_MEASURED, LIMIT_NO_RATIO);
	return !metric->has_interval && limits_decide(checked, RESULT_INCONCLUSIVE, LIMIT_BY_METRIC);
}

/* Returns the smallest number of steps of a run of the base. */
static double limits_fewest_steps(const struct comparison *comparison)
{
	const struct table *runs = &comparison->runs;
	double fewest = INFINITY, steps;

	for (int row = 0; row < runs->row_count; row++) {
		if (!strcmp(table_text(runs, row, RUNS_SIDE), CELL_SIDE_BASE) &&
		    table_number(runs, row, RUNS_STEPS, &steps))
			fewest = fmin(fewest, steps);
	}
	return fewest;
}

static void limits_judge(struct checked_limit *checked, const struct metric_result *metric)
{
	const struct limit_kind *kind = &limit_kinds[checked->check];
	double factor = kind->factor * (checked->check == CHECK_MEMORY_MIB ? metric->base / MIB : 100);

	checked->worse = metric->ratio * factor;
	checked->low = factor < 0 ? metric->high * factor : metric->low * factor;
	checked->high = factor < 0 ? metric->low * factor : metric->high * factor;
	if (checked->low > checked->most)
		limits_decide(checked, kind->broken, LIMIT_MET);
	else if (checked->high > checked->most)
		limits_decide(checked, RESULT_INCONCLUSIVE, LIMIT_INSIDE);
	else
		limits_decide(checked, RESULT_KEPT, LIMIT_MET);
}

/* A limit of the median step is also one of the mean, if the mean certainly breaks it: a few steps may have become much
 * longer. */
static void limits_judge_mean(struct checked_limit *checked, const struct comparison *comparison)
{
	struct checked_limit mean = {.check = checked->check, .most = checked->most};

	mean.metric = comparison_row(comparison, COMPARE_STEP_TIME_MEAN);
	if (checked->result == RESULT_BROKEN ||
	    comparison->metric_results[checked->metric].metric != COMPARE_STEP_TIME ||
	    limits_is_settled(&mean, comparison))
		return;
	limits_judge(&mean, &comparison->metric_results[mean.metric]);
	if (mean.result == RESULT_BROKEN)
		*checked = mean;
}

static void limits_decide_change(struct checked_limit *checked, const struct limits *limits,
                                 const struct comparison *comparison)
{
	bool is_of_steps = checked->check == CHECK_STEP_TIME || checked->check == CHECK_TOKENS;

	checked->most = limits->values[limit_kinds[checked->check].index];
	if (limits_is_settled(checked, comparison))
		return;
	checked->fewest_steps = limits_fewest_steps(comparison);
	if (is_of_steps && checked->fewest_steps < limits->values[LIMIT_STEP_COUNT])
		limits_decide(checked, RESULT_INCONCLUSIVE, LIMIT_FEW_STEPS);
	else
		limits_judge(checked, &comparison->metric_results[checked->metric]);
	if (checked->check == CHECK_STEP_TIME && checked->reason != LIMIT_FEW_STEPS)
		limits_judge_mean(checked, comparison);
}

static void limits_decide_not_finite(struct checked_limit *checked, const struct limits *limits,
                                     const struct comparison *comparison)
{
	const struct metric_result *metric = &comparison->metric_results[checked->metric];

	checked->most = limits->values[LIMIT_NAN_STEPS] + limits->values[LIMIT_INF_STEPS];
	if (!metric->has_sides)
		limits_decide(checked, RESULT_NOT_MEASURED, LIMIT_NOT_COUNTED);
	else
		limits_decide(checked, metric->new > checked->most ? RESULT_BROKEN : RESULT_KEPT, LIMIT_COUNTED);
}

static struct checked_limit limits_check_one(const struct limits *limits, const struct comparison *comparison,
                                             enum limit_check check)
{
	struct checked_limit checked = {.check = check, .metric = -1};

	if (check == CHECK_DIVERGENCE) { /* only the new side is asked */
		limits_decide(&checked, comparison->diverged ? RESULT_BROKEN : RESULT_KEPT,
		              comparison->diverged ? LIMIT_DIVERGED : LIMIT_CONVERGED);
		return checked;
	}
	checked.metric = comparison_row(comparison, limits_metric(comparison, check));
	if (check == CHECK_NOT_FINITE)
		limits_decide_not_finite(&checked, limits, comparison);
	else
		limits_decide_change(&checked, limits, comparison);
	return checked;
}

/* ---- in words ---- */

static const char *const limit_templates[] = {
	[LIMIT_BY_METRIC] = "{reason|the metric was not measured}",
	[LIMIT_OTHER_WORK] = "the work per step is not the same",
	[LIMIT_OTHER_HARDWARE] = "the hardware is not the same: {fact}",
	[LIMIT_NO_RATIO] = "the base is 0, so there is no change in per cent",
	[LIMIT_FEW_STEPS] = "the base has {steps} steps, but the limits require at least {least}",
	[LIMIT_MET] = "{change}, the limit is {most} {unit}",
	[LIMIT_INSIDE] = "{change}, the limit of {most} {unit} is within the interval",
	[LIMIT_NOT_COUNTED] = "the new run recorded no metrics such as loss",
	[LIMIT_COUNTED] = "{new} NaN or infinite values, {most} are allowed",
	[LIMIT_DIVERGED] = "'{run}' reports that its loss diverged (late loss >> early loss)",
	[LIMIT_CONVERGED] = "the new run reports that its loss did not diverge",
};

/* Returns "increased by 14.1 % (95 % interval +13.0 to +15.2 %)", "dropped by ..." or, if it is not worse, "changed
 * by -3.0 % ...". */
static const char *limits_change_text(const struct checked_limit *checked, struct arena *arena)
{
	const struct limit_kind *kind = &limit_kinds[checked->check];
	bool is_worse = !(checked->worse < 0), is_turned = !is_worse && kind->factor < 0;
	double change = is_worse ? checked->worse + 0.0 /* turns -0 into 0 */ : kind->factor * checked->worse;
	const struct template_text texts[] = {
		{"verb", !is_worse          ? "changed"
	                 : kind->factor > 0 ? "increased"
	                                    : "dropped"},
		{"change", arena_printf(arena, is_worse ? "%.1f" : "%+.1f", change)},
		{"unit", kind->unit},
		{"low", arena_printf(arena, "%+.1f", is_turned ? -checked->high : checked->low)},
		{"high", arena_printf(arena, "%+.1f", is_turned ? -checked->low : checked->high)},
	};

	return template_write(arena, "{verb} by {change} {unit} (95 % interval {low} to {high} {unit})", texts,
	                      sizeof(texts) / sizeof(texts[0]));
}

static const char *limits_message(const struct checked_limit *checked, const struct limits *limits,
                                  const struct comparison *comparison, struct arena *arena)
{
	int hardware = comparison_difference(comparison, FACT_HARDWARE), metric = checked->metric;
	bool is_count = checked->reason == LIMIT_COUNTED;
	const struct template_text texts[] = {
		{"reason", metric < 0 ? NULL : table_text(&comparison->metrics, metric, METRIC_REASON)},
		{"fact", hardware < 0 ? NULL : table_text(&comparison->differences, hardware, DIFFERENCE_FACT)},
		{"steps", arena_printf(arena, "%.0f", checked->fewest_steps)},
		{"least", arena_printf(arena, "%.0f", limits->values[LIMIT_STEP_COUNT])},
		{"change", limits_change_text(checked, arena)},
		{"most", arena_printf(arena, is_count ? "%.0f" : "%g", checked->most)},
		{"unit", limit_kinds[checked->check].unit},
		{"new", is_count ? arena_printf(arena, "%.3g", comparison->metric_results[metric].new) : NULL},
		{"run", comparison->diverged ? arena_printf(arena, "%.60s", comparison->diverged) : NULL},
	};

	return template_write(arena, limit_templates[checked->reason], texts, sizeof(texts) / sizeof(texts[0]));
}

static const char *limits_title(const struct checked_limit *checked, const struct comparison *comparison)
{
	if (checked->check == CHECK_STEP_TIME) {
		enum compare_metric metric = comparison->metric_results[checked->metric].metric;

		if (metric == COMPARE_TIME_PER_TOKEN)
			return "time per token";
		if (metric == COMPARE_TIME_PER_SAMPLE)
			return "time per sample";
		if (metric == COMPARE_STEP_TIME_MEAN)
			return "mean step time";
	}
	return limit_kinds[checked->check].title;
}

/* Returns "+10 %", "at most 0" or "no divergence". */
static const char *limits_limit_text(const struct checked_limit *checked, struct arena *arena)
{
	const struct limit_kind *kind = &limit_kinds[checked->check];

	if (checked->check == CHECK_DIVERGENCE)
		return "no divergence";
	if (checked->check == CHECK_NOT_FINITE)
		return arena_printf(arena, "at most %.0f", checked->most);
	return arena_printf(arena, "%s%g %s", kind->factor > 0 ? "+" : "-", checked->most, kind->unit);
}

/* ---- the table ---- */

static void limits_add_row(struct table *table, const struct checked_limit *checked, const struct limits *limits,
                           const struct comparison *comparison)
{
	const char *title = limits_title(checked, comparison);
	const char *message = limits_message(checked, limits, comparison, &table->arena);
	int row = table_row(table);

	table_set_text(table, row, CHECKED_NAME, limit_check_name(checked->check));
	table_set_text(table, row, CHECKED_TITLE, title);
	table_set_text(table, row, CHECKED_METRIC,
	               checked->metric < 0 ? COMPARED_DIVERGED
	                                   : compare_metric_name(comparison->metric_results[checked->metric].metric));
	table_set_text(table, row, CHECKED_LIMIT, limits_limit_text(checked, &table->arena));
	if (checked->check != CHECK_DIVERGENCE)
		table_set_double(table, row, CHECKED_MOST, checked->most);
	table_set_text(table, row, CHECKED_RESULT, compare_result_name(checked->result));
	table_set_text(table, row, CHECKED_MESSAGE, arena_printf(&table->arena, "%s: %s", title, message));
}

static void limits_table_init(struct table *table)
{
	table_init(table, "limits", "Limits", "the limits of the new side, and whether it keeps them");
	table_columns(table, columns, CHECKED_COLUMNS);
}

void limits_none(struct table *table)
{
	limits_table_init(table);
	table->empty = "no limits were given: use --tier or --thresholds";
}

void limits_check(const struct limits *limits, const struct comparison *comparison, struct table *table,
                  struct checked_limit checked[LIMIT_CHECK_COUNT])
{
	limits_table_init(table);
	for (int check = 0; check < LIMIT_CHECK_COUNT; check++) {
		struct checked_limit *one = &checked[table->row_count];

		if (check == CHECK_DIVERGENCE && !comparison->decided.is_divergence_known)
			continue;
		*one = limits_check_one(limits, comparison, (enum limit_check)check);
		limits_add_row(table, one, limits, comparison);
	}
}

const char *limit_check_name(enum limit_check check)
{
	static const char *const names[LIMIT_CHECK_COUNT] = {
#define X(check, name) [check] = name,
		LIMIT_CHECKS(X)
#undef X
	};

	return names[check];
}
