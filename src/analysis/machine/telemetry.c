/* SPDX-License-Identifier: Apache-2.0
 *
 * telemetry.c: the table `telemetry`: measurements of GPUs from outside, one row per quantity and GPU. Next to a
 * recording or a trace, only values of its time count.
 */
#include "analysis/machine/telemetry.h"

#include "analysis/analysis_context.h"
#include "base/statistics.h"
#include "base/storage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
	TELEMETRY_OF,
	TELEMETRY_NAME,
	TELEMETRY_UNIT,
	TELEMETRY_MIN,
	TELEMETRY_MEAN,
	TELEMETRY_MAX,
	TELEMETRY_LAST,
	TELEMETRY_P5,
	TELEMETRY_P95,
	TELEMETRY_COUNT,
	TELEMETRY_MISSING,
	TELEMETRY_COLUMNS,
};

#define NUMBER(column, text)                                                                                           \
	{                                                                                                              \
		.name = column, .type = TABLE_DOUBLE, .definition = text                                               \
	}

static const struct table_column columns[TELEMETRY_COLUMNS] = {
	[TELEMETRY_OF] =
		{.name = "of",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "name of the GPU in the file, or a process on the GPU; \"#2\" is the second GPU in row order if the "
                         "rows have no GPU number"},
	[TELEMETRY_NAME] =
		{.name = "quantity",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "measured quantity, with nvidia-smi's name; utilization.gpu is the share of time in which any kernel "
                         "ran, however small"},
	[TELEMETRY_UNIT] = {.name = "unit",
                            .type = TABLE_TEXT,
                            .role = ROLE_EVIDENCE,
                            .definition = "unit of the values in the file"},
	[TELEMETRY_MIN] = NUMBER("min", "smallest finite value"),
	[TELEMETRY_MEAN] = NUMBER("mean", "mean of the finite values, each with the same weight"),
	[TELEMETRY_MAX] = NUMBER("max", "largest finite value"),
	[TELEMETRY_LAST] = NUMBER("last", "last finite value"),
	[TELEMETRY_P5] = NUMBER("p5", "5th percentile of the finite values"),
	[TELEMETRY_P95] = NUMBER("p95", "95th percentile of the finite values"),
	[TELEMETRY_COUNT] = {.name = "count",
                             .title = "values",
                             .type = TABLE_INT,
                             .unit = UNIT_COUNT,
                             .role = ROLE_EVIDENCE,
                             .definition = "measured values",
                             .rules = RULE_NOT_NEGATIVE},
	[TELEMETRY_MISSING] = {.name = "missing_count",
                               .title = "missing",
                               .type = TABLE_INT,
                               .unit = UNIT_COUNT,
                               .role = ROLE_EVIDENCE,
                               .definition = "rows without a value from the driver: [N/A], [Not Supported]",
                               .rules = RULE_NOT_NEGATIVE},
};

static void telemetry_widen(struct telemetry_window *window, int64_t first_ns, int64_t last_ns)
{
	window->first_ns = window->has_any && window->first_ns < first_ns ? window->first_ns : first_ns;
	window->last_ns = window->has_any && window->last_ns > last_ns ? window->last_ns : last_ns;
	window->has_any = true;
}

struct telemetry_window telemetry_window_find(const struct model *model, const struct step_times *times, bool has_steps)
{
	struct telemetry_window window = {0};

	for (uint32_t i = 0; i < times->span_count && has_steps; i++)
		telemetry_widen(&window, times->spans[i].first_ns, times->spans[i].last_ns);
	for (uint32_t i = 0; i < model->processes_count && !has_steps; i++) {
		const struct process *process = &model->processes[i];

		if (process->has_times && process->role != STEPSCOPE_ROLE_HOST)
			telemetry_widen(&window, process->first_ns, process->last_ns);
	}
	return window;
}

bool telemetry_window_holds(const struct telemetry_window *window, int64_t time_ns)
{
	return !window->has_any || (time_ns >= window->first_ns && time_ns <= window->last_ns);
}

struct telemetry_fold {
	int64_t count, missing, outside;
	double min, max, last;
	long double sum; /* holds the sum of any two doubles */
	double *values;  /* the values that count */
};

static void fold_series(struct telemetry_fold *fold, const struct value_series *series,
                        const struct telemetry_window *window)
{
	for (uint32_t i = 0; i < series->count; i++) {
		double value = series->value[i];

		if (!telemetry_window_holds(window, series->time_ns[i])) {
			fold->outside++;
			continue;
		}
		if (!isfinite(value)) {
			fold->missing++;
			continue;
		}
		fold->min = fold->count && fold->min < value ? fold->min : value;
		fold->max = fold->count && fold->max > value ? fold->max : value;
		fold->sum += value;
		fold->last = value;
		fold->values[fold->count++] = value;
	}
}

/* Returns "the driver said [N/A]". */
static const char *why_missing(struct table *table, const struct model *model, const struct value_series *series,
                               const struct telemetry_fold *fold)
{
	char key[256];
	const char *said;

	if (!fold->missing)
		return "no value was measured during the recording";
	snprintf(key, sizeof(key), "%s.%s", model_text(model, series->subject), model_text(model, series->name));
	said = model_meta(model, series->process, key);
	return said ? arena_printf(&table->arena, "the driver reported %s", said) : "the driver reported no value";
}

static void telemetry_add_row(struct table *table, const struct model *model, const struct value_series *series,
                              const struct telemetry_fold *fold)
{
	int row = table_row(table);

	table_set_text(table, row, TELEMETRY_OF, model_text(model, series->subject));
	table_set_text(table, row, TELEMETRY_NAME, model_text(model, series->name));
	if (series->unit)
		table_set_text(table, row, TELEMETRY_UNIT, model_text(model, series->unit));
	else
		table_set_missing(table, row, TELEMETRY_UNIT, "the file gives no unit");
	table_set_int(table, row, TELEMETRY_COUNT, fold->count);
	table_set_int(table, row, TELEMETRY_MISSING, fold->missing);
	if (!fold->count) {
		const char *reason = why_missing(table, model, series, fold);

		for (int column = TELEMETRY_MIN; column <= TELEMETRY_P95; column++)
			table_set_missing(table, row, column, reason);
		return;
	}
	table_set_double(table, row, TELEMETRY_MIN, fold->min);
	table_set_double(table, row, TELEMETRY_MEAN, (double)(fold->sum / fold->count));
	table_set_double(table, row, TELEMETRY_MAX, fold->max);
	table_set_double(table, row, TELEMETRY_LAST, fold->last);
	sort_doubles(fold->values, (size_t)fold->count);
	table_set_double(table, row, TELEMETRY_P5, quantile(fold->values, (size_t)fold->count, 0.05));
	table_set_double(table, row, TELEMETRY_P95, quantile(fold->values, (size_t)fold->count, 0.95));
}

static enum status telemetry_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	struct telemetry_window window = telemetry_window_find(model, times, context->options.filter.has_steps);
	int64_t outside = 0, values = 0;

	table_init(table, "telemetry", "GPU telemetry",
	           "values that an outside tool measured of the GPUs during the run");
	table_columns(table, columns, TELEMETRY_COLUMNS);
	for (uint32_t i = 0; i < model->series_count; i++) {
		struct telemetry_fold fold = {0};

		if (!model->series[i]->subject)
			continue;
		fold.values = storage_resize(model->storage, NULL, (size_t)model->series[i]->count + 1,
		                             sizeof(*fold.values));
		fold_series(&fold, model->series[i], &window);
		telemetry_add_row(table, model, model->series[i], &fold);
		storage_release(model->storage, fold.values);
		outside += fold.outside;
		values += fold.count + fold.missing;
	}
	table_sort(table, TELEMETRY_OF, true);
	if (!table->row_count)
		table->empty =
			"no GPU telemetry was found; record it beside the recording: nvidia-smi --query-gpu=... --format=csv "
			"-l 1 > gpu.csv";
	else if (outside)
		table->note = arena_printf(&table->arena,
		                           "%" PRId64 " of %" PRId64
		                           " values were measured at another time and are not counted",
		                           outside, outside + values);
	return STATUS_OK;
}

const struct analysis analysis_telemetry = {
	.name = "telemetry",
	.row = "GPU and quantity",
	.question = "which values did nvidia-smi measure on the GPUs?",
	.run = telemetry_run,
};
