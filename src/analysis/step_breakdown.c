/* SPDX-License-Identifier: Apache-2.0
 *
 * step_breakdown.c: the tables `step_breakdown` and `step_parts`: what the time of a step with a device goes to. An instant belongs to the
 * first part that is true of it, so the parts sum to the step: what the device does, else why it does nothing.
 *
 * Per process: a list of instants for each part; each list is cut by all parts before it; then every step is measured against the lists.
 */
#include "analysis/device_names.h"
#include "analysis/device_work.h"
#include "analysis/labels.h"
#include "analysis/step_times.h"

#include "base/clamped.h"
#include "base/memory.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

enum part {
	PART_COMPUTE,
	PART_COMMUNICATION,
	PART_COPIES,
	PART_QUEUED,
	PART_LAUNCH,
	PART_DATA,
	PART_SYNC,
	PART_RUNTIME,
	PART_HOST,
	PART_OTHER, /* has no list: what is left */
	PARTS,
};

static const struct {
	const char *name, *column, *meaning;
} parts[PARTS] = {
	[PART_COMPUTE] = {"compute kernels", "compute_ns", "a kernel that computes runs on a device"},
	[PART_COMMUNICATION] = {"exposed communication", "communication_ns",
                                "a kernel that communicates runs, and none that computes"},
	[PART_COPIES] = {"exposed copies", "copies_ns", "a copy or fill runs, and no kernel"},
	[PART_QUEUED] = {"idle: queued", "queued_ns",
                         "no device works, though the next work was launched before they stopped: it waits for another "
                         "stream, an event or the device itself"},
	[PART_LAUNCH] =
		{"idle: launch", "launch_ns",
                 "no device works; from the begin of the call that launches the next work to the begin of that work"},
	[PART_DATA] = {"idle: data wait", "data_ns",
                       "no device works, nothing is launched; a thread that drives them waits for the next batch"},
	[PART_SYNC] = {"idle: synchronization", "sync_ns",
                       "no device works any more; a thread is still in a call that waits for it"},
	[PART_RUNTIME] = {"idle: runtime calls", "runtime_ns",
                          "no device works; a thread is in another call of the runtime or driver"},
	[PART_HOST] = {"idle: host", "host_ns",
                       "no device works; a thread runs operators, ranges or Python that were recorded"},
	[PART_OTHER] = {"idle: nothing recorded", "other_ns",
                        "no device works, and nothing was recorded of the threads that drive them"},
};

struct window { /* a step, or a process without steps */
	uint32_t process;
	bool has_number;
	int64_t number, start_ns, end_ns;
	int64_t parts_ns[PARTS];
};

struct fold {
	const struct model *model;
	const struct launches *launches;
	const struct step_times *times;
	struct device_work work;
	struct device_times device;
	struct device_gaps gaps;
	struct name_classes names;
	struct intervals lists[PART_OTHER];
	struct intervals covered, spare;
	struct window *windows;
	size_t count, capacity;
};

/* ---- instants of each part ---- */

static void swap(struct intervals *a, struct intervals *b)
{
	struct intervals keep = *a;

	*a = *b;
	*b = keep;
}

static uint8_t classify_name(const char *name)
{
	return is_data_wait(name)                    ? PART_DATA
	       : is_synchronizing_call(name)         ? PART_SYNC
	       : !strncmp(name, "ProfilerStep#", 13) ? PART_OTHER
	                                             : PART_HOST;
}

static enum part part_of_span(struct fold *fold, const struct span_chunk *chunk, uint32_t i)
{
	enum part part;

	switch (chunk->kind[i]) {
	case SPAN_PHASE:
		return chunk->phase[i] == STEPSCOPE_PHASE_DATA ? PART_DATA : PART_OTHER;
	case SPAN_STEP:
	case SPAN_MICRO_BATCH:
		return PART_OTHER;
	case SPAN_RUNTIME:
		part = (enum part)name_class(&fold->names, fold->model, chunk->name[i]);
		return part == PART_SYNC ? part : PART_RUNTIME;
	default:
		part = (enum part)name_class(&fold->names, fold->model, chunk->name[i]);
		return part == PART_SYNC ? PART_HOST : part;
	}
}

static void add_thread(struct fold *fold, uint32_t number)
{
	const struct track *track = fold->model->tracks[number];
	struct intervals own[PART_OTHER] = {{0}};

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			enum part part = part_of_span(fold, chunk, i);

			if (part != PART_OTHER)
				intervals_add(&own[part], chunk->start_ns[i], chunk->start_ns[i] + chunk->dur_ns[i]);
		}
		model_chunk_done(fold->model, chunk);
	}
	for (int part = PART_DATA; part < PART_OTHER; part++) {
		intervals_join(&fold->spare, &fold->lists[part], &own[part]);
		swap(&fold->spare, &fold->lists[part]);
		intervals_release(&own[part]);
	}
}

/* Threads that launched work or mark steps. */
static void add_threads(struct fold *fold, uint32_t process)
{
	const struct model *model = fold->model;
	bool *drives = memory_resize(NULL, model->tracks_count, sizeof(*drives));

	memset(drives, 0, model->tracks_count * sizeof(*drives));
	for (size_t i = 0; i < fold->work.count; i++) {
		const struct launch *launch = launches_of(fold->launches, fold->work.items[i].track,
		                                          fold->work.items[i].row);

		if (launch && launch->track != MODEL_NONE)
			drives[launch->track] = true;
	}
	for (uint32_t i = 0; i < model->steps_count; i++)
		if (model->steps[i].process == process && model->steps[i].track < model->tracks_count)
			drives[model->steps[i].track] = true;
	for (int part = PART_DATA; part < PART_OTHER; part++)
		fold->lists[part].count = 0;
	for (uint32_t track = 0; track < model->tracks_count; track++)
		if (drives[track])
			add_thread(fold, track);
	free(drives);
}

/* Each part loses what parts before it have. */
static void cut_parts(struct fold *fold)
{
	fold->covered.count = 0;
	for (int part = 0; part < PART_OTHER; part++) {
		struct intervals rest = {0};

		intervals_subtract(&rest, &fold->lists[part], &fold->covered);
		intervals_join(&fold->spare, &fold->covered, &fold->lists[part]);
		swap(&fold->spare, &fold->covered);
		swap(&rest, &fold->lists[part]);
		intervals_release(&rest);
	}
}

static void copy_list(struct intervals *to, const struct intervals *from)
{
	static const struct intervals none;

	intervals_join(to, from, &none);
}

static void find_parts(struct fold *fold, uint32_t process)
{
	device_work_collect(&fold->work, fold->model, process, DEVICE_ANY);
	device_times_fill(&fold->device, &fold->work);
	copy_list(&fold->lists[PART_COMPUTE], &fold->device.compute);
	copy_list(&fold->lists[PART_COMMUNICATION], &fold->device.communication);
	copy_list(&fold->lists[PART_COPIES], &fold->device.copies);
	device_gaps_fill(&fold->gaps, fold->model, fold->launches, &fold->work, &fold->device.busy);
	copy_list(&fold->lists[PART_QUEUED], &fold->gaps.queued);
	copy_list(&fold->lists[PART_LAUNCH], &fold->gaps.launch);
	add_threads(fold, process);
	cut_parts(fold);
}

/* ---- steps ---- */

static void add_window(struct fold *fold, const struct window *window)
{
	struct window *added;

	if (fold->count == fold->capacity) {
		fold->capacity = fold->capacity ? 2 * fold->capacity : 64;
		fold->windows = memory_resize(fold->windows, fold->capacity, sizeof(*fold->windows));
	}
	added = &fold->windows[fold->count++];
	*added = *window;
	added->parts_ns[PART_OTHER] = intervals_length(window->start_ns, window->end_ns);
	for (int part = 0; part < PART_OTHER; part++) {
		added->parts_ns[part] = intervals_within(&fold->lists[part], window->start_ns, window->end_ns);
		added->parts_ns[PART_OTHER] -= added->parts_ns[part];
	}
}

static void add_windows(struct fold *fold, uint32_t process)
{
	const struct model *model = fold->model;

	for (uint32_t i = 0; i < fold->times->count; i++) {
		const struct model_step *step = &model->steps[i];

		if (step->process == process && fold->times->steps[i].is_selected && fold->times->steps[i].is_complete)
			add_window(fold, &(struct window){.process = process,
			                                  .has_number = true,
			                                  .number = step->number,
			                                  .start_ns = step->start_ns,
			                                  .end_ns = step->end_ns});
	}
	if (!fold->times->count && model->processes[process].has_times)
		add_window(fold, &(struct window){.process = process,
		                                  .start_ns = model->processes[process].first_ns,
		                                  .end_ns = model->processes[process].last_ns});
}

static void fold_run(struct fold *fold)
{
	struct device *devices;
	size_t count = devices_find(&devices, fold->model);

	fold->names.classify = classify_name;
	for (size_t i = 0; i < count; i++) {
		if (i && devices[i].process == devices[i - 1].process)
			continue;
		find_parts(fold, devices[i].process);
		add_windows(fold, devices[i].process);
	}
	free(devices);
}

static void fold_release(struct fold *fold)
{
	for (int part = 0; part < PART_OTHER; part++)
		intervals_release(&fold->lists[part]);
	intervals_release(&fold->covered);
	intervals_release(&fold->spare);
	device_times_release(&fold->device);
	device_gaps_release(&fold->gaps);
	device_work_release(&fold->work);
	name_classes_release(&fold->names);
	free(fold->windows);
}

static const char *why_empty(const struct fold *fold)
{
	return fold->work.count ? step_times_empty_reason(fold->times) : DEVICE_NOTHING;
}

#define NO_STEPS_NOTE "no steps were marked: the whole trace counts as one"

/* ---- the table of parts ---- */

enum {
	BREAKDOWN_PART,
	BREAKDOWN_MEAN,
	BREAKDOWN_RATIO,
	BREAKDOWN_TOTAL,
	BREAKDOWN_MEANING,
	BREAKDOWN_COLUMNS,
};

static const struct table_column breakdown_columns[BREAKDOWN_COLUMNS] = {
	[BREAKDOWN_PART] =
		{.name = "part",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "what the time goes to; an instant belongs to the first part that is true of it"},
	[BREAKDOWN_MEAN] = {.name = "mean_ns",
                            .title = "mean",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_NS,
                            .definition = "mean time per step, all processes",
                            .rules = RULE_NOT_NEGATIVE},
	[BREAKDOWN_RATIO] = {.name = "ratio",
                             .title = "%",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_RATIO,
                             .role = ROLE_SHARE,
                             .definition = "share of the time of the steps",
                             .denominator = "time of the complete steps, all processes with a device",
                             .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE},
	[BREAKDOWN_TOTAL] = {.name = "total_ns",
                             .title = "total",
                             .type = TABLE_INT,
                             .unit = UNIT_NS,
                             .definition = "time in all steps; the rows sum to the time of the steps",
                             .rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL},
	[BREAKDOWN_MEANING] = {.name = "meaning", .type = TABLE_TEXT, .definition = "when an instant belongs to it"},
};

static void add_part_rows(struct table *table, const struct fold *fold, int64_t total_ns)
{
	for (int part = 0; part < PARTS; part++) {
		int64_t sum_ns = 0;
		int row = table_row(table);

		for (size_t i = 0; i < fold->count; i++)
			clamped_add(&sum_ns, fold->windows[i].parts_ns[part]);
		table_set_text(table, row, BREAKDOWN_PART, parts[part].name);
		table_set_text(table, row, BREAKDOWN_MEANING, parts[part].meaning);
		table_set_int(table, row, BREAKDOWN_TOTAL, sum_ns);
		table_set_double(table, row, BREAKDOWN_MEAN, (double)sum_ns / (double)fold->count);
		if (total_ns > 0)
			table_set_double(table, row, BREAKDOWN_RATIO, (double)sum_ns / (double)total_ns);
		else
			table_set_missing(table, row, BREAKDOWN_RATIO, "the steps took no time");
	}
}

static enum status run_breakdown(const struct model *model, const struct analysis_options *options, struct table *table,
                                 struct error *err)
{
	struct step_times own = {0};
	struct launches own_launches = {0};
	struct fold fold = {.model = model, .times = step_times_get(&own, model, options)};
	int64_t total_ns = 0;

	fold.launches = launches_get(&own_launches, model, options);
	fold_run(&fold);
	for (size_t i = 0; i < fold.count; i++)
		clamped_add(&total_ns, intervals_length(fold.windows[i].start_ns, fold.windows[i].end_ns));
	table_init(
		table, "step_breakdown", "Where a step goes, seen from the device",
		"time of the complete steps of processes with a device: what the device does, else why it does nothing");
	for (int i = 0; i < BREAKDOWN_COLUMNS; i++) {
		struct table_column copy = breakdown_columns[i];

		copy.total = (double)total_ns;
		table_column(table, &copy);
	}
	if (fold.count)
		add_part_rows(table, &fold, total_ns);
	else
		table->empty = why_empty(&fold);
	table->note = fold.count && !fold.windows[0].has_number ? NO_STEPS_NOTE : NULL;
	fold_release(&fold);
	launches_release(&own_launches);
	step_times_release(&own);
	return STATUS_OK;
}

const struct analysis analysis_step_breakdown = {"step_breakdown",
                                                 "what does a step's time go to, seen from the device?", run_breakdown};

/* ---- the table of steps ---- */

enum {
	STEP_PROCESS,
	STEP_NUMBER,
	STEP_TIME,
	STEP_PARTS,
};

static void add_step_columns(struct table *table)
{
	table_column(table,
	             &(struct table_column){
			     .name = "process", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "rank, or pid"});
	table_column(table,
	             &(struct table_column){
			     .name = "step", .type = TABLE_INT, .role = ROLE_KEY, .definition = "number of the step"});
	table_column(table, &(struct table_column){.name = "step_ns",
	                                           .title = "step",
	                                           .type = TABLE_INT,
	                                           .unit = UNIT_NS,
	                                           .definition = "its duration; the parts sum to it",
	                                           .rules = RULE_NOT_NEGATIVE});
	for (int part = 0; part < PARTS; part++)
		table_column(table, &(struct table_column){.name = parts[part].column,
		                                           .title = parts[part].name,
		                                           .type = TABLE_INT,
		                                           .unit = UNIT_NS,
		                                           .definition = parts[part].meaning,
		                                           .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
		                                           .other = "step_ns"});
}

static enum status run_parts(const struct model *model, const struct analysis_options *options, struct table *table,
                             struct error *err)
{
	struct step_times own = {0};
	struct launches own_launches = {0};
	struct fold fold = {.model = model, .times = step_times_get(&own, model, options)};

	fold.launches = launches_get(&own_launches, model, options);
	fold_run(&fold);
	table_init(table, "step_parts", "Steps by what the device did",
	           "complete steps of processes with a device, each in the parts of the table step_breakdown");
	add_step_columns(table);
	for (size_t i = 0; i < fold.count; i++) {
		const struct window *window = &fold.windows[i];
		int row = table_row(table);

		table_set_text(table, row, STEP_PROCESS, process_label(model, window->process, &table->arena));
		if (window->has_number)
			table_set_int(table, row, STEP_NUMBER, window->number);
		else
			table_set_missing(table, row, STEP_NUMBER, NO_STEPS_NOTE);
		table_set_int(table, row, STEP_TIME, intervals_length(window->start_ns, window->end_ns));
		for (int part = 0; part < PARTS; part++)
			table_set_int(table, row, STEP_PARTS + part, window->parts_ns[part]);
	}
	if (!fold.count)
		table->empty = why_empty(&fold);
	fold_release(&fold);
	launches_release(&own_launches);
	step_times_release(&own);
	return STATUS_OK;
}

const struct analysis analysis_step_parts = {"step_parts", "what does each step's time go to, seen from the device?",
                                             run_parts};
