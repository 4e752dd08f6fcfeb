/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime_calls.c: the table `runtime_calls`: calls of the runtime or driver of devices, by name, and the time that
 * threads spend in them.
 */
#include "analysis/analysis_context.h"
#include "analysis/step_times/step_times.h"
#include "base/clamped.h"
#include "base/storage.h"
#include "model/device_names.h"
#include "model/number_map.h"
#include "table/bound.h"

enum {
	CALL_COUNT,
	CALL_TOTAL,
	CALL_RATIO,
	CALL_MEAN,
	CALL_MIN,
	CALL_MAX,
	CALL_SYNCHRONIZES,
	CALL_NAME,
	CALL_COLUMNS,
};

static const struct table_column columns[CALL_COLUMNS] = {
	[CALL_COUNT] = {.name = "calls",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "number of calls",
                        .rules = RULE_NOT_NEGATIVE,
                        .more = MORE_SUM},
	[CALL_TOTAL] = {.name = "total_ns",
                        .title = "total",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "time in the call, summed over all threads",
                        .rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL,
                        .more = MORE_SUM},
	[CALL_RATIO] = {.name = "ratio",
                        .title = "%",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = "share of the time in calls of the runtime and driver",
                        .denominator = "sum of the durations of all these calls",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE,
                        .more = MORE_SUM},
	[CALL_MEAN] = {.name = "mean_ns",
                       .title = "mean",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "mean duration"},
	[CALL_MIN] = {.name = "min_ns",
                      .title = "min",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "shortest",
                      .more = MORE_LEAST},
	[CALL_MAX] = {.name = "max_ns",
                      .title = "max",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "longest",
                      .more = MORE_MOST},
	[CALL_SYNCHRONIZES] =
		{.name = "is_synchronizing",
                 .title = "waits",
                 .type = TABLE_BOOL,
                 .definition = "true if the call waits until the device has finished some work; judged by name"},
	[CALL_NAME] = {.name = "call", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name of the call"},
};

struct runtime_call {
	uint32_t name;
	int64_t count, total_ns, min_ns, max_ns;
};

struct runtime_calls_fold {
	const struct model *model;
	const struct step_times *times;
	bool has_steps; /* count only calls that start in selected steps */
	struct number_map by_name;
	struct runtime_call *calls;
	uint32_t count, capacity;
};

static struct runtime_call *call_of(struct runtime_calls_fold *fold, uint32_t name)
{
	uint32_t found = number_map_add(&fold->by_name, name, fold->count);

	if (found == fold->count) {
		STORAGE_GROW(fold->model->storage, fold->calls, fold->count, fold->capacity, 32);
		fold->calls[fold->count++] = (struct runtime_call){.name = name, .min_ns = INT64_MAX};
	}
	return &fold->calls[found];
}

static void runtime_calls_fold_track(struct runtime_calls_fold *fold, const struct track *track)
{
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			int64_t dur_ns = chunk->dur_ns[i];
			struct runtime_call *call;

			if (chunk->kind[i] != SPAN_RUNTIME ||
			    (fold->has_steps &&
			     (chunk->step[i] < 0 || !fold->times->steps[chunk->step[i]].is_selected)))
				continue;
			call = call_of(fold, chunk->name[i]);
			call->count++;
			clamped_add(&call->total_ns, dur_ns);
			call->min_ns = dur_ns < call->min_ns ? dur_ns : call->min_ns;
			call->max_ns = dur_ns > call->max_ns ? dur_ns : call->max_ns;
		}
		model_chunk_done(fold->model, chunk);
	}
}

static void runtime_calls_add_row(struct table *table, const struct model *model, const struct runtime_call *call,
                                  int64_t total_ns)
{
	const char *name = model_text(model, call->name);
	int row = table_row(table);

	table_set_text(table, row, CALL_NAME, name);
	table_set_int(table, row, CALL_COUNT, call->count);
	table_set_int(table, row, CALL_TOTAL, call->total_ns);
	table_set_double(table, row, CALL_MEAN, (double)call->total_ns / (double)call->count);
	table_set_int(table, row, CALL_MIN, call->min_ns);
	table_set_int(table, row, CALL_MAX, call->max_ns);
	table_set_bool(table, row, CALL_SYNCHRONIZES, is_synchronizing_call(name));
	if (total_ns > 0)
		table_set_double(table, row, CALL_RATIO, (double)call->total_ns / (double)total_ns);
	else
		table_set_missing(table, row, CALL_RATIO, "the calls have no duration");
}

static void runtime_calls_fill(struct table *table, const struct runtime_calls_fold *fold)
{
	int64_t total_ns = 0;

	for (uint32_t i = 0; i < fold->count; i++)
		clamped_add(&total_ns, fold->calls[i].total_ns);
	table_columns_of(table, columns, CALL_COLUMNS, (double)total_ns);
	table_bound(table, CALL_TOTAL);
	for (uint32_t i = 0; i < fold->count; i++)
		runtime_calls_add_row(table, fold->model, &fold->calls[i], total_ns);
	table_add_more(table, CALL_NAME);
	table_sort(table, CALL_NAME, true);
	table_sort(table, CALL_TOTAL, false);
}

static enum status runtime_calls_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct runtime_calls_fold fold = {.model = model,
	                                  .times = analysis_context_step_times(context),
	                                  .has_steps = context->options.filter.has_steps,
	                                  .by_name = {.storage = model->storage}};

	for (uint32_t track = 0; track < model->tracks_count; track++)
		runtime_calls_fold_track(&fold, model->tracks[track]);
	table_init(table, "runtime_calls", "Calls of the runtime and driver",
	           "calls of the device runtime or driver on all threads, by name; with --steps, those in these steps");
	runtime_calls_fill(table, &fold);
	if (!fold.count)
		table->empty = "no calls of a device runtime or driver were recorded";
	number_map_release(&fold.by_name);
	storage_release(model->storage, fold.calls);
	return STATUS_OK;
}

const struct analysis analysis_runtime_calls = {
	.name = "runtime_calls",
	.row = "call of the runtime or driver",
	.question = "which runtime and driver calls take the threads' time?",
	.run = runtime_calls_run,
	.is_of_operators = true,
};
