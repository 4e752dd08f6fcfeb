/* SPDX-License-Identifier: Apache-2.0
 *
 * launches.c: the table `launches`, by the call that launches: how long device work waits after its launch, how much
 * other work waits then, and how much is shorter than the call.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/statistics.h"
#include "base/storage.h"
#include "model/cell_words.h"
#include "model/number_map.h"
#include "table/bound.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	LAUNCH_CALL,
	LAUNCH_CALLS,
	LAUNCH_COUNT,
	LAUNCH_CALL_MEAN,
	LAUNCH_DELAY_MEAN,
	LAUNCH_DELAY_P50,
	LAUNCH_DELAY_P95,
	LAUNCH_DELAY_MAX,
	LAUNCH_DEPTH_MEAN,
	LAUNCH_DEPTH_MAX,
	LAUNCH_SHORT,
	LAUNCH_SHORT_RATIO,
	LAUNCH_EARLY,
	LAUNCH_COLUMNS,
};

static const struct table_column columns[LAUNCH_COLUMNS] = {
	[LAUNCH_CALL] =
		{.name = "call",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "call of the runtime or driver; \"(not in the trace)\" holds the work without a call"},
	[LAUNCH_CALLS] = {.name = "calls",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "calls that launched work; one call for a graph launches several",
                          .more = MORE_SUM},
	[LAUNCH_COUNT] = {.name = "work_count",
                          .title = "work",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "kernels, copies and fills that the calls launched",
                          .more = MORE_SUM},
	[LAUNCH_CALL_MEAN] = {.name = "call_ns",
                              .title = "call",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_NS,
                              .definition = "mean duration of the calls"},
	[LAUNCH_DELAY_MEAN] = {.name = "delay_mean_ns",
                               .title = "delay",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_NS,
                               .definition = "mean time from the start of the call to the start of the work"},
	[LAUNCH_DELAY_P50] = {.name = "delay_p50_ns",
                              .title = "p50",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_NS,
                              .definition = "median of this time"},
	[LAUNCH_DELAY_P95] = {.name = "delay_p95_ns",
                              .title = "p95",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_NS,
                              .definition = "95th percentile of this time"},
	[LAUNCH_DELAY_MAX] = {.name = "delay_max_ns",
                              .title = "max",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_NS,
                              .definition = "maximum of this time",
                              .more = MORE_MOST},
	[LAUNCH_DEPTH_MEAN] =
		{.name = "depth_mean",
                 .title = "queue",
                 .type = TABLE_DOUBLE,
                 .definition =
                         "device work launched but not started when the call starts, mean over the calls; near 0, the device "
                         "waits for launches"},
	[LAUNCH_DEPTH_MAX] = {.name = "depth_max",
                              .title = "queue max",
                              .type = TABLE_INT,
                              .unit = UNIT_COUNT,
                              .definition = "maximum of this work",
                              .more = MORE_MOST},
	[LAUNCH_SHORT] =
		{.name = "short_count",
                 .title = "short",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .definition =
                         "kernels shorter than the call that launched them; if a call launched several (a graph), shorter than "
                         "the call's duration divided by their number",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                 .other = "work_count",
                 .more = MORE_SUM},
	[LAUNCH_SHORT_RATIO] = {.name = "short_ratio",
                                .title = "short %",
                                .type = TABLE_DOUBLE,
                                .unit = UNIT_RATIO,
                                .role = ROLE_SHARE,
                                .definition = "share of the launched kernels that are short",
                                .denominator = "kernels that the calls launched",
                                .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LAUNCH_EARLY] =
		{.name = "early_count",
                 .title = "early",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .role = ROLE_EVIDENCE,
                 .definition =
                         "work that started before its launch because the clocks of device and host disagree; excluded from "
                         "the delays",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                 .other = "work_count",
                 .more = MORE_SUM},
};

struct launches_work { /* one work of a device */
	int64_t launch_ns, start_ns, dur_ns;
	uint32_t track, row; /* of the call */
	uint32_t group;
	bool is_kernel;
};

struct launches_group { /* by the name of the call */
	uint32_t name;
	int64_t calls, count, early, kernels, short_count, depth_max;
	double call_ns, depth;
	double *delays;
	size_t delay_count, delay_capacity;
};

struct launches_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	struct device_work work;
	struct number_map by_name;
	struct launches_group *groups;
	uint32_t count, capacity;
	struct launches_work *launched;
	int64_t *starts;
	size_t launched_count, launched_capacity;
	int64_t without;
};

static uint32_t launches_group_of(struct launches_fold *fold, uint32_t name)
{
	uint32_t found = number_map_add(&fold->by_name, name, fold->count);

	if (found == fold->count) {
		STORAGE_GROW(fold->model->storage, fold->groups, fold->count, fold->capacity, 16);
		fold->groups[fold->count++] = (struct launches_group){.name = name};
	}
	return found;
}

static void add_delay(struct launches_group *group, int64_t delay_ns)
{
	MEMORY_GROW(group->delays, group->delay_count, group->delay_capacity, 4);
	group->delays[group->delay_count++] = (double)delay_ns;
}

static void add_launched(struct launches_fold *fold, const struct launches_work *item)
{
	if (fold->launched_count == fold->launched_capacity) {
		fold->launched_capacity = fold->launched_capacity ? 2 * fold->launched_capacity : 1024;
		fold->launched = storage_resize(fold->model->storage, fold->launched, fold->launched_capacity,
		                                sizeof(*fold->launched));
		fold->starts = storage_resize(fold->model->storage, fold->starts, fold->launched_capacity,
		                              sizeof(*fold->starts));
	}
	fold->starts[fold->launched_count] = item->start_ns; /* sorted, because work comes in the order of its starts */
	fold->launched[fold->launched_count++] = *item;
}

static void add_work(struct launches_fold *fold, const struct work *item)
{
	const struct launch *launch = launches_of(fold->launches, item->track, item->row);
	bool is_kernel = item->class == WORK_COMPUTE || item->class == WORK_COMMUNICATION;
	const struct span_chunk *call;
	struct launches_group *group;
	uint32_t i, number;

	if (!device_work_is_selected(fold->context, item->track, item->row))
		return;
	if (!launch || launch->track == MODEL_NONE) {
		fold->without++;
		return;
	}
	call = track_chunk(fold->model->tracks[launch->track], launch->row, &i);
	number = launches_group_of(fold, call->name[i]);
	group = &fold->groups[number];
	group->count++;
	group->kernels += is_kernel;
	add_launched(fold, &(struct launches_work){.launch_ns = call->start_ns[i],
	                                           .start_ns = item->start_ns,
	                                           .dur_ns = item->end_ns - item->start_ns,
	                                           .track = launch->track,
	                                           .row = launch->row,
	                                           .group = number,
	                                           .is_kernel = is_kernel});
	if (item->start_ns < call->start_ns[i])
		group->early++;
	else
		add_delay(group, intervals_length(call->start_ns[i], item->start_ns));
}

static int compare_launched(const void *left, const void *right)
{
	const struct launches_work *a = left, *b = right;

	if (a->launch_ns != b->launch_ns)
		return a->launch_ns < b->launch_ns ? -1 : 1;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

/* Adds the work of one call: items [first, end). */
static void launches_add_call(struct launches_fold *fold, size_t first, size_t end, int64_t depth)
{
	const struct launches_work *items = fold->launched;
	struct launches_group *group = &fold->groups[items[first].group];
	const struct span_chunk *call;
	uint32_t index;

	call = track_chunk(fold->model->tracks[items[first].track], items[first].row, &index);
	group->calls++;
	group->call_ns += (double)call->dur_ns[index];
	group->depth += (double)depth;
	group->depth_max = depth > group->depth_max ? depth : group->depth_max;
	for (size_t i = first; i < end; i++)
		group->short_count += items[i].is_kernel &&
		                      (double)items[i].dur_ns < (double)call->dur_ns[index] / (double)(end - first);
}

/* Counts for each call the work launched before it that had not started by then. Work of one call (a graph) does not
 * wait for itself. */
static void add_calls(struct launches_fold *fold)
{
	size_t begun = 0, earlier = 0;

	merge_sort_in(fold->model->storage, fold->launched, fold->launched_count, sizeof(*fold->launched),
	              compare_launched);
	for (size_t i = 0, end; i < fold->launched_count; i = end) {
		const struct launches_work *item = &fold->launched[i];
		int64_t depth;

		for (end = i + 1; end < fold->launched_count && fold->launched[end].track == item->track &&
		                  fold->launched[end].row == item->row;)
			end++;
		while (fold->launched[earlier].launch_ns < item->launch_ns)
			earlier++;
		while (begun < fold->launched_count && fold->starts[begun] <= item->launch_ns)
			begun++;
		depth = (int64_t)earlier - (int64_t)begun; /* negative if work started before its launch */
		launches_add_call(fold, i, end, depth > 0 ? depth : 0);
	}
}

static void launches_fold_run(struct launches_fold *fold)
{
	struct device *devices;
	size_t count = devices_find(&devices, fold->model);

	for (size_t i = 0; i < count; i++) {
		device_work_get(&fold->work, fold->context, devices[i].process, devices[i].device);
		fold->launched_count = 0;
		for (size_t n = 0; n < fold->work.count; n++)
			add_work(fold, &fold->work.items[n]);
		add_calls(fold);
	}
	free(devices);
}

/* ---- the table ---- */

static void set_delays(struct table *table, int row, struct launches_group *group)
{
	double sum = 0;

	if (!group->delay_count) {
		for (int column = LAUNCH_DELAY_MEAN; column <= LAUNCH_DELAY_MAX; column++)
			table_set_missing(table, row, column, "all its work started before its launch");
		return;
	}
	sort_doubles(group->delays, group->delay_count);
	for (size_t i = 0; i < group->delay_count; i++)
		sum += group->delays[i];
	table_set_double(table, row, LAUNCH_DELAY_MEAN, sum / (double)group->delay_count);
	table_set_double(table, row, LAUNCH_DELAY_P50, quantile(group->delays, group->delay_count, 0.5));
	table_set_double(table, row, LAUNCH_DELAY_P95, quantile(group->delays, group->delay_count, 0.95));
	table_set_double(table, row, LAUNCH_DELAY_MAX, group->delays[group->delay_count - 1]);
}

static void launches_add_row(struct table *table, const struct model *model, struct launches_group *group)
{
	int row = table_row(table);

	table_set_text(table, row, LAUNCH_CALL, model_text(model, group->name));
	table_set_int(table, row, LAUNCH_CALLS, group->calls);
	table_set_int(table, row, LAUNCH_COUNT, group->count);
	table_set_double(table, row, LAUNCH_CALL_MEAN, group->call_ns / (double)group->calls);
	set_delays(table, row, group);
	table_set_double(table, row, LAUNCH_DEPTH_MEAN, group->depth / (double)group->calls);
	table_set_int(table, row, LAUNCH_DEPTH_MAX, group->depth_max);
	table_set_int(table, row, LAUNCH_SHORT, group->short_count);
	table_set_int(table, row, LAUNCH_EARLY, group->early);
	if (group->kernels)
		table_set_double(table, row, LAUNCH_SHORT_RATIO, (double)group->short_count / (double)group->kernels);
	else
		table_set_missing(table, row, LAUNCH_SHORT_RATIO, "the call launched no kernels");
}

static void add_rest(struct table *table, int64_t count)
{
	int row = table_row(table);

	table_set_text(table, row, LAUNCH_CALL, CELL_NO_LAUNCH);
	table_set_int(table, row, LAUNCH_COUNT, count);
	table_set_missing(table, row, LAUNCH_CALLS, "no call in the trace has the correlation of this work");
	for (int column = LAUNCH_CALL_MEAN; column < LAUNCH_COLUMNS; column++)
		table_set_missing(table, row, column, "no call in the trace has the correlation of this work");
}

static enum status launches_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct launches_fold fold = {.context = context, .model = model, .by_name = {.storage = model->storage}};

	fold.launches = analysis_context_launches(context);
	launches_fold_run(&fold);
	table_init(table, "launches", "Launches",
	           "kernels, copies and fills by the call that launched them; with --steps, those launched in these "
	           "steps");
	table_columns(table, columns, LAUNCH_COLUMNS);
	table_bound(table, LAUNCH_COUNT);
	for (uint32_t i = 0; i < fold.count; i++) {
		launches_add_row(table, model, &fold.groups[i]);
		free(fold.groups[i].delays);
	}
	table_add_more(table, LAUNCH_CALL);
	table_sort(table, LAUNCH_CALL, true);
	table_sort(table, LAUNCH_COUNT, false);
	if (fold.without)
		add_rest(table, fold.without);
	if (!table->row_count)
		table->empty = DEVICE_NOTHING;
	device_work_release(&fold.work);
	number_map_release(&fold.by_name);
	storage_release(model->storage, fold.groups);
	storage_release(model->storage, fold.launched);
	storage_release(model->storage, fold.starts);
	return STATUS_OK;
}

const struct analysis analysis_launches = {
	.name = "launches",
	.row = "call that launches",
	.question = "how long after its launch does device work start?",
	.run = launches_run,
	.is_of_devices = true,
};
