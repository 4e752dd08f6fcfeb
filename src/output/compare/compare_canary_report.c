/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_canary_report.c: limits and their results as rlhf-canary's ComparisonReport, for programs that read it.
 * Keys, names of checks and units are rlhf-canary's. docs/compare-inputs.md lists the differences: medians,
 * intervals, and that an open answer is not a pass.
 */
#include "base/json_write.h"
#include "output/compare/compare_outputs.h"

#include <string.h>

#define MIB (1024.0 * 1024.0)

/* rlhf-canary's names of stepscope's checks; its values are in seconds and MiB. */
static const struct canary_check {
	const char *name;
	double unit; /* one unit of its values in the units of the comparison */
} canary_checks[LIMIT_CHECK_COUNT] = {
	[CHECK_NOT_FINITE] = {"nan_steps", 1},
	[CHECK_DIVERGENCE] = {"loss_divergence", 1},
	[CHECK_STEP_TIME] = {"step_time_mean", 1e9},
	[CHECK_TOKENS] = {"tokens_per_sec", 1},
	[CHECK_MEMORY_MIB] = {"max_memory", MIB},
	[CHECK_MEMORY] = {"max_memory_pct", MIB},
	[CHECK_LOSS] = {"final_loss", 1},
};

/* In that report a check without an answer is a warning, or was skipped. */
static const char *status_of(enum compare_result result)
{
	switch (result) {
	case RESULT_KEPT:
		return "pass";
	case RESULT_BROKEN:
		return "fail";
	case RESULT_NOT_MEASURED:
		return "skip";
	default:
		return "warn";
	}
}

static void canary_report_add_number(struct json_writer *json, const char *key, const struct table *table, int row,
                                     int column, double unit)
{
	double value;

	json_key(json, key);
	if (row >= 0 && table_number(table, row, column, &value))
		json_double(json, value / unit);
	else
		json_null(json);
}

static void add_check(struct json_writer *json, const struct compare_output *of, int row)
{
	const struct table *limits = &of->gate->limits, *metrics = &of->comparison->metrics;
	const struct checked_limit *checked = &of->gate->checked[row];
	const struct canary_check *check = &canary_checks[checked->check];
	int metric = checked->metric;

	json_object_begin(json);
	json_key(json, "name"), json_string(json, check->name);
	json_key(json, "status"), json_string(json, status_of(checked->result));
	json_key(json, "message"), json_string(json, compare_text(limits, row, CHECKED_MESSAGE));
	canary_report_add_number(json, "baseline_value", metrics, metric, METRIC_BASE, check->unit);
	canary_report_add_number(json, "current_value", metrics, metric, METRIC_NEW, check->unit);
	canary_report_add_number(json, "threshold", limits, row, CHECKED_MOST, 1);
	canary_report_add_number(json, "delta", metrics, metric, METRIC_DELTA, check->unit);
	canary_report_add_number(json, "delta_pct", metrics, metric, METRIC_RATIO, 0.01);
	json_object_end(json);
}

/* Returns the first run of a side. */
static const char *run_of(const struct table *runs, const char *side)
{
	for (int row = 0; row < runs->row_count; row++)
		if (!strcmp(compare_text(runs, row, RUNS_SIDE), side))
			return compare_text(runs, row, RUNS_RUN);
	return "";
}

static void add_warning(struct json_writer *json, const struct table *differences, int row)
{
	struct buffer text;

	buffer_init(&text, 1 << 16);
	buffer_printf(&text, "%s: %s -> %s", compare_text(differences, row, DIFFERENCE_FACT),
	              compare_text(differences, row, DIFFERENCE_BASE), compare_text(differences, row, DIFFERENCE_NEW));
	json_string_n(json, text.data, text.length);
	buffer_release(&text);
}

static void add_environment(struct json_writer *json, const struct comparison *comparison)
{
	const struct table *differences = &comparison->differences;
	const enum fact_kind *kinds = comparison->difference_kinds;
	bool is_same = true;

	for (int row = 0; row < differences->row_count; row++)
		is_same &= kinds[row] != FACT_HARDWARE;
	json_key(json, "env_compatible"), json_bool(json, is_same);
	json_key(json, "env_warnings");
	json_array_begin(json);
	for (int row = 0; row < differences->row_count; row++)
		if (kinds[row] == FACT_HARDWARE || kinds[row] == FACT_SOFTWARE)
			add_warning(json, differences, row);
	json_array_end(json);
}

static bool has_passed(const struct gate *gate)
{
	for (int row = 0; row < gate->limits.row_count; row++)
		if (gate->checked[row].result == RESULT_BROKEN)
			return false;
	return gate->result == GATE_PASSED;
}

void compare_canary_report(struct buffer *out, const struct compare_output *of)
{
	const struct table *runs = &of->comparison->runs;
	struct json_writer json;

	json_writer_init(&json, out, JSON_PRETTY);
	json_object_begin(&json);
	json_key(&json, "passed"), json_bool(&json, has_passed(of->gate));
	json_key(&json, "baseline_run_id"), json_string(&json, run_of(runs, "base"));
	json_key(&json, "current_run_id"), json_string(&json, run_of(runs, "new"));
	json_key(&json, "checks");
	json_array_begin(&json);
	for (int row = 0; row < of->gate->limits.row_count; row++)
		add_check(&json, of, row);
	json_array_end(&json);
	json_key(&json, "warnings");
	json_array_begin(&json);
	json_array_end(&json);
	add_environment(&json, of->comparison);
	json_object_end(&json);
	buffer_add_text(out, "\n");
}
