/* SPDX-License-Identifier: Apache-2.0
 *
 * counters.c: the tables `counters` and `metrics`: statistics of each series of values over time, one row per name and
 * process.
 */
#include "analysis/analysis_context.h"
#include "analysis/machine/telemetry.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_times.h"
#include "base/statistics.h"
#include "base/storage.h"
#include "model/reasons.h"
#include "table/bound.h"

#include <math.h>

enum {
	VALUE_NAME,
	VALUE_PROCESS,
	VALUE_COUNT,
	VALUE_FIRST,
	VALUE_LAST,
	VALUE_MIN,
	VALUE_MAX,
	VALUE_MEAN,
	VALUE_P95,
	VALUE_NAN,
	VALUE_FIRST_NAN,
	VALUE_COUNTER_COLUMNS,
	VALUE_FIRST_TEN = VALUE_COUNTER_COLUMNS, /* of metrics only */
	VALUE_LAST_TEN,
	VALUE_FIRST_THIRD,
	VALUE_LAST_THIRD,
	VALUE_DEVIATION,
	VALUE_COLUMNS,
};

#define NUMBER(column, text)                                                                                           \
	{                                                                                                              \
		.name = column, .type = TABLE_DOUBLE, .definition = text                                               \
	}

#define HIDDEN(column, text)                                                                                           \
	{                                                                                                              \
		.name = column, .type = TABLE_DOUBLE, .definition = text, .is_hidden = true                            \
	}

static const struct table_column columns[VALUE_COLUMNS] = {
	[VALUE_NAME] = {.name = "name", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name given by the program"},
	[VALUE_PROCESS] = PROCESS_COLUMN,
	[VALUE_COUNT] = {.name = "count",
                         .title = "values",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .role = ROLE_EVIDENCE,
                         .definition = "recorded values",
                         .rules = RULE_NOT_NEGATIVE,
                         .more = MORE_SUM},
	[VALUE_FIRST] = NUMBER("first", "first value, NaN and infinities included"),
	[VALUE_LAST] = NUMBER("last", "last value, NaN and infinities included"),
	[VALUE_MIN] = NUMBER("min", "smallest finite value"),
	[VALUE_MAX] = NUMBER("max", "largest finite value"),
	[VALUE_MEAN] = NUMBER("mean", "mean of the finite values, each with the same weight"),
	[VALUE_P95] = HIDDEN("p95", "95th percentile of the finite values"),
	[VALUE_NAN] = {.name = "nan_count",
                       .title = "not finite",
                       .type = TABLE_INT,
                       .unit = UNIT_COUNT,
                       .role = ROLE_EVIDENCE,
                       .definition = "values that are NaN or infinite",
                       .more = MORE_SUM},
	[VALUE_FIRST_NAN] = {.name = "first_nan_step",
                             .title = "first at step",
                             .type = TABLE_INT,
                             .role = ROLE_EVIDENCE,
                             .definition = "number of the step with the first NaN or infinite value"},
	[VALUE_FIRST_TEN] = HIDDEN("first_ten_mean", "mean of the finite values among the first ten"),
	[VALUE_LAST_TEN] = HIDDEN("last_ten_mean", "mean of the finite values among the last ten"),
	[VALUE_FIRST_THIRD] = HIDDEN("first_third_mean", "mean of the finite values in the first third"),
	[VALUE_LAST_THIRD] = HIDDEN("last_third_mean", "mean of the finite values in the last third"),
	[VALUE_DEVIATION] = HIDDEN("deviation", "sample standard deviation of the finite values"),
};

struct value_fold {
	int64_t count, odd;
	double first, last, min, max, sum;
	int32_t odd_step;
	double *values; /* all values */
};

/* The machine has no steps: its values count while the selected steps run. */
static bool counters_is_wanted(const struct step_times *times, const struct telemetry_window *selected,
                               const struct value_series *series, uint32_t i, bool is_of_machine)
{
	int32_t step = series->step ? series->step[i] : -1;

	if (is_of_machine)
		return telemetry_window_holds(selected, series->time_ns[i]);
	return step >= 0 && times->steps[step].is_selected;
}

static void counters_add_value(struct value_fold *fold, double value, int32_t step)
{
	fold->values[fold->count] = value;
	if (!fold->count++)
		fold->first = value;
	fold->last = value;
	if (!isfinite(value)) {
		if (!fold->odd++)
			fold->odd_step = step;
		return;
	}
	fold->min = fold->count - fold->odd == 1 || value < fold->min ? value : fold->min;
	fold->max = fold->count - fold->odd == 1 || value > fold->max ? value : fold->max;
	fold->sum += value;
}

static void set_mean(struct table *table, int row, int column, const double *values, int64_t count)
{
	int64_t finite = 0;
	double sum = 0;

	for (int64_t i = 0; i < count; i++) {
		if (!isfinite(values[i]))
			continue;
		sum += values[i];
		finite++;
	}
	if (finite)
		table_set_double(table, row, column, sum / (double)finite);
	else
		table_set_missing(table, row, column, count ? "none of these values is finite" : "too few values");
}

/* Computed from the mean, so that values that differ little from each other keep their precision. */
static void set_deviation(struct table *table, int row, const struct value_fold *fold)
{
	int64_t finite = fold->count - fold->odd;
	double mean = fold->sum / (double)finite, sum = 0;

	if (finite < 2) {
		table_set_missing(table, row, VALUE_DEVIATION, "too few values");
		return;
	}
	for (int64_t i = 0; i < fold->count; i++)
		if (isfinite(fold->values[i]))
			sum += (fold->values[i] - mean) * (fold->values[i] - mean);
	table_set_double(table, row, VALUE_DEVIATION, sqrt(sum / (double)(finite - 1)));
}

static void set_means(struct table *table, int row, const struct value_fold *fold)
{
	int64_t ten = fold->count < 10 ? fold->count : 10, third = fold->count / 3;

	set_mean(table, row, VALUE_FIRST_TEN, fold->values, ten);
	set_mean(table, row, VALUE_LAST_TEN, fold->values + fold->count - ten, ten);
	set_mean(table, row, VALUE_FIRST_THIRD, fold->values, third);
	set_mean(table, row, VALUE_LAST_THIRD, fold->values + fold->count - third, third);
	set_deviation(table, row, fold);
}

/* Must be the last use of the values: it leaves only the finite ones, sorted. */
static void set_p95(struct table *table, int row, const struct value_fold *fold)
{
	size_t finite = 0;

	for (int64_t i = 0; i < fold->count; i++)
		if (isfinite(fold->values[i]))
			fold->values[finite++] = fold->values[i];
	sort_doubles(fold->values, finite);
	table_set_double(table, row, VALUE_P95, quantile(fold->values, finite, 0.95));
}

static void counters_add_row(struct table *table, const struct model *model, const struct value_series *series,
                             const struct value_fold *fold)
{
	int row = table_row(table);

	table_set_text(table, row, VALUE_NAME, model_text(model, series->name));
	table_set_text(table, row, VALUE_PROCESS, process_label(model, series->process, &table->arena));
	table_set_int(table, row, VALUE_COUNT, fold->count);
	table_set_double(table, row, VALUE_FIRST, fold->first);
	table_set_double(table, row, VALUE_LAST, fold->last);
	table_set_int(table, row, VALUE_NAN, fold->odd);
	if (fold->odd && fold->odd_step >= 0)
		table_set_int(table, row, VALUE_FIRST_NAN, model->steps[fold->odd_step].number);
	else
		table_set_missing(table, row, VALUE_FIRST_NAN,
		                  fold->odd ? "the value was set outside every step" : "all values are finite");
	if (series->is_metric)
		set_means(table, row, fold);
	if (fold->count == fold->odd) {
		for (int column = VALUE_MIN; column <= VALUE_P95; column++)
			table_set_missing(table, row, column, "no value is finite");
		return;
	}
	table_set_double(table, row, VALUE_MIN, fold->min);
	table_set_double(table, row, VALUE_MAX, fold->max);
	table_set_double(table, row, VALUE_MEAN, fold->sum / (double)(fold->count - fold->odd));
	set_p95(table, row, fold);
}

static void add_series(struct table *table, struct analysis_context *context, bool is_metric)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	struct telemetry_window selected = telemetry_window_find(model, times, true);

	table_columns(table, columns, is_metric ? VALUE_COLUMNS : VALUE_COUNTER_COLUMNS);
	table_bound(table, VALUE_COUNT);
	for (uint32_t i = 0; i < model->series_count; i++) {
		const struct value_series *series = model->series[i];
		struct value_fold fold = {.odd_step = -1};
		bool is_of_machine = series->process < model->processes_count &&
		                     model->processes[series->process].role == STEPSCOPE_ROLE_HOST;

		if (series->is_metric != is_metric || series->subject) /* a series with a subject is telemetry */
			continue;
		fold.values = storage_resize(model->storage, NULL, (size_t)series->count + 1, sizeof(*fold.values));
		for (uint32_t j = 0; j < series->count; j++) {
			if (!is_part_of_run(&context->options) ||
			    counters_is_wanted(times, &selected, series, j, is_of_machine))
				counters_add_value(&fold, series->value[j], series->step ? series->step[j] : -1);
		}
		if (fold.count)
			counters_add_row(table, model, series, &fold);
		storage_release(model->storage, fold.values);
	}
	table_add_more(table, VALUE_NAME);
	table_sort(table, VALUE_PROCESS, true);
	table_sort(table, VALUE_NAME, true);
}

static enum status run_counters(struct analysis_context *context, struct table *table, struct error *err)
{
	table_init(table, "counters", "Counters", "values over time, from the program, the recorder and the machine");
	table->empty = "no counters were recorded";
	add_series(table, context, false);
	return STATUS_OK;
}

static enum status run_metrics(struct analysis_context *context, struct table *table, struct error *err)
{
	table_init(table, "metrics", "Metrics",
	           "results of steps that the program reported, such as loss or gradient norm");
	table->empty = model_reason(context->model, REASON_NO_METRICS);
	add_series(table, context, true);
	return STATUS_OK;
}

const struct analysis analysis_counters = {
	.name = "counters",
	.row = "name and process",
	.question = "which quantities were recorded over time?",
	.run = run_counters,
};
const struct analysis analysis_metrics = {
	.name = "metrics",
	.row = "name and process",
	.question = "how did the loss and other metrics develop?",
	.run = run_metrics,
};
