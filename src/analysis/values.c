/* SPDX-License-Identifier: Apache-2.0
 *
 * values.c: the tables `counters` and `metrics`: what each series of values was over time, one row per name and process.
 */
#include "analysis/labels.h"
#include "analysis/statistics.h"
#include "analysis/step_times.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

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
	VALUE_COLUMNS,
};

#define NUMBER(column, text)                                                                                           \
	{                                                                                                              \
		.name = column, .type = TABLE_DOUBLE, .definition = text                                               \
	}

static const struct table_column columns[VALUE_COLUMNS] = {
	[VALUE_NAME] = {.name = "name", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name the program gave it"},
	[VALUE_PROCESS] = {.name = "process", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "rank, or pid"},
	[VALUE_COUNT] = {.name = "count",
                         .title = "values",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .role = ROLE_EVIDENCE,
                         .definition = "recorded values",
                         .rules = RULE_NOT_NEGATIVE},
	[VALUE_FIRST] = NUMBER("first", "first value, NaN and infinities included"),
	[VALUE_LAST] = NUMBER("last", "last value, NaN and infinities included"),
	[VALUE_MIN] = NUMBER("min", "smallest value that is a number"),
	[VALUE_MAX] = NUMBER("max", "largest value that is a number"),
	[VALUE_MEAN] = NUMBER("mean", "mean of the finite values, each with the same weight"),
	[VALUE_P95] = {.name = "p95",
                       .type = TABLE_DOUBLE,
                       .definition = "95 % of the finite values are not larger",
                       .is_hidden = true},
	[VALUE_NAN] = {.name = "nan_count",
                       .title = "not finite",
                       .type = TABLE_INT,
                       .unit = UNIT_COUNT,
                       .role = ROLE_EVIDENCE,
                       .definition = "values that are NaN or infinite"},
	[VALUE_FIRST_NAN] = {.name = "first_nan_step",
                             .title = "first at step",
                             .type = TABLE_INT,
                             .role = ROLE_EVIDENCE,
                             .definition = "number of the step of the first value that is NaN or infinite"},
};

struct value_fold {
	int64_t count, odd;
	double first, last, min, max, sum;
	int32_t odd_step;
	double *finite; /* count - odd values */
};

static bool is_wanted(const struct step_times *times, const struct analysis_options *options, int32_t step)
{
	return !options->has_steps || (step >= 0 && times->steps[step].is_selected);
}

static void add_value(struct value_fold *fold, double value, int32_t step)
{
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
	fold->finite[fold->count - fold->odd - 1] = value;
}

static void add_row(struct table *table, const struct model *model, const struct value_series *series,
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
		                  fold->odd ? "the value was set outside the steps" : "all values are finite");
	if (fold->count == fold->odd) {
		for (int column = VALUE_MIN; column <= VALUE_P95; column++)
			table_set_missing(table, row, column, "no value is finite");
		return;
	}
	table_set_double(table, row, VALUE_MIN, fold->min);
	table_set_double(table, row, VALUE_MAX, fold->max);
	table_set_double(table, row, VALUE_MEAN, fold->sum / (double)(fold->count - fold->odd));
	sort_doubles(fold->finite, (size_t)(fold->count - fold->odd));
	table_set_double(table, row, VALUE_P95, quantile(fold->finite, (size_t)(fold->count - fold->odd), 0.95));
}

static void add_series(struct table *table, const struct model *model, const struct analysis_options *options,
                       bool is_metric)
{
	struct step_times own = {0};
	const struct step_times *times = step_times_get(&own, model, options);

	table_columns(table, columns, VALUE_COLUMNS);
	for (uint32_t i = 0; i < model->series_count; i++) {
		const struct value_series *series = model->series[i];
		struct value_fold fold = {.odd_step = -1};

		if (series->is_metric != is_metric || series->subject) /* those are telemetry */
			continue;
		fold.finite = memory_resize(NULL, (size_t)series->count + 1, sizeof(*fold.finite));
		for (uint32_t j = 0; j < series->count; j++) {
			int32_t step = series->step ? series->step[j] : -1;

			if (is_wanted(times, options, step))
				add_value(&fold, series->value[j], step);
		}
		if (fold.count)
			add_row(table, model, series, &fold);
		free(fold.finite);
	}
	table_sort(table, VALUE_PROCESS, true);
	table_sort(table, VALUE_NAME, true);
	step_times_release(&own);
}

static enum status run_counters(const struct model *model, const struct analysis_options *options, struct table *table,
                                struct error *err)
{
	table_init(table, "counters", "Counters", "quantities over time, of the program, the recorder and the machine");
	table->empty = "no counters were recorded";
	add_series(table, model, options, false);
	return STATUS_OK;
}

static enum status run_metrics(const struct model *model, const struct analysis_options *options, struct table *table,
                               struct error *err)
{
	table_init(table, "metrics", "Metrics", "results of steps as the program reported them: loss, gradient norm");
	table->empty = "the program reported no metrics: stepscope_metric()";
	add_series(table, model, options, true);
	return STATUS_OK;
}

const struct analysis analysis_counters = {"counters", "which quantities were recorded over time?", run_counters};
const struct analysis analysis_metrics = {"metrics", "how did loss and other results develop?", run_metrics};
