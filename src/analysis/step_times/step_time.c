/* SPDX-License-Identifier: Apache-2.0
 *
 * step_time.c: the table `step_time`, the distribution of step durations: of the job, then of each process.
 */
#include "analysis/analysis_context.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_kinds.h"
#include "base/statistics.h"
#include "base/storage.h"
#include "model/cell_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	TIME_PROCESS,
	TIME_COUNT,
	TIME_INCOMPLETE,
	TIME_MEAN,
	TIME_LOW,
	TIME_HIGH,
	TIME_HALF,
	TIME_P50,
	TIME_P95,
	TIME_P99,
	TIME_MIN,
	TIME_MAX,
	TIME_STD,
	TIME_FIRST,
	TIME_OUTLIERS,
	TIME_TOKENS,
	TIME_SAMPLES,
	TIME_COLUMNS,
};

#define NS_COLUMN(column, heading, text)                                                                               \
	{                                                                                                              \
		.name = column, .title = heading, .type = TABLE_DOUBLE, .unit = UNIT_NS, .role = ROLE_VALUE,           \
		.definition = text                                                                                     \
	}

static const struct table_column columns[TIME_COLUMNS] = {
	[TIME_PROCESS] =
		{.name = "process",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "rank or pid; \"all\": the job, with one value per step number, the mean over the "
                               "ranks that completed the step"},
	[TIME_COUNT] =
		{.name = "count",
                 .title = "steps",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .role = ROLE_EVIDENCE,
                 .definition = "number of complete steps in the statistics, including the first; if operators were "
                               "recorded in only some steps, those without operators"},
	[TIME_INCOMPLETE] = {.name = "incomplete",
                             .type = TABLE_INT,
                             .unit = UNIT_COUNT,
                             .role = ROLE_EVIDENCE,
                             .definition = "number of steps without a recorded end, which are left out"},
	[TIME_MEAN] = NS_COLUMN("mean_ns", "mean", "mean duration of the complete steps"),
	[TIME_LOW] = NS_COLUMN("ci95_low_ns", "low",
                               "lower end of the 95 % interval of the mean, at least 0 (Student t; durations are "
                               "taken as independent)"),
	[TIME_HIGH] = NS_COLUMN("ci95_high_ns", "high", "upper end of the 95 % interval of the mean"),
	[TIME_HALF] = NS_COLUMN("ci95_half_ns", "+-", "half the width of the 95 % interval of the mean"),
	[TIME_P50] = NS_COLUMN("p50_ns", "p50", "median duration"),
	[TIME_P95] = NS_COLUMN("p95_ns", "p95", "95 % of the steps take at most this long"),
	[TIME_P99] = NS_COLUMN("p99_ns", "p99", "99 % of the steps take at most this long"),
	[TIME_MIN] = NS_COLUMN("min_ns", "min", "shortest step"),
	[TIME_MAX] = NS_COLUMN("max_ns", "max", "longest step"),
	[TIME_STD] = NS_COLUMN("std_ns", "std", "sample standard deviation of the durations"),
	[TIME_FIRST] =
		{.name = "first_step_ns",
                 .title = "first",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .role = ROLE_EVIDENCE,
                 .definition =
                         "duration of the first complete step, which often warms up caches; the statistics include it"},
	[TIME_OUTLIERS] = {.name = "outliers",
                           .type = TABLE_INT,
                           .unit = UNIT_COUNT,
                           .role = ROLE_EVIDENCE,
                           .definition = "number of steps longer than the median by more than 5 * 1.4826 median absolute "
                                         "deviations and by at least 5 %"},
	[TIME_TOKENS] = {.name = "tokens_per_s",
                         .title = "tokens/s",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_PER_SECOND,
                         .definition = "tokens of the complete steps divided by their time"},
	[TIME_SAMPLES] = {.name = "samples_per_s",
                          .title = "samples/s",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_PER_SECOND,
                          .definition = "samples of the complete steps divided by their time"},
};

/* Durations of the steps of one row of the table, with their tokens and samples. */
struct step_time_series {
	double *values, *scratch;
	size_t count;
	double first_ns, tokens, samples;
	uint32_t with_tokens, with_samples; /* steps that reported any */
};

static void series_add(struct step_time_series *series, double dur_ns, bool has_tokens, double tokens, bool has_samples,
                       double samples)
{
	if (!series->count)
		series->first_ns = dur_ns;
	series->values[series->count++] = dur_ns;
	series->with_tokens += has_tokens;
	series->tokens += has_tokens ? tokens : 0;
	series->with_samples += has_samples;
	series->samples += has_samples ? samples : 0;
}

/* A rate needs the count of every step, or it would be too low. */
static void set_rate(struct table *table, int row, int column, uint32_t reported, size_t steps, double total,
                     double sum_ns)
{
	if (reported == steps && sum_ns > 0)
		table_set_double(table, row, column, total / (sum_ns / 1e9));
	else if (reported == 0)
		table_set_missing(table, row, column, "the program did not report any");
	else
		table_set_missing(table, row, column, "the program did not report them in every step");
}

static int64_t count_outliers(struct step_time_series *series)
{
	double median, mad, limit;
	int64_t count = 0;

	median_and_mad(series->values, series->scratch, series->count, &median, &mad);
	limit = median + 5 * 1.4826 * mad;
	limit = limit > median * 1.05 ? limit : median * 1.05;
	for (size_t i = 0; i < series->count; i++)
		count += series->values[i] > limit;
	return count;
}

static void set_distribution(struct table *table, int row, struct step_time_series *series)
{
	struct summary summary;

	summary_compute(&summary, series->values, series->count);
	table_set_double(table, row, TIME_MEAN, summary.mean);
	table_set_double(table, row, TIME_P50, summary.p50);
	table_set_double(table, row, TIME_P95, summary.p95);
	table_set_double(table, row, TIME_P99, summary.p99);
	table_set_double(table, row, TIME_MIN, summary.min);
	table_set_double(table, row, TIME_MAX, summary.max);
	table_set_double(table, row, TIME_FIRST, series->first_ns);
	if (summary.has_interval) {
		table_set_double(table, row, TIME_LOW, fmax(summary.low, 0));
		table_set_double(table, row, TIME_HIGH, summary.high);
		table_set_double(table, row, TIME_HALF, summary.high - summary.mean);
		table_set_double(table, row, TIME_STD, summary.std);
	} else {
		for (int column = TIME_LOW; column <= TIME_HALF; column++)
			table_set_missing(table, row, column, "one step has no spread");
		table_set_missing(table, row, TIME_STD, "one step has no spread");
	}
	if (series->count >= 3)
		table_set_int(table, row, TIME_OUTLIERS, count_outliers(series));
	else
		table_set_missing(table, row, TIME_OUTLIERS, "fewer than three steps");
	set_rate(table, row, TIME_TOKENS, series->with_tokens, series->count, series->tokens,
	         summary.mean * (double)series->count);
	set_rate(table, row, TIME_SAMPLES, series->with_samples, series->count, series->samples,
	         summary.mean * (double)series->count);
}

static void step_time_add_row(struct table *table, const char *process, struct step_time_series *series,
                              uint32_t incomplete)
{
	int row = table_row(table);

	table_set_text(table, row, TIME_PROCESS, process);
	table_set_int(table, row, TIME_COUNT, (int64_t)series->count);
	table_set_int(table, row, TIME_INCOMPLETE, incomplete);
	if (series->count) {
		set_distribution(table, row, series);
		return;
	}
	for (int column = TIME_MEAN; column < TIME_COLUMNS; column++)
		table_set_missing(table, row, column, "no step was completed");
}

static void step_time_add_process(struct table *table, const struct model *model, const struct step_times *times,
                                  const struct step_span *span, struct step_time_series *series)
{
	*series = (struct step_time_series){.values = series->values, .scratch = series->scratch};
	for (uint32_t i = 0; i < times->count; i++) {
		const struct model_step *step = &model->steps[i];

		if (step->process == span->process && times->steps[i].is_program)
			series_add(series, (double)times->steps[i].length_ns, step->has_tokens, (double)step->tokens,
			           step->has_samples, (double)step->samples);
	}
	step_time_add_row(table, process_label(model, span->process, &table->arena), series, span->open);
}

/* Returns a caveat if the ledger lists dropped events of steps and phases, or of unknown type; otherwise NULL. */
static const char *losses(const struct model *model, struct arena *arena)
{
	uint64_t steps = 0, switches = 0, unknown = 0;

	for (uint32_t i = 0; i < model->ledger_count; i++) {
		const struct ledger_entry *entry = &model->ledger[i];
		const char *type = entry->where ? model_text(model, entry->where) : "";

		if (entry->kind != LEDGER_DROPPED)
			continue;
		if (!strcmp(type, "step"))
			steps += entry->count;
		else if (!strcmp(type, "switch")) /* from one phase to the next */
			switches += entry->count;
		else if (!strcmp(type, CELL_UNKNOWN_TYPE))
			unknown += entry->count;
	}
	if (steps)
		return arena_printf(
			arena,
			"steps were lost (%" PRIu64
			" dropped events of steps and phases): the figures cover the remaining steps, which "
			"may not be typical",
			steps + switches);
	if (unknown)
		return arena_printf(
			arena,
			"steps may have been lost (%" PRIu64
			" dropped events of unknown type): the figures cover the remaining steps, which may "
			"not be typical",
			unknown);
	return NULL;
}

static const char *caveat(const struct model *model, const struct step_times *times, struct arena *arena)
{
	uint32_t trainings = step_times_trainings(times, model);
	const char *lost = losses(model, arena);

	if (lost)
		return lost;
	if (!trainings)
		return times->has_device_lengths ? STEP_TIMES_OF_DEVICE : step_kinds_note(times, arena);
	return arena_printf(arena,
	                    "%" PRIu32
	                    " trainings that did not all run at the same time are shown as one job: the mean "
	                    "over them, step by step; --table step_time lists each",
	                    trainings);
}

static enum status step_time_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	double *values = storage_resize(model->storage, NULL, 2 * (size_t)times->count + 2, sizeof(*values));
	struct step_time_series series = {.values = values, .scratch = values + times->count + 1};

	table_init(table, "step_time", "Step time",
	           "duration of complete steps, for the job and for each process that marks steps");
	table_columns(table, columns, TIME_COLUMNS);
	for (uint32_t i = 0; i < times->job_count; i++) {
		const struct job_step *job = &times->job[i];

		if (job->is_program)
			series_add(&series, job->length_ns, job->has_tokens, job->tokens, job->has_samples,
			           job->samples);
	}
	if (times->selected)
		step_time_add_row(table, CELL_ALL, &series, times->job_incomplete);
	for (uint32_t i = 0; i < times->span_count && times->span_count > 1; i++)
		step_time_add_process(table, model, times, &times->spans[i], &series);
	if (!times->complete)
		table->empty = step_times_empty_reason(times);
	table->note = caveat(model, times, &table->arena);
	storage_release(model->storage, values);
	return STATUS_OK;
}

const struct analysis analysis_step_time = {
	.name = "step_time",
	.row = "the job, then each process",
	.question = "how long does a step take, and how much does it vary?",
	.run = step_time_run,
};
