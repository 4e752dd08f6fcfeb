/* SPDX-License-Identifier: Apache-2.0
 *
 * critical_path.c: the tables `critical_path` (a row per part and name, all steps) and `critical_steps` (a row per
 * step). They cover the time from the start of a step to the end of its work. Each instant belongs to the one thing
 * that the rest of the step waited for, so the rows sum to that time.
 */
#include "analysis/analysis_context.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/critical_walk.h"
#include "analysis/step_times/step_times.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "base/storage.h"
#include "model/number_map.h"
#include "table/bound.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *column, *meaning;
} parts[PATH_PARTS] = {
	[PATH_COMPUTE] = {"compute kernel", "compute_ns", "a compute kernel"},
	[PATH_COMMUNICATION] = {"communication kernel", "communication_ns",
                                "a communication kernel, including waits for other ranks"},
	[PATH_COPY] = {"copy", "copies_ns", "a copy or fill"},
	[PATH_QUEUED] = {"queued", "queued_ns",
                         "gap between the previous work's end and the start of work already launched"},
	[PATH_LAUNCH] = {"launch", "launch_ns",
                         "from the start of the launching call to the start of the work, by operator"},
	[PATH_SYNC] = {"synchronization", "sync_ns",
                       "in a call that waits for the device, after the end of the work that it waits for"},
	[PATH_DATA] = {"data wait", "data_ns", "a thread waits for the next batch"},
	[PATH_RUNTIME] = {"runtime call", "runtime_ns", "another call of the runtime or driver"},
	[PATH_OPERATOR] = {"operator", "operator_ns", "an operator on the host, without nested calls"},
	[PATH_HOST] = {"host", "host_ns", "a range, annotation, module or Python call, without nested calls"},
	[PATH_OTHER] = {"nothing recorded", "other_ns", "nothing was recorded on the threads that launch work"},
};

struct critical_window {
	uint32_t process;
	bool has_number;
	int64_t number, start_ns, step_end_ns, end_ns;
	int64_t parts_ns[PATH_PARTS];
	int64_t pieces;
};

struct critical_group { /* by part and name */
	enum path_part part;
	uint32_t name;
	int64_t total_ns, pieces;
};

struct critical_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	const struct step_times *times;
	struct critical_walk walk;
	struct critical_window *windows;
	size_t count, capacity, current;
	struct number_map by_key;
	struct critical_group *groups;
	uint32_t group_count, group_capacity;
	bool has_work;
};

static struct critical_group *critical_path_group_of(struct critical_fold *fold, enum path_part part, uint32_t name)
{
	uint64_t key = (uint64_t)part << 32 | name;
	uint32_t found = number_map_add(&fold->by_key, key, fold->group_count);

	if (found == fold->group_count) {
		STORAGE_GROW(fold->model->storage, fold->groups, fold->group_count, fold->group_capacity, 64);
		fold->groups[fold->group_count++] = (struct critical_group){.part = part, .name = name};
	}
	return &fold->groups[found];
}

static void critical_path_add_piece(void *context, const struct path_piece *piece)
{
	struct critical_fold *fold = context;
	struct critical_window *window = &fold->windows[fold->current];
	struct critical_group *group = critical_path_group_of(fold, piece->part, piece->name);

	window->parts_ns[piece->part] += piece->end_ns - piece->start_ns;
	window->pieces++;
	clamped_add(&group->total_ns, piece->end_ns - piece->start_ns);
	group->pieces++;
}

/* ---- stretches ---- */

static struct critical_window *add_window(struct critical_fold *fold, const struct critical_window *window)
{
	STORAGE_GROW(fold->model->storage, fold->windows, fold->count, fold->capacity, 64);
	fold->windows[fold->count] = *window;
	return &fold->windows[fold->count++];
}

/* Returns the ends of the steps of all processes, by index of the step. A step ends with the last work that it
 * launched. */
static int64_t *critical_path_find_ends(const struct critical_fold *fold)
{
	const struct model *model = fold->model;
	int64_t *ends = memory_resize(NULL, (size_t)model->steps_count + 1, sizeof(*ends));

	for (uint32_t i = 0; i < model->steps_count; i++)
		ends[i] = model->steps[i].end_ns;
	for (size_t n = 0; n < fold->walk.work.count; n++) {
		const struct work *item = &fold->walk.work.items[n];
		const struct launch *launch = launches_of(fold->launches, item->track, item->row);
		const struct span_chunk *chunk;
		uint32_t i;

		if (!launch || launch->track == MODEL_NONE)
			continue;
		chunk = track_chunk(model->tracks[launch->track], launch->row, &i);
		if (chunk->step[i] >= 0 && item->end_ns > ends[chunk->step[i]])
			ends[chunk->step[i]] = item->end_ns;
	}
	return ends;
}

static void walk_window(struct critical_fold *fold, uint32_t thread)
{
	const struct critical_window *window = &fold->windows[fold->count - 1];

	fold->current = fold->count - 1;
	critical_walk_run(&fold->walk, thread, window->start_ns, window->end_ns, critical_path_add_piece, fold);
}

static void walk_steps(struct critical_fold *fold, uint32_t process)
{
	int64_t *ends = critical_path_find_ends(fold);

	for (uint32_t i = 0; i < fold->times->count; i++) {
		const struct model_step *step = &fold->model->steps[i];

		if (step->process != process || !fold->times->steps[i].is_measured ||
		    !fold->times->steps[i].is_complete || step->track >= fold->model->tracks_count)
			continue;
		add_window(fold, &(struct critical_window){.process = process,
		                                           .has_number = true,
		                                           .number = step->number,
		                                           .start_ns = step->start_ns,
		                                           .step_end_ns = step->end_ns,
		                                           .end_ns = ends[i]});
		walk_window(fold, step->track);
	}
	free(ends);
}

/* Without steps the whole process counts as one step. */
static void walk_process(struct critical_fold *fold, uint32_t number)
{
	const struct process *process = &fold->model->processes[number];
	uint32_t thread = critical_walk_main(&fold->walk);

	if (!process->has_times || thread == MODEL_NONE)
		return;
	add_window(fold, &(struct critical_window){.process = number,
	                                           .start_ns = process->first_ns,
	                                           .step_end_ns = process->last_ns,
	                                           .end_ns = process->last_ns});
	walk_window(fold, thread);
}

static void critical_path_fold_init(void *shared, struct analysis_context *context)
{
	struct critical_fold *fold = shared;
	const struct model *model = context->model;
	struct device *devices;
	size_t count = devices_find(&devices, model);

	*fold = (struct critical_fold){.context = context, .model = model, .by_key = {.storage = model->storage}};
	fold->times = analysis_context_step_times(context);
	fold->launches = analysis_context_launches(context);
	for (size_t i = 0; i < count; i++) {
		if (i && devices[i].process == devices[i - 1].process)
			continue;
		critical_walk_begin(&fold->walk, fold->context, devices[i].process);
		if (fold->times->count)
			walk_steps(fold, devices[i].process);
		else
			walk_process(fold, devices[i].process);
	}
	critical_walk_release(&fold->walk);
	fold->has_work = count > 0;
	free(devices);
}

static void critical_path_fold_release(void *shared)
{
	struct critical_fold *fold = shared;

	number_map_release(&fold->by_key);
	storage_release(fold->model->storage, fold->windows);
	storage_release(fold->model->storage, fold->groups);
}

static const struct analysis_fold shared_critical_path = {sizeof(struct critical_fold), critical_path_fold_init,
                                                          critical_path_fold_release};

static const char *critical_path_why_empty(const struct critical_fold *fold)
{
	return !fold->has_work      ? DEVICE_NOTHING
	       : fold->times->count ? step_times_empty_reason(fold->times)
	                            : "the trace has no launch of any device work";
}

/* ---- by part and name ---- */

enum {
	PATH_PART,
	PATH_NAME,
	PATH_MEAN,
	PATH_RATIO,
	PATH_TOTAL,
	PATH_PIECES,
	PATH_COLUMNS,
};

static const struct table_column path_columns[PATH_COLUMNS] = {
	[PATH_PART] = {.name = "part",
                       .type = TABLE_TEXT,
                       .role = ROLE_KEY,
                       .definition = "part of the path that all later work waited for; the columns of critical_steps "
                                     "describe the parts"},
	[PATH_NAME] = {.name = "name",
                       .type = TABLE_TEXT,
                       .role = ROLE_KEY,
                       .definition = "name of the kernel, copy, call, operator or range; for a launch, of the operator"},
	[PATH_MEAN] = {.name = "mean_ns",
                       .title = "mean",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "mean time on the critical path of a step, all processes",
                       .rules = RULE_NOT_NEGATIVE,
                       .more = MORE_SUM},
	[PATH_RATIO] = {.name = "ratio",
                        .title = "%",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = "share of the critical paths",
                        .denominator = "time from the start of each complete step to the end of its work",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE,
                        .more = MORE_SUM},
	[PATH_TOTAL] = {.name = "total_ns",
                        .title = "total",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "time on the critical paths of all steps; the rows sum to their length",
                        .rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL,
                        .more = MORE_SUM},
	[PATH_PIECES] = {.name = "pieces",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .role = ROLE_EVIDENCE,
                         .definition = "number of pieces of the paths",
                         .more = MORE_SUM},
};

static void add_group(struct table *table, const struct critical_fold *fold, const struct critical_group *group,
                      int64_t total_ns)
{
	int row = table_row(table);

	table_set_text(table, row, PATH_PART, parts[group->part].name);
	table_set_text_or(table, row, PATH_NAME, group->name ? model_text(fold->model, group->name) : NULL,
	                  "nothing was recorded");
	table_set_double(table, row, PATH_MEAN, (double)group->total_ns / (double)fold->count);
	table_set_double(table, row, PATH_RATIO, (double)group->total_ns / (double)total_ns);
	table_set_int(table, row, PATH_TOTAL, group->total_ns);
	table_set_int(table, row, PATH_PIECES, group->pieces);
}

static enum status run_path(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct critical_fold *fold = analysis_context_fold(context, &shared_critical_path);
	int64_t total_ns = 0;

	for (size_t i = 0; i < fold->count; i++)
		clamped_add(&total_ns, intervals_length(fold->windows[i].start_ns, fold->windows[i].end_ns));
	table_init(table, "critical_path", "Critical path of a step",
	           "activities that the steps had to wait for, one at each instant; a path goes from "
	           "the start of a step to the end of the work that it launched");
	table_columns_of(table, path_columns, PATH_COLUMNS, (double)total_ns);
	table_bound(table, PATH_TOTAL);
	for (uint32_t i = 0; i < fold->group_count; i++)
		add_group(table, fold, &fold->groups[i], total_ns);
	table_add_more(table, PATH_NAME);
	table_sort(table, PATH_NAME, true);
	table_sort(table, PATH_TOTAL, false);
	if (!table->row_count)
		table->empty = critical_path_why_empty(fold);
	table->note = fold->count && !fold->windows[0].has_number ? STEP_TIMES_ONE_NOTE : NULL;
	return STATUS_OK;
}

const struct analysis analysis_critical_path = {
	.name = "critical_path",
	.row = "part and name on the critical path",
	.question = "what does a step have to wait for?",
	.run = run_path,
	.is_of_devices = true,
};

/* ---- by step ---- */

enum {
	STEP_PROCESS,
	STEP_NUMBER,
	STEP_TIME,
	STEP_PATH,
	STEP_PIECES,
	STEP_COLUMNS,
	STEP_PARTS = STEP_COLUMNS,
};

static const struct table_column step_columns[STEP_COLUMNS] = {
	[STEP_PROCESS] = PROCESS_COLUMN,
	[STEP_NUMBER] = STEP_NUMBER_COLUMN,
	[STEP_TIME] = {.name = "step_ns",
                       .title = "step",
                       .type = TABLE_INT,
                       .unit = UNIT_NS,
                       .definition = "duration of the step",
                       .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                       .other = "path_ns"},
	[STEP_PATH] = {.name = "path_ns",
                       .title = "path",
                       .type = TABLE_INT,
                       .unit = UNIT_NS,
                       .definition = "from the start of the step to its end or to the end of the last work that it "
                                     "launched, whichever is later; the parts sum to it",
                       .rules = RULE_NOT_NEGATIVE},
	[STEP_PIECES] = {.name = "pieces",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .role = ROLE_EVIDENCE,
                         .definition = "number of pieces of the path",
                         .is_hidden = true},
};

static void add_step_columns(struct table *table)
{
	table_columns(table, step_columns, STEP_COLUMNS);
	for (int part = 0; part < PATH_PARTS; part++)
		table_column(table, &(struct table_column){.name = parts[part].column,
		                                           .title = parts[part].name,
		                                           .type = TABLE_INT,
		                                           .unit = UNIT_NS,
		                                           .definition = parts[part].meaning,
		                                           .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
		                                           .other = "path_ns"});
}

static void critical_path_add_step(struct table *table, const struct critical_fold *fold,
                                   const struct critical_window *window)
{
	int row = table_row(table);

	table_set_text(table, row, STEP_PROCESS, process_label(fold->model, window->process, &table->arena));
	if (window->has_number)
		table_set_int(table, row, STEP_NUMBER, window->number);
	else
		table_set_missing(table, row, STEP_NUMBER, STEP_TIMES_ONE_NOTE);
	table_set_int(table, row, STEP_TIME, intervals_length(window->start_ns, window->step_end_ns));
	table_set_int(table, row, STEP_PATH, intervals_length(window->start_ns, window->end_ns));
	table_set_int(table, row, STEP_PIECES, window->pieces);
	for (int part = 0; part < PATH_PARTS; part++)
		table_set_int(table, row, STEP_PARTS + part, window->parts_ns[part]);
}

static enum status run_steps(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct critical_fold *fold = analysis_context_fold(context, &shared_critical_path);

	table_init(table, "critical_steps", "Critical path of each step",
	           "activities that each complete step had to wait for, by part, from its start to the "
	           "end of the work that it launched");
	add_step_columns(table);
	table_keep_in(table, model->storage);
	for (size_t i = 0; i < fold->count; i++)
		critical_path_add_step(table, fold, &fold->windows[i]);
	if (!table->row_count)
		table->empty = critical_path_why_empty(fold);
	return STATUS_OK;
}

const struct analysis analysis_critical_steps = {
	.name = "critical_steps",
	.row = "step",
	.question = "what does each step have to wait for?",
	.run = run_steps,
	.is_of_devices = true,
};
