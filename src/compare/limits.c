/* SPDX-License-Identifier: Apache-2.0
 *
 * limits.c: see the header. All numbers are those of the comparison; here they only meet their limits.
 */
#include "compare/limits.h"

#include "base/options.h"
#include "base/yaml_flat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)
#define TIERS 4

const char limit_tiers[] = "default, smoke, perf, nightly";
static const char *const tier_names[TIERS + 1] = {"default", "smoke", "perf", "nightly", NULL};

/* The keys of the file, and the values of each tier. */
static const struct limit_key {
	const char *key;
	double values[TIERS];
	double largest;
	bool is_whole;
} limit_keys[LIMIT_COUNT] = {
	[LIMIT_NAN_STEPS] = {"nan_steps_allowed", {0, 0, 0, 0}, 1e9, true},
	[LIMIT_INF_STEPS] = {"inf_steps_allowed", {0, 0, 0, 0}, 1e9, true},
	[LIMIT_STEP_TIME] = {"max_step_time_increase_pct", {10, 15, 8, 5}, 1e6, false},
	[LIMIT_TOKENS] = {"max_tps_drop_pct", {8, 12, 5, 3}, 100, false},
	[LIMIT_MEMORY_MB] = {"max_mem_increase_mb", {500, 1000, 300, 200}, 1e9, false},
	[LIMIT_MEMORY] = {"max_mem_increase_pct", {20, 20, 20, 20}, 1e6, false},
	[LIMIT_LOSS] = {"max_loss_increase_pct", {50, 50, 50, 50}, 1e6, false},
	[LIMIT_STEP_COUNT] = {"min_step_count", {20, 10, 50, 100}, 1e9, true},
};

static const char tier_key[] = "base_tier", level_key[] = "confidence_level";

bool limits_init(struct limits *limits, const char *tier)
{
	int index = 0;

	while (tier_names[index] && strcmp(tier_names[index], tier) != 0)
		index++;
	if (!tier_names[index])
		return false;
	*limits = (struct limits){0};
	snprintf(limits->tier, sizeof(limits->tier), "%s", tier);
	for (int i = 0; i < LIMIT_COUNT; i++)
		limits->values[i] = limit_keys[i].values[index];
	return true;
}

/* ---- the file ---- */

static enum status wrong(const char *path, const struct yaml_entry *entry, const char *problem, struct error *err)
{
	return error_set(err, STATUS_USAGE, "'%s', line %d: %s %s, got '%s'", path, entry->line, entry->key, problem,
	                 entry->value);
}

static enum status limits_unknown_key(const char *path, const struct yaml_entry *entry, struct error *err)
{
	const char *names[LIMIT_COUNT + 3];
	const char *nearest;

	for (int i = 0; i < LIMIT_COUNT; i++)
		names[i] = limit_keys[i].key;
	names[LIMIT_COUNT] = tier_key;
	names[LIMIT_COUNT + 1] = level_key;
	names[LIMIT_COUNT + 2] = NULL;
	nearest = nearest_name(entry->key, names);
	error_set(err, STATUS_USAGE, "'%s', line %d: there is no limit '%s'", path, entry->line, entry->key);
	if (nearest)
		error_hint(err, "did you mean '%s'?", nearest);
	return STATUS_USAGE;
}

static bool limits_read_number(const struct yaml_entry *entry, double *value)
{
	char *end;

	*value = strtod(entry->value, &end);
	return !entry->is_alias && end != entry->value && !*end && isfinite(*value);
}

/* Our intervals are 95 % intervals; a file that asks for others would be promised what it does not get. */
static enum status check_level(const char *path, const struct yaml_entry *entry, struct error *err)
{
	double value;

	if (limits_read_number(entry, &value) && fabs(value - 0.95) < 1e-9)
		return STATUS_OK;
	return wrong(path, entry, "can only be 0.95", err);
}

static enum status read_limit(struct limits *limits, const char *path, const struct yaml_entry *entry,
                              struct error *err)
{
	double value;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_key *key = &limit_keys[i];

		if (strcmp(entry->key, key->key) != 0)
			continue;
		if (!limits_read_number(entry, &value))
			return wrong(path, entry, "is a number", err);
		if (value < 0 || value > key->largest)
			return wrong(path, entry, i == LIMIT_TOKENS ? "is from 0 to 100" : "is not negative, nor huge",
			             err);
		if (key->is_whole && value != floor(value))
			return wrong(path, entry, "is a whole number", err);
		limits->values[i] = value;
		return STATUS_OK;
	}
	return limits_unknown_key(path, entry, err);
}

static enum status read_entry(struct limits *limits, const char *path, const struct yaml_entry *entry,
                              struct error *err)
{
	if (entry->document != 1)
		return error_set(err, STATUS_USAGE, "'%s', line %d: one document is expected", path, entry->line);
	if (!strcmp(entry->key, level_key))
		return check_level(path, entry, err);
	return strcmp(entry->key, tier_key) ? read_limit(limits, path, entry, err) : STATUS_OK;
}

/* The tier first, wherever it stands. */
static enum status read_tier(struct limits *limits, const char *path, const struct yaml_flat *yaml, struct error *err)
{
	for (int i = 0; i < yaml->count; i++) {
		const struct yaml_entry *entry = &yaml->entries[i];

		if (entry->document != 1 || strcmp(entry->key, tier_key) != 0)
			continue;
		if (entry->is_alias || !limits_init(limits, entry->value)) {
			error_set(err, STATUS_USAGE, "'%s', line %d: there is no tier '%s'", path, entry->line,
			          entry->value);
			error_hint(err, "there are %s", limit_tiers);
			return STATUS_USAGE;
		}
	}
	return STATUS_OK;
}

enum status limits_read(struct limits *limits, const char *path, struct error *err)
{
	struct yaml_flat yaml;
	enum status status = yaml_flat_read(&yaml, path, err);

	if (status)
		return status;
	status = read_tier(limits, path, &yaml, err);
	for (int i = 0; i < yaml.count && !status; i++)
		status = read_entry(limits, path, &yaml.entries[i], err);
	yaml_flat_release(&yaml);
	return status;
}

/* ---- checking ---- */

static const struct table_column columns[CHECKED_COLUMNS] = {
	[CHECKED_NAME] = {.name = "check", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "what is limited"},
	[CHECKED_TITLE] = {.name = "title", .type = TABLE_TEXT, .definition = "the same in words"},
	[CHECKED_METRIC] = {.name = "metric", .type = TABLE_TEXT, .definition = "the row of metrics it is about"},
	[CHECKED_LIMIT] = {.name = "limit", .type = TABLE_TEXT, .definition = "how much worse it may be"},
	[CHECKED_MOST] = {.name = "most",
                          .type = TABLE_DOUBLE,
                          .definition = "the same as a number: per cent, MiB, or a count",
                          .is_hidden = true},
	[CHECKED_RESULT] = {.name = "result",
                            .type = TABLE_TEXT,
                            .definition = "kept, broken, warning, inconclusive, not comparable or not measured"},
	[CHECKED_MESSAGE] = {.name = "message", .type = TABLE_TEXT, .definition = "the result in words"},
};

/* How much worse, in the unit of the limit: the estimate and its interval. */
struct limits_change {
	double value, low, high;
	bool has_interval;
};

struct check {
	const struct limits *limits;
	const struct comparison *comparison;
	struct table *checked;
	int metric; /* its row, -1: none */
	int row;    /* of `checked` */
	const char *title;
};

static const struct table *metrics_of(const struct check *check)
{
	return &check->comparison->metrics;
}

static void set_result(const struct check *check, const char *result, const char *message)
{
	table_set_text(check->checked, check->row, CHECKED_RESULT, result);
	table_set_text(check->checked, check->row, CHECKED_MESSAGE,
	               arena_printf(&check->checked->arena, "%s: %s", check->title, message));
}

static struct check begin_check(const struct limits *limits, const struct comparison *comparison, struct table *checked,
                                const char *name, const char *title, const char *metric)
{
	struct check check = {limits, comparison, checked, comparison_metric(comparison, metric), table_row(checked),
	                      title};

	table_set_text(checked, check.row, CHECKED_NAME, name);
	table_set_text(checked, check.row, CHECKED_TITLE, title);
	table_set_text(checked, check.row, CHECKED_METRIC, metric);
	return check;
}

static const char *reason_of(const struct check *check, int column)
{
	return table_text(metrics_of(check), check->metric, column);
}

static bool limits_is_time(const char *metric)
{
	static const char *const names[] = {"step_time", "time_per_token", "time_per_sample", "tokens_per_s"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i], metric))
			return true;
	}
	return false;
}

/* Of times the comparison itself knows whether they can be compared: for the same amount of work. Nothing else can. */
static bool has_other_work(const struct check *check)
{
	const struct table *differences = &check->comparison->differences;

	for (int row = 0; row < differences->row_count; row++) {
		if (!strcmp(table_get(differences, row, DIFFERENCE_KIND)->text, "work") &&
		    table_get(differences, row, DIFFERENCE_MATTERS)->b)
			return !limits_is_time(table_get(metrics_of(check), check->metric, METRIC_NAME)->text);
	}
	return false;
}

/* What the comparison says against judging this metric at all. True: the row is done. */
static bool limits_is_settled(const struct check *check)
{
	const struct table *differences = &check->comparison->differences;
	const char *result = check->metric < 0 ? NULL
	                                       : table_get(metrics_of(check), check->metric, METRIC_RESULT)->text;
	const char *reason = check->metric < 0 ? NULL : reason_of(check, METRIC_REASON);
	double ratio;

	if (!result || !strcmp(result, RESULT_NOT_MEASURED)) {
		set_result(check, LIMIT_NOT_MEASURED, reason ? reason : "it was not measured");
		return true;
	}
	if (has_other_work(check)) {
		set_result(check, LIMIT_NOT_COMPARABLE, "the work per step is not the same");
		return true;
	}
	if (!strcmp(result, RESULT_NOT_COMPARABLE)) {
		set_result(check, LIMIT_NOT_COMPARABLE, reason ? reason : "the work per step is not the same");
		return true;
	}
	for (int row = 0; row < differences->row_count; row++) {
		if (strcmp(table_get(differences, row, DIFFERENCE_KIND)->text, "hardware") != 0 ||
		    !table_get(differences, row, DIFFERENCE_MATTERS)->b)
			continue;
		set_result(check, LIMIT_NOT_COMPARABLE,
		           arena_printf(&check->checked->arena, "the hardware is not the same: %s",
		                        table_get(differences, row, DIFFERENCE_FACT)->text));
		return true;
	}
	if (reason && !strcmp(reason, REASON_ONE_STEP)) {
		set_result(check, LIMIT_INCONCLUSIVE, reason);
		return true;
	}
	if (table_number(metrics_of(check), check->metric, METRIC_RATIO, &ratio)) {
		if (table_get(metrics_of(check), check->metric, METRIC_LOW)->has_value)
			return false;
		set_result(check, LIMIT_INCONCLUSIVE, reason);
		return true;
	}
	set_result(check, LIMIT_NOT_MEASURED, "the base is 0, so there is no change in per cent");
	return true;
}

/* Of a metric: factor -1 where more is better, and per cent or the metric's own unit. */
static struct limits_change change_of(const struct check *check, double factor)
{
	struct limits_change change = {0};
	double low, high;

	table_number(metrics_of(check), check->metric, METRIC_RATIO, &change.value);
	change.value *= factor;
	change.low = change.high = change.value;
	change.has_interval = table_number(metrics_of(check), check->metric, METRIC_LOW, &low) &&
	                      table_number(metrics_of(check), check->metric, METRIC_HIGH, &high);
	if (!change.has_interval)
		return change;
	change.low = factor < 0 ? high * factor : low * factor;
	change.high = factor < 0 ? low * factor : high * factor;
	return change;
}

/* "increased by 14.1 %", or the other way "changed by -3.0 %"; and its interval. `verb` is for what is worse, which a `sign` of -1 makes
 * less of the metric. */
static const char *limits_describe(const struct limits_change *change, int sign, const char *verb, const char *unit,
                                   struct arena *arena)
{
	double low = change->low, high = change->high;
	const char *text = arena_printf(arena, "%s by %.1f %s", verb, change->value + 0.0, unit); /* not -0 */

	if (change->value < 0) {
		text = arena_printf(arena, "changed by %+.1f %s", sign * change->value, unit);
		low = sign < 0 ? -change->high : low;
		high = sign < 0 ? -change->low : high;
	}
	if (!change->has_interval)
		return text;
	return arena_printf(arena, "%s (95 %% interval %+.1f to %+.1f %s)", text, low, high, unit);
}

static void limits_judge(const struct check *check, const struct limits_change *change, double limit, int sign,
                         const char *unit, const char *broken)
{
	struct arena *arena = &check->checked->arena;
	const char *text = limits_describe(change, sign, sign > 0 ? "increased" : "dropped", unit, arena);

	if (change->low > limit)
		set_result(check, broken, arena_printf(arena, "%s, the limit is %g %s", text, limit, unit));
	else if (change->high > limit)
		set_result(check, LIMIT_INCONCLUSIVE,
		           arena_printf(arena, "%s, the limit of %g %s lies within", text, limit, unit));
	else
		set_result(check, LIMIT_KEPT, arena_printf(arena, "%s, the limit is %g %s", text, limit, unit));
}

static void check_not_finite(const struct limits *limits, const struct comparison *comparison, struct table *checked)
{
	struct check check = begin_check(limits, comparison, checked, "not_finite", "NaN or infinite values",
	                                 "not_finite");
	double allowed = limits->values[LIMIT_NAN_STEPS] + limits->values[LIMIT_INF_STEPS], value;

	table_set_text(checked, check.row, CHECKED_LIMIT, arena_printf(&checked->arena, "at most %.0f", allowed));
	table_set_double(checked, check.row, CHECKED_MOST, allowed);
	if (check.metric < 0 || !table_number(metrics_of(&check), check.metric, METRIC_NEW, &value))
		set_result(&check, LIMIT_NOT_MEASURED, "the new run has no metrics such as loss");
	else
		set_result(
			&check, value > allowed ? LIMIT_BROKEN : LIMIT_KEPT,
			arena_printf(&checked->arena, "%.0f NaN or infinite values, %.0f are allowed", value, allowed));
}

/* Told by the new side alone. */
static void check_divergence(const struct limits *limits, const struct comparison *comparison, struct table *checked)
{
	struct check check;

	if (!comparison->is_divergence_known)
		return;
	check = begin_check(limits, comparison, checked, "loss_divergence", "loss", "loss_diverged");
	table_set_text(checked, check.row, CHECKED_LIMIT, "no divergence");
	if (comparison->diverged)
		set_result(&check, LIMIT_BROKEN,
		           arena_printf(&checked->arena, "'%.60s' says that it diverged (late loss >> early loss)",
		                        comparison->diverged));
	else
		set_result(&check, LIMIT_KEPT, "it did not diverge, as the new run says");
}

/* Fewest steps of a run of the base. */
static bool has_too_few_steps(const struct check *check)
{
	const struct table *runs = &check->comparison->runs;
	double least = check->limits->values[LIMIT_STEP_COUNT], fewest = INFINITY, steps;

	for (int row = 0; row < runs->row_count; row++) {
		if (!strcmp(table_get(runs, row, RUNS_SIDE)->text, "base") &&
		    table_number(runs, row, RUNS_STEPS, &steps) && steps < fewest)
			fewest = steps;
	}
	if (fewest >= least)
		return false;
	set_result(check, LIMIT_INCONCLUSIVE,
	           arena_printf(&check->checked->arena, "the base has %.0f steps, the limits want at least %.0f",
	                        fewest, least));
	return true;
}

struct ratio_limit {
	enum limit_index index;
	const char *name, *metric, *title;
	double factor; /* 1: more is worse; -1: less is */
};

static void check_ratio(const struct limits *limits, const struct comparison *comparison, struct table *checked,
                        const struct ratio_limit *limit)
{
	struct check check = begin_check(limits, comparison, checked, limit->name, limit->title, limit->metric);
	bool is_of_steps = limit->index == LIMIT_STEP_TIME || limit->index == LIMIT_TOKENS;
	double most = limits->values[limit->index];
	struct limits_change change;

	table_set_double(checked, check.row, CHECKED_MOST, most);
	table_set_text(checked, check.row, CHECKED_LIMIT,
	               arena_printf(&checked->arena, "%s%g %%", limit->factor > 0 ? "+" : "-", most));
	if (limits_is_settled(&check) || (is_of_steps && has_too_few_steps(&check)))
		return;
	change = change_of(&check, limit->factor * 100);
	limits_judge(&check, &change, most, limit->factor > 0 ? 1 : -1, "%",
	             limit->index == LIMIT_LOSS ? LIMIT_WARNING : LIMIT_BROKEN);
}

/* The metric that the verdict is about: of a step, or of a token or sample where steps have unequal amounts of work. */
static struct ratio_limit step_time_limit(const struct comparison *comparison)
{
	const char *first = table_get(&comparison->metrics, 0, METRIC_NAME)->text;

	if (!strcmp(first, "time_per_token"))
		return (struct ratio_limit){LIMIT_STEP_TIME, "step_time", first, "time per token", 1};
	if (!strcmp(first, "time_per_sample"))
		return (struct ratio_limit){LIMIT_STEP_TIME, "step_time", first, "time per sample", 1};
	return (struct ratio_limit){LIMIT_STEP_TIME, "step_time", "step_time", "step time", 1};
}

/* What PyTorch holds on a device, where that was recorded; else the process's resident memory. */
static const char *memory_metric(const struct comparison *comparison)
{
	int row = comparison_metric(comparison, "device_memory");
	const char *reason = row < 0 ? NULL : table_text(&comparison->metrics, row, METRIC_REASON);

	if (row < 0)
		return "peak_memory";
	if (!strcmp(table_get(&comparison->metrics, row, METRIC_RESULT)->text, RESULT_NOT_MEASURED) &&
	    !(reason && !strncmp(reason, COMPARED_IN_PART, strlen(COMPARED_IN_PART))))
		return "peak_memory";
	return "device_memory";
}

static void check_memory_mb(const struct limits *limits, const struct comparison *comparison, struct table *checked)
{
	struct check check = begin_check(limits, comparison, checked, "peak_memory_mib", "peak memory",
	                                 memory_metric(comparison));
	struct limits_change change;
	double base;

	table_set_double(checked, check.row, CHECKED_MOST, limits->values[LIMIT_MEMORY_MB]);
	table_set_text(checked, check.row, CHECKED_LIMIT,
	               arena_printf(&checked->arena, "+%g MiB", limits->values[LIMIT_MEMORY_MB]));
	if (limits_is_settled(&check) || !table_number(metrics_of(&check), check.metric, METRIC_BASE, &base))
		return;
	change = change_of(&check, base / MIB);
	limits_judge(&check, &change, limits->values[LIMIT_MEMORY_MB], 1, "MiB", LIMIT_BROKEN);
}

static void checked_init(struct table *checked)
{
	table_init(checked, "limits", "Limits", "how much worse the new side may be, and whether it is");
	table_columns(checked, columns, CHECKED_COLUMNS);
}

void limits_none(struct table *checked)
{
	checked_init(checked);
	checked->empty = "no limits were given: --tier, --thresholds";
}

void limits_check(const struct limits *limits, const struct comparison *comparison, struct table *checked)
{
	const struct ratio_limit step_time = step_time_limit(comparison);
	const struct ratio_limit tokens = {LIMIT_TOKENS, "tokens_per_s", "tokens_per_s", "tokens per second", -1};
	const struct ratio_limit memory = {LIMIT_MEMORY, "peak_memory", memory_metric(comparison), "peak memory", 1};
	const struct ratio_limit loss = {LIMIT_LOSS, "final_loss", "final_loss", "final loss", 1};

	checked_init(checked);
	check_not_finite(limits, comparison, checked);
	check_divergence(limits, comparison, checked);
	check_ratio(limits, comparison, checked, &step_time);
	check_ratio(limits, comparison, checked, &tokens);
	check_memory_mb(limits, comparison, checked);
	check_ratio(limits, comparison, checked, &memory);
	check_ratio(limits, comparison, checked, &loss);
}
