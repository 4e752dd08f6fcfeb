/* SPDX-License-Identifier: Apache-2.0
 *
 * device_busy.c: the tables `device_busy` (a row per device, the whole trace) and `device_steps` (a row per device and
 * step). They have how long a device worked, on which class of work, and why it was idle. Overlapping work counts
 * once.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_use.h"
#include "analysis/devices/device_work.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_times.h"
#include "base/clamped.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct device_busy { /* of one device in one stretch of time */
	int64_t all_ns, busy_ns, kernel_ns, compute_ns, communication_ns, exposed_ns, copies_ns, hidden_copies_ns;
	int64_t queued_ns, launch_ns, unlaunched_ns;
};

struct device_busy_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	const struct step_times *times;
	struct device_work work;
	struct device_times device;
	struct device_gaps gaps;
	struct intervals exposed, hidden_copies;
	struct use_window *steps; /* complete selected steps of the device's process */
	size_t step_count;
};

static void fold_begin(struct device_busy_fold *fold, struct analysis_context *context)
{
	const struct model *model = context->model;

	*fold = (struct device_busy_fold){.context = context, .model = model};
	fold->times = analysis_context_step_times(context);
	fold->launches = analysis_context_launches(context);
}

static bool is_counted(const struct device_busy_fold *fold, uint32_t step, uint32_t process)
{
	return fold->model->steps[step].process == process && fold->times->steps[step].is_measured &&
	       fold->times->steps[step].is_complete;
}

static void fold_steps(struct device_busy_fold *fold, uint32_t process)
{
	fold->step_count = 0;
	fold->steps = memory_resize(fold->steps, (size_t)fold->times->count + 1, sizeof(*fold->steps));
	for (uint32_t i = 0; i < fold->times->count; i++)
		if (is_counted(fold, i, process))
			fold->steps[fold->step_count++] = (struct use_window){
				.start_ns = fold->model->steps[i].start_ns, .end_ns = fold->model->steps[i].end_ns};
	device_use_fill(fold->steps, fold->step_count, fold->model, &fold->work);
}

static void device_busy_fold_device(struct device_busy_fold *fold, const struct device *device)
{
	device_work_get(&fold->work, fold->context, device->process, device->device);
	device_times_fill(&fold->device, &fold->work);
	device_gaps_fill(&fold->gaps, fold->model, fold->launches, &fold->work, &fold->device.busy);
	intervals_subtract(&fold->exposed, &fold->device.communication, &fold->device.compute);
	intervals_intersect(&fold->hidden_copies, &fold->device.copies, &fold->device.kernels);
	fold_steps(fold, device->process);
}

static struct device_busy busy_within(const struct device_busy_fold *fold, int64_t start_ns, int64_t end_ns)
{
	return (struct device_busy){
		.all_ns = intervals_length(start_ns, end_ns),
		.busy_ns = intervals_within(&fold->device.busy, start_ns, end_ns),
		.kernel_ns = intervals_within(&fold->device.kernels, start_ns, end_ns),
		.compute_ns = intervals_within(&fold->device.compute, start_ns, end_ns),
		.communication_ns = intervals_within(&fold->device.communication, start_ns, end_ns),
		.exposed_ns = intervals_within(&fold->exposed, start_ns, end_ns),
		.copies_ns = intervals_within(&fold->device.copies, start_ns, end_ns),
		.hidden_copies_ns = intervals_within(&fold->hidden_copies, start_ns, end_ns),
		.queued_ns = intervals_within(&fold->gaps.queued, start_ns, end_ns),
		.launch_ns = intervals_within(&fold->gaps.launch, start_ns, end_ns),
		.unlaunched_ns = intervals_within(&fold->gaps.unlaunched, start_ns, end_ns),
	};
}

static void device_busy_fold_release(struct device_busy_fold *fold)
{
	device_work_release(&fold->work);
	device_times_release(&fold->device);
	device_gaps_release(&fold->gaps);
	intervals_release(&fold->exposed);
	intervals_release(&fold->hidden_copies);
	free(fold->steps);
}

/* Calls add() with each device and the first of its columns of times. Returns the number of devices. */
static size_t fold_devices(struct device_busy_fold *fold, struct table *table, int first,
                           void (*add)(struct table *, const struct device_busy_fold *, const struct device *, int))
{
	struct device *devices;
	size_t count = devices_find(&devices, fold->model);

	for (size_t i = 0; i < count; i++) {
		device_busy_fold_device(fold, &devices[i]);
		add(table, fold, &devices[i], first);
	}
	free(devices);
	return count;
}

/* ---- columns that both tables have ---- */

enum {
	BUSY_ALL,
	BUSY_BUSY,
	BUSY_RATIO,
	BUSY_KERNELS,
	BUSY_COMPUTE,
	BUSY_COMMUNICATION,
	BUSY_EXPOSED,
	BUSY_COPIES,
	BUSY_HIDDEN_COPIES,
	BUSY_IDLE,
	BUSY_QUEUED,
	BUSY_LAUNCH,
	BUSY_UNLAUNCHED,
	BUSY_UNKNOWN,
	BUSY_COLUMNS,
};

/* Each table names the column "all_ns". */
static const struct table_column busy_columns[BUSY_COLUMNS] = {
	[BUSY_ALL] = {.type = TABLE_INT, .unit = UNIT_NS, .rules = RULE_NOT_NEGATIVE},
	[BUSY_BUSY] = {.name = "busy_ns",
                       .title = "busy",
                       .type = TABLE_INT,
                       .unit = UNIT_NS,
                       .definition = "time in which at least one kernel, copy or fill ran",
                       .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER},
	[BUSY_RATIO] = {.name = "busy_ratio",
                        .title = "busy %",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = "share of the time in which the device was busy",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[BUSY_KERNELS] = {.name = "kernel_ns",
                          .title = "kernels",
                          .type = TABLE_INT,
                          .unit = UNIT_NS,
                          .definition = "time in which at least one kernel ran",
                          .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                          .other = "busy_ns"},
	[BUSY_COMPUTE] = {.name = "compute_ns",
                          .title = "compute",
                          .type = TABLE_INT,
                          .unit = UNIT_NS,
                          .definition = "time in which at least one compute kernel ran",
                          .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                          .other = "kernel_ns"},
	[BUSY_COMMUNICATION] =
		{.name = "communication_ns",
                 .title = "communication",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time in which at least one communication kernel ran, including its waits for other devices",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                 .other = "kernel_ns"},
	[BUSY_EXPOSED] = {.name = "exposed_communication_ns",
                          .title = "exposed",
                          .type = TABLE_INT,
                          .unit = UNIT_NS,
                          .definition = "part of communication_ns in which no compute kernel ran",
                          .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                          .other = "communication_ns"},
	[BUSY_COPIES] = {.name = "copies_ns",
                         .title = "copies",
                         .type = TABLE_INT,
                         .unit = UNIT_NS,
                         .definition = "time in which at least one copy or fill ran",
                         .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                         .other = "busy_ns"},
	[BUSY_HIDDEN_COPIES] = {.name = "hidden_copies_ns",
                                .title = "hidden copies",
                                .type = TABLE_INT,
                                .unit = UNIT_NS,
                                .definition = "part of copies_ns in which a kernel also ran",
                                .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                                .other = "copies_ns"},
	[BUSY_IDLE] = {.name = "idle_ns",
                       .title = "idle",
                       .type = TABLE_INT,
                       .unit = UNIT_NS,
                       .definition = "time in which no work ran",
                       .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER},
	[BUSY_QUEUED] =
		{.name = "idle_queued_ns",
                 .title = "idle: queued",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "idle although the launch of the next work had ended when the device stopped: the work waited for "
                         "another stream, an event or the device itself",
                 .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
                 .other = "idle_ns"},
	[BUSY_LAUNCH] =
		{.name = "idle_launch_ns",
                 .title = "idle: launch",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "idle during the launch of the next work: from the start of the call to the start of the work",
                 .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
                 .other = "idle_ns"},
	[BUSY_UNLAUNCHED] = {.name = "idle_unlaunched_ns",
                             .title = "idle: not launched",
                             .type = TABLE_INT,
                             .unit = UNIT_NS,
                             .definition = "idle before that call: the host had not reached it yet",
                             .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
                             .other = "idle_ns"},
	[BUSY_UNKNOWN] =
		{.name = "idle_unknown_ns",
                 .title = "idle: unknown",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "idle before the first and after the last work with a duration, and before work without a launch in "
                         "the trace",
                 .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
                 .other = "idle_ns"},
};

/* Adds the columns. Returns the number of the first. */
static int add_busy_columns(struct table *table, const char *name, const char *title, const char *definition)
{
	int first = table->column_count;

	for (int i = 0; i < BUSY_COLUMNS; i++) {
		struct table_column copy = busy_columns[i];

		if (i == BUSY_ALL) {
			copy.name = name;
			copy.title = title;
			copy.definition = definition;
		}
		if (i == BUSY_BUSY || i == BUSY_IDLE)
			copy.other = name;
		if (i == BUSY_RATIO)
			copy.denominator = definition;
		table_column(table, &copy);
	}
	return first;
}

static void set_busy(struct table *table, int row, int first, const struct device_busy *busy)
{
	int64_t idle_ns = busy->all_ns - busy->busy_ns;
	const int64_t values[BUSY_COLUMNS] = {
		[BUSY_ALL] = busy->all_ns,
		[BUSY_BUSY] = busy->busy_ns,
		[BUSY_KERNELS] = busy->kernel_ns,
		[BUSY_COMPUTE] = busy->compute_ns,
		[BUSY_COMMUNICATION] = busy->communication_ns,
		[BUSY_EXPOSED] = busy->exposed_ns,
		[BUSY_COPIES] = busy->copies_ns,
		[BUSY_HIDDEN_COPIES] = busy->hidden_copies_ns,
		[BUSY_IDLE] = idle_ns,
		[BUSY_QUEUED] = busy->queued_ns,
		[BUSY_LAUNCH] = busy->launch_ns,
		[BUSY_UNLAUNCHED] = busy->unlaunched_ns,
		[BUSY_UNKNOWN] = idle_ns - busy->queued_ns - busy->launch_ns - busy->unlaunched_ns,
	};

	for (int i = 0; i < BUSY_COLUMNS; i++)
		if (i != BUSY_RATIO)
			table_set_int(table, row, first + i, values[i]);
	if (busy->all_ns > 0)
		table_set_double(table, row, first + BUSY_RATIO, (double)busy->busy_ns / (double)busy->all_ns);
	else
		table_set_missing(table, row, first + BUSY_RATIO, "no time passed");
}

/* ---- devices ---- */

enum {
	DEVICE_LABEL,
	DEVICE_STREAMS,
	DEVICE_KERNELS,
	DEVICE_COPIES,
	DEVICE_UNLAUNCHED,
	DEVICE_SUM,
	DEVICE_STEP_RATIO,
	DEVICE_STEP_COMPUTE,
	DEVICE_SIBLINGS,
	DEVICE_COLUMNS,
	DEVICE_USE = DEVICE_COLUMNS,
};

static const struct table_column device_columns[DEVICE_COLUMNS] = {
	[DEVICE_LABEL] = DEVICE_COLUMN,
	[DEVICE_STREAMS] = {.name = "streams", .type = TABLE_INT, .unit = UNIT_COUNT, .definition = "streams with work"},
	[DEVICE_KERNELS] = {.name = "kernel_count",
                            .title = "kernels",
                            .type = TABLE_INT,
                            .unit = UNIT_COUNT,
                            .definition = "number of kernels"},
	[DEVICE_COPIES] = {.name = "copy_count",
                           .title = "copies",
                           .type = TABLE_INT,
                           .unit = UNIT_COUNT,
                           .definition = "copies and fills"},
	[DEVICE_UNLAUNCHED] = {.name = "unlaunched_count",
                               .title = "without a launch",
                               .type = TABLE_INT,
                               .unit = UNIT_COUNT,
                               .role = ROLE_EVIDENCE,
                               .definition = "kernels, copies and fills without a launch in the trace"},
	[DEVICE_SUM] =
		{.name = "sum_ns",
                 .title = "sum",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "sum of the durations of all kernels, copies and fills; exceeds busy_ns if some of them overlap",
                 .rules = RULE_NOT_NEGATIVE},
	[DEVICE_STEP_RATIO] = {.name = "step_kernel_ratio",
                               .title = "kernels % of steps",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_RATIO,
                               .role = ROLE_SHARE,
                               .definition = "share of the steps' time in which a kernel ran",
                               .denominator = "time of the complete steps of its process",
                               .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[DEVICE_STEP_COMPUTE] = {.name = "step_compute_ratio",
                                 .title = "compute % of steps",
                                 .type = TABLE_DOUBLE,
                                 .unit = UNIT_RATIO,
                                 .role = ROLE_SHARE,
                                 .definition = "share of the steps' time in which a compute kernel ran",
                                 .denominator = "time of the complete steps of its process",
                                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE,
                                 .is_hidden = true},
	[DEVICE_SIBLINGS] =
		{.name = "process_devices",
                 .title = "devices of process",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .role = ROLE_EVIDENCE,
                 .definition =
                         "number of devices with work of the same process; if there are several, they may take turns",
                 .is_hidden = true},
};

struct device_sums {
	int64_t kernels, copies, unlaunched, sum_ns;
};

static void sum_work(struct device_sums *sums, const struct device_busy_fold *fold)
{
	for (size_t n = 0; n < fold->work.count; n++) {
		const struct work *item = &fold->work.items[n];
		const struct launch *launch = launches_of(fold->launches, item->track, item->row);
		bool is_kernel = item->class == WORK_COMPUTE || item->class == WORK_COMMUNICATION;

		sums->kernels += is_kernel;
		sums->copies += !is_kernel;
		clamped_add(&sums->sum_ns, item->end_ns - item->start_ns);
		sums->unlaunched += !launch || launch->track == MODEL_NONE;
	}
}

#define NO_STEP "its process has no complete step"

/* Sets the cells that cover the steps only; the rest of `use` covers the whole trace. */
static void set_steps(struct table *table, int row, const struct device_busy_fold *fold, struct device_use *use)
{
	int64_t steps_ns = 0, kernels_ns = 0, compute_ns = 0;

	for (size_t i = 0; i < fold->step_count; i++) {
		const struct use_window *step = &fold->steps[i];

		clamped_add(&steps_ns, intervals_length(step->start_ns, step->end_ns));
		clamped_add(&kernels_ns, intervals_within(&fold->device.kernels, step->start_ns, step->end_ns));
		clamped_add(&compute_ns, intervals_within(&fold->device.compute, step->start_ns, step->end_ns));
		use->sm_ns += step->use.sm_ns;
	}
	if (steps_ns > 0) {
		table_set_double(table, row, DEVICE_STEP_RATIO, (double)kernels_ns / (double)steps_ns);
		table_set_double(table, row, DEVICE_STEP_COMPUTE, (double)compute_ns / (double)steps_ns);
	} else {
		table_set_missing(table, row, DEVICE_STEP_RATIO, NO_STEP);
		table_set_missing(table, row, DEVICE_STEP_COMPUTE, NO_STEP);
	}
	device_use_set(table, row, DEVICE_USE, use, steps_ns, NO_STEP);
}

static void add_device(struct table *table, const struct device_busy_fold *fold, const struct device *device, int first)
{
	struct interval extent = device_work_extent(&fold->work);
	struct use_window window = {.start_ns = extent.start_ns, .end_ns = extent.end_ns};
	struct device_busy whole = busy_within(fold, window.start_ns, window.end_ns);
	struct device_sums sums = {0};
	int row = table_row(table);

	sum_work(&sums, fold);
	device_use_fill(&window, 1, fold->model, &fold->work);
	window.use.sm_ns = 0;
	table_set_text(table, row, DEVICE_LABEL,
	               device_label(fold->model, device->process, device->device, &table->arena));
	table_set_int(table, row, DEVICE_SIBLINGS, device->siblings);
	table_set_int(table, row, DEVICE_STREAMS, device->streams);
	table_set_int(table, row, DEVICE_KERNELS, sums.kernels);
	table_set_int(table, row, DEVICE_COPIES, sums.copies);
	table_set_int(table, row, DEVICE_UNLAUNCHED, sums.unlaunched);
	table_set_int(table, row, DEVICE_SUM, sums.sum_ns);
	set_steps(table, row, fold, &window.use);
	set_busy(table, row, first, &whole);
}

static enum status run_devices(struct analysis_context *context, struct table *table, struct error *err)
{
	struct device_busy_fold fold;
	int first;

	fold_begin(&fold, context);
	table_init(table, "device_busy", "Devices",
	           "busy and idle time of each device, from its first to its last work in the trace");
	table_columns(table, device_columns, DEVICE_COLUMNS);
	table_columns(table, device_use_columns, USE_COLUMNS);
	first = add_busy_columns(table, "extent_ns", "first to last",
	                         "time from the start of its first to the end of its last work");
	if (!fold_devices(&fold, table, first, add_device))
		table->empty = DEVICE_NOTHING;
	device_busy_fold_release(&fold);
	return STATUS_OK;
}

const struct analysis analysis_device_busy = {
	.name = "device_busy",
	.row = "device",
	.question = "how busy are the devices, and why are they idle?",
	.run = run_devices,
	.is_of_devices = true,
};

/* ---- steps ---- */

enum {
	STEP_DEVICE,
	STEP_NUMBER,
	STEP_COLUMNS,
	STEP_USE = STEP_COLUMNS,
};

static const struct table_column step_columns[STEP_COLUMNS] = {
	[STEP_DEVICE] = DEVICE_COLUMN,
	[STEP_NUMBER] = STEP_NUMBER_COLUMN,
};

static void add_steps(struct table *table, const struct device_busy_fold *fold, const struct device *device, int first)
{
	const struct use_window *window = fold->steps;

	for (uint32_t i = 0; i < fold->times->count; i++) {
		const struct model_step *step = &fold->model->steps[i];
		struct device_busy busy;
		int row;

		if (!is_counted(fold, i, device->process))
			continue;
		row = table_row(table);
		busy = busy_within(fold, step->start_ns, step->end_ns);
		table_set_text(table, row, STEP_DEVICE,
		               device_label(fold->model, device->process, device->device, &table->arena));
		table_set_int(table, row, STEP_NUMBER, step->number);
		device_use_set(table, row, STEP_USE, &window->use, busy.all_ns, "the step has no duration");
		set_busy(table, row, first, &busy);
		window++;
	}
}

static enum status run_steps(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct device_busy_fold fold;
	size_t count;
	int first;

	fold_begin(&fold, context);
	table_init(table, "device_steps", "Devices by step",
	           "busy and idle time of each device in each complete step, whichever step launched the work");
	table_columns(table, step_columns, STEP_COLUMNS);
	table_columns(table, device_use_columns, USE_COLUMNS);
	table_keep_in(table, model->storage);
	first = add_busy_columns(table, "step_ns", "step", "duration of the step");
	count = fold_devices(&fold, table, first, add_steps);
	if (!table->row_count)
		table->empty = count ? step_times_empty_reason(fold.times) : DEVICE_NOTHING;
	device_busy_fold_release(&fold);
	return STATUS_OK;
}

const struct analysis analysis_device_steps = {
	.name = "device_steps",
	.row = "device and step",
	.question = "how busy are the devices in each step?",
	.run = run_steps,
	.is_of_devices = true,
};
