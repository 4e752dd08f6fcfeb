/* SPDX-License-Identifier: Apache-2.0
 *
 * queue_depth.c: the table `queue_depth`: how much work waited for each device over time: a row per step or, without
 * steps, per twentieth of the trace. Work waits from the start of the call that launches it to its own start.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_times.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "model/lanes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_FULL 1024 /* CUDA launches that a stream holds; the next one blocks its thread */
#define PARTS 20

enum {
	QUEUE_DEVICE,
	QUEUE_STEP,
	QUEUE_START,
	QUEUE_TIME,
	QUEUE_LAUNCHED,
	QUEUE_MEAN,
	QUEUE_MAX,
	QUEUE_EMPTY,
	QUEUE_EMPTY_RATIO,
	QUEUE_FULL_TIME,
	QUEUE_COLUMNS,
};

static const struct table_column columns[QUEUE_COLUMNS] = {
	[QUEUE_DEVICE] = DEVICE_COLUMN,
	[QUEUE_STEP] = STEP_NUMBER_COLUMN,
	[QUEUE_START] =
		{.name = "start_ns",
                 .title = "start",
                 .type = TABLE_INT,
                 .unit = UNIT_NS_SINCE_START,
                 .role = ROLE_KEY,
                 .definition =
                         "start of the step, since the first known instant of its process. Without steps: start of a twentieth "
                         "of the time from the first launch to the last start of work"},
	[QUEUE_TIME] = {.name = "duration_ns",
                        .title = "time",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "duration of the row's time",
                        .rules = RULE_NOT_NEGATIVE},
	[QUEUE_LAUNCHED] = {.name = "launched_count",
                            .title = "launched",
                            .type = TABLE_INT,
                            .unit = UNIT_COUNT,
                            .definition = "kernels, copies and fills of the device that were launched in this time",
                            .rules = RULE_NOT_NEGATIVE},
	[QUEUE_MEAN] = {.name = "depth_mean",
                        .title = "queue",
                        .type = TABLE_DOUBLE,
                        .definition = "work launched but not started, on all streams, mean over the time",
                        .rules = RULE_NOT_NEGATIVE},
	[QUEUE_MAX] = {.name = "depth_max",
                       .title = "queue max",
                       .type = TABLE_INT,
                       .unit = UNIT_COUNT,
                       .definition = "maximum of this work",
                       .rules = RULE_NOT_NEGATIVE},
	[QUEUE_EMPTY] = {.name = "empty_ns",
                         .title = "empty",
                         .type = TABLE_INT,
                         .unit = UNIT_NS,
                         .definition = "time in which no work waited; the device goes idle when its running work ends",
                         .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                         .other = "duration_ns"},
	[QUEUE_EMPTY_RATIO] = {.name = "empty_ratio",
                               .title = "empty %",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_RATIO,
                               .role = ROLE_SHARE,
                               .definition = "share of the time in which no work waited",
                               .denominator = "duration of the row's time",
                               .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[QUEUE_FULL_TIME] =
		{.name = "full_ns",
                 .title = "full",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time in which at least 1024 launches waited on one stream; the next launch blocks its thread",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                 .other = "duration_ns"},
};

struct queue_depth_window {
	int64_t start_ns, end_ns, step;
	int64_t launched, depth_max, empty_ns, full_ns;
	double depth_ns;
};

struct queue_depth_change { /* in the work that waits on a stream: 1 at a launch, -1 when the work starts */
	int64_t time_ns;
	uint32_t stream; /* track: the stream's first lane */
	int32_t by;
};

struct queue_depth_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	const struct step_times *times;
	struct device_work work;
	struct queue_depth_change *changes;
	size_t change_count, change_capacity;
	struct queue_depth_window *windows;
	size_t count, first; /* windows before `first` are over */
	int64_t *waiting;    /* by track */
	int64_t depth, full_streams;
};

/* ---- waiting work ---- */

static void queue_depth_add_change(struct queue_depth_fold *fold, int64_t time_ns, uint32_t stream, int32_t by)
{
	MEMORY_GROW(fold->changes, fold->change_count, fold->change_capacity, 1024);
	fold->changes[fold->change_count++] = (struct queue_depth_change){time_ns, stream, by};
}

/* At one instant launches come first, so that the depth is never negative. */
static int queue_depth_compare_changes(const void *left, const void *right)
{
	const struct queue_depth_change *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return (a->by < b->by) - (a->by > b->by);
}

static void find_changes(struct queue_depth_fold *fold)
{
	fold->change_count = 0;
	for (size_t i = 0; i < fold->work.count; i++) {
		const struct work *item = &fold->work.items[i];
		const struct launch *launch = launches_of(fold->launches, item->track, item->row);
		const struct span_chunk *call;
		uint32_t n, stream;

		if (!launch || launch->track == MODEL_NONE)
			continue;
		call = track_chunk(fold->model->tracks[launch->track], launch->row, &n);
		if (call->start_ns[n] > item->start_ns)
			continue; /* the clocks disagree: `launches` counts these */
		stream = first_lane(fold->model, item->track);
		queue_depth_add_change(fold, call->start_ns[n], stream, 1);
		queue_depth_add_change(fold, item->start_ns, stream, -1);
	}
	merge_sort(fold->changes, fold->change_count, sizeof(*fold->changes), queue_depth_compare_changes);
}

/* ---- stretches of time ---- */

static void add_steps(struct queue_depth_fold *fold, uint32_t process)
{
	for (uint32_t i = 0; i < fold->times->count; i++) {
		const struct model_step *step = &fold->model->steps[i];

		if (step->process == process && fold->times->steps[i].is_measured && fold->times->steps[i].is_complete)
			fold->windows[fold->count++] = (struct queue_depth_window){
				.start_ns = step->start_ns, .end_ns = step->end_ns, .step = step->number};
	}
}

static void add_parts(struct queue_depth_fold *fold)
{
	int64_t start_ns, all_ns;

	if (!fold->change_count)
		return;
	start_ns = fold->changes[0].time_ns;
	all_ns = intervals_length(start_ns, fold->changes[fold->change_count - 1].time_ns);
	for (int64_t i = 0; i < PARTS && all_ns >= PARTS; i++) /* the remainder of the division is spread over all */
		fold->windows[fold->count++] = (struct queue_depth_window){
			.start_ns = start_ns + all_ns / PARTS * i + all_ns % PARTS * i / PARTS,
			.end_ns = start_ns + all_ns / PARTS * (i + 1) + all_ns % PARTS * (i + 1) / PARTS,
			.step = -1};
}

static void find_windows(struct queue_depth_fold *fold, uint32_t process)
{
	fold->count = fold->first = 0;
	fold->windows = memory_resize(fold->windows, (size_t)fold->times->count + PARTS, sizeof(*fold->windows));
	if (fold->times->count)
		add_steps(fold, process);
	else
		add_parts(fold);
	assert(fold->count <= (size_t)fold->times->count + PARTS);
	for (size_t i = 0; i < fold->count; i++) /* less the time in which work waits */
		fold->windows[i].empty_ns = intervals_length(fold->windows[i].start_ns, fold->windows[i].end_ns);
}

/* ---- both ---- */

static void add_stretch(struct queue_depth_fold *fold, int64_t from_ns, int64_t to_ns)
{
	while (fold->first < fold->count && fold->windows[fold->first].end_ns <= from_ns)
		fold->first++;
	for (size_t i = fold->first; i < fold->count && fold->windows[i].start_ns < to_ns; i++) {
		struct queue_depth_window *window = &fold->windows[i];
		int64_t start_ns = from_ns > window->start_ns ? from_ns : window->start_ns;
		int64_t end_ns = to_ns < window->end_ns ? to_ns : window->end_ns;

		if (end_ns <= start_ns)
			continue;
		window->depth_max = fold->depth > window->depth_max ? fold->depth : window->depth_max;
		window->depth_ns += (double)fold->depth * (double)(end_ns - start_ns);
		window->empty_ns -= end_ns - start_ns;
		window->full_ns += fold->full_streams ? end_ns - start_ns : 0;
	}
}

static void count_launch(struct queue_depth_fold *fold, int64_t time_ns)
{
	for (size_t i = fold->first; i < fold->count && fold->windows[i].start_ns <= time_ns; i++)
		fold->windows[i].launched += time_ns < fold->windows[i].end_ns;
}

static void queue_depth_fold_device(struct queue_depth_fold *fold, const struct device *device)
{
	device_work_get(&fold->work, fold->context, device->process, device->device);
	find_changes(fold);
	find_windows(fold, device->process);
	memset(fold->waiting, 0, fold->model->tracks_count * sizeof(*fold->waiting));
	fold->depth = fold->full_streams = 0;
	for (size_t i = 0; i < fold->change_count; i++) {
		const struct queue_depth_change *change = &fold->changes[i];
		int64_t *waiting = &fold->waiting[change->stream];

		if (i && fold->depth)
			add_stretch(fold, fold->changes[i - 1].time_ns, change->time_ns);
		if (change->by > 0)
			count_launch(fold, change->time_ns);
		fold->full_streams -= *waiting >= QUEUE_FULL;
		*waiting += change->by;
		fold->full_streams += *waiting >= QUEUE_FULL;
		fold->depth += change->by;
		assert(*waiting >= 0 && fold->depth >= *waiting && fold->full_streams >= 0);
	}
}

/* ---- the table ---- */

static void queue_depth_add_rows(struct table *table, const struct queue_depth_fold *fold, const struct device *device,
                                 int64_t origin_ns)
{
	for (size_t i = 0; i < fold->count; i++) {
		const struct queue_depth_window *window = &fold->windows[i];
		int64_t time_ns = intervals_length(window->start_ns, window->end_ns);
		int row = table_row(table);

		table_set_text(table, row, QUEUE_DEVICE,
		               device_label(fold->model, device->process, device->device, &table->arena));
		if (fold->times->count)
			table_set_int(table, row, QUEUE_STEP, window->step);
		else
			table_set_missing(table, row, QUEUE_STEP,
			                  "no steps were marked, so each row covers a twentieth of the time");
		table_set_int(table, row, QUEUE_START, intervals_length(origin_ns, window->start_ns));
		table_set_int(table, row, QUEUE_TIME, time_ns);
		table_set_int(table, row, QUEUE_LAUNCHED, window->launched);
		table_set_int(table, row, QUEUE_MAX, window->depth_max);
		table_set_int(table, row, QUEUE_EMPTY, window->empty_ns);
		table_set_int(table, row, QUEUE_FULL_TIME, window->full_ns);
		if (time_ns > 0) {
			table_set_double(table, row, QUEUE_MEAN, window->depth_ns / (double)time_ns);
			table_set_double(table, row, QUEUE_EMPTY_RATIO, (double)window->empty_ns / (double)time_ns);
		} else {
			table_set_missing(table, row, QUEUE_MEAN, "the step has no duration");
			table_set_missing(table, row, QUEUE_EMPTY_RATIO, "the step has no duration");
		}
	}
}

static enum status queue_depth_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct queue_depth_fold fold = {
		.context = context, .model = model, .times = analysis_context_step_times(context)};
	struct device *devices;
	size_t count = devices_find(&devices, model);

	fold.launches = analysis_context_launches(context);
	fold.waiting = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof(*fold.waiting));
	table_init(table, "queue_depth", "Queues of devices over time",
	           "work launched but not started, in each complete step, whichever step launched it");
	table_columns(table, columns, QUEUE_COLUMNS);
	table_keep_in(table, model->storage);
	for (size_t i = 0; i < count; i++) {
		queue_depth_fold_device(&fold, &devices[i]);
		if (fold.change_count)
			queue_depth_add_rows(table, &fold, &devices[i], model->processes[devices[i].process].origin_ns);
	}
	if (!table->row_count)
		table->empty = !count               ? DEVICE_NOTHING
		               : !fold.times->count ? "no device work has its launch in the trace"
		                                    : step_times_empty_reason(fold.times);
	device_work_release(&fold.work);
	free(devices);
	free(fold.changes);
	free(fold.windows);
	free(fold.waiting);
	return STATUS_OK;
}

const struct analysis analysis_queue_depth = {
	.name = "queue_depth",
	.row = "device and step",
	.question = "how much launched work waits for a device in each step?",
	.run = queue_depth_run,
	.is_of_devices = true,
};
