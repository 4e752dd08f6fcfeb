/* SPDX-License-Identifier: Apache-2.0
 *
 * step_breakdown.c: the tables `step_breakdown` and `step_parts`: the parts of the time of a step with a device. An
 * instant belongs to the first part that applies, so the parts sum to the step. Parts are activities of the device or,
 * if it is idle, the reasons.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_parts.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_times.h"
#include "base/clamped.h"
#include "base/storage.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct breakdown_window { /* a step, or a process without steps */
	uint32_t process;
	bool has_number;
	int64_t number, start_ns, end_ns;
	int64_t parts_ns[PARTS];
};

struct breakdown_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	const struct step_times *times;
	struct device_parts parts;
	struct breakdown_window *windows;
	size_t count, capacity;
	bool has_work;
};

/* ---- steps ---- */

static void add_window(struct breakdown_fold *fold, const struct breakdown_window *window)
{
	struct breakdown_window *added;

	STORAGE_GROW(fold->model->storage, fold->windows, fold->count, fold->capacity, 64);
	added = &fold->windows[fold->count++];
	*added = *window;
	device_parts_within(&fold->parts, window->start_ns, window->end_ns, added->parts_ns);
}

static void add_windows(struct breakdown_fold *fold, uint32_t process)
{
	const struct model *model = fold->model;

	for (uint32_t i = 0; i < fold->times->count; i++) {
		const struct model_step *step = &model->steps[i];

		if (step->process == process && fold->times->steps[i].is_measured && fold->times->steps[i].is_complete)
			add_window(fold, &(struct breakdown_window){.process = process,
			                                            .has_number = true,
			                                            .number = step->number,
			                                            .start_ns = step->start_ns,
			                                            .end_ns = step->end_ns});
	}
	if (!fold->times->count && model->processes[process].has_times)
		add_window(fold, &(struct breakdown_window){.process = process,
		                                            .start_ns = model->processes[process].first_ns,
		                                            .end_ns = model->processes[process].last_ns});
}

static void step_breakdown_fold_init(void *shared, struct analysis_context *context)
{
	struct breakdown_fold *fold = shared;
	const struct model *model = context->model;
	struct device *devices;
	size_t count = devices_find(&devices, model);

	*fold = (struct breakdown_fold){.context = context, .model = model};
	fold->times = analysis_context_step_times(context);
	fold->launches = analysis_context_launches(context);
	for (size_t i = 0; i < count; i++) {
		if (i && devices[i].process == devices[i - 1].process)
			continue;
		device_parts_find(&fold->parts, fold->context, devices[i].process, DEVICE_ANY);
		add_windows(fold, devices[i].process);
	}
	fold->has_work = fold->parts.work.count > 0;
	device_parts_release(&fold->parts);
	free(devices);
}

static void step_breakdown_fold_release(void *shared)
{
	struct breakdown_fold *fold = shared;

	storage_release(fold->model->storage, fold->windows);
}

static const struct analysis_fold shared_breakdown = {sizeof(struct breakdown_fold), step_breakdown_fold_init,
                                                      step_breakdown_fold_release};

static const char *step_breakdown_why_empty(const struct breakdown_fold *fold)
{
	return fold->has_work ? step_times_empty_reason(fold->times) : DEVICE_NOTHING;
}

/* ---- the table of parts ---- */

enum {
	BREAKDOWN_PART,
	BREAKDOWN_MEAN,
	BREAKDOWN_RATIO,
	BREAKDOWN_TOTAL,
	BREAKDOWN_MEANING,
	BREAKDOWN_MOST,
	BREAKDOWN_MOST_MEAN,
	BREAKDOWN_MOST_RATIO,
	BREAKDOWN_GAIN,
	BREAKDOWN_WHOLE,
	BREAKDOWN_COLUMNS,
};

static const struct table_column breakdown_columns[BREAKDOWN_COLUMNS] = {
	[BREAKDOWN_PART] = {.name = "part",
                            .type = TABLE_TEXT,
                            .role = ROLE_KEY,
                            .definition = "use of the time; an instant belongs to the first part that applies"},
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
	[BREAKDOWN_MEANING] = {.name = "meaning",
                               .type = TABLE_TEXT,
                               .definition = "condition for an instant to belong to the part"},
	[BREAKDOWN_MOST] = {.name = "most_process",
                            .type = TABLE_TEXT,
                            .definition = "rank or pid in whose steps the part has the largest share",
                            .is_hidden = true},
	[BREAKDOWN_MOST_MEAN] = {.name = "most_ns",
                                 .type = TABLE_DOUBLE,
                                 .unit = UNIT_NS,
                                 .definition = "mean time per step of that process",
                                 .rules = RULE_NOT_NEGATIVE,
                                 .is_hidden = true},
	[BREAKDOWN_MOST_RATIO] = {.name = "most_ratio",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_SHARE,
                                  .definition = "share of the time of the steps of that process",
                                  .denominator = "time of its complete steps",
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE,
                                  .is_hidden = true},
	[BREAKDOWN_GAIN] =
		{.name = "gain_ns",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition = "how much shorter the mean step would be without this part. If processes wait for "
                               "each other (exposed communication), how much shorter the longest mean time outside "
                               "communication would be; otherwise mean_ns",
                 .rules = RULE_NOT_NEGATIVE,
                 .is_hidden = true},
	[BREAKDOWN_WHOLE] = {.name = "whole",
                             .type = TABLE_TEXT,
                             .definition = "whole that the parts divide: a step, or the whole trace if it has no steps",
                             .is_hidden = true},
};

struct process_parts { /* its windows are [first, end) */
	size_t first, end;
	double steps_ns, own_ns; /* means: of the steps, and of the steps without exposed communication */
};

static double mean_part(const struct breakdown_fold *fold, const struct process_parts *of, int part)
{
	double sum_ns = 0;

	assert(of->first < of->end && of->end <= fold->count);

	for (size_t i = of->first; i < of->end; i++)
		sum_ns += (double)fold->windows[i].parts_ns[part];
	return sum_ns / (double)(of->end - of->first);
}

static struct process_parts next_process(const struct breakdown_fold *fold, size_t first)
{
	struct process_parts of = {.first = first, .end = first};

	assert(first < fold->count);

	for (; of.end < fold->count && fold->windows[of.end].process == fold->windows[first].process; of.end++)
		of.steps_ns += (double)intervals_length(fold->windows[of.end].start_ns, fold->windows[of.end].end_ns);
	of.steps_ns /= (double)(of.end - first);
	of.own_ns = of.steps_ns - mean_part(fold, &of, PART_COMMUNICATION);
	return of;
}

/* Names the process with the largest share of a part: with several ranks, one such rank would vanish in the mean. */
static void set_processes(struct table *table, int row, const struct breakdown_fold *fold, int part)
{
	double most = -1, most_ns = 0, longest_ns = 0, longest_without_ns = 0, waits_ns = 0;
	uint32_t process = 0;

	for (size_t first = 0; first < fold->count;) {
		struct process_parts of = next_process(fold, first);
		double mean_ns = mean_part(fold, &of, part), ratio = of.steps_ns > 0 ? mean_ns / of.steps_ns : 0;

		if (ratio > most)
			process = fold->windows[first].process, most = ratio, most_ns = mean_ns;
		longest_ns = fmax(longest_ns, of.own_ns);
		longest_without_ns = fmax(longest_without_ns, of.own_ns - mean_ns);
		waits_ns += of.steps_ns - of.own_ns;
		first = of.end;
	}
	table_set_text(table, row, BREAKDOWN_MOST, process_label(fold->model, process, &table->arena));
	table_set_double(table, row, BREAKDOWN_MOST_MEAN, most_ns);
	table_set_double(table, row, BREAKDOWN_MOST_RATIO, fmin(most, 1));
	table_set_double(table, row, BREAKDOWN_GAIN,
	                 waits_ns > 0 && part != PART_COMMUNICATION ? longest_ns - longest_without_ns
	                                                            : table_get(table, row, BREAKDOWN_MEAN)->d);
}

static void add_part_rows(struct table *table, const struct breakdown_fold *fold, int64_t total_ns)
{
	for (int part = 0; part < PARTS; part++) {
		int64_t sum_ns = 0;
		int row = table_row(table);

		for (size_t i = 0; i < fold->count; i++)
			clamped_add(&sum_ns, fold->windows[i].parts_ns[part]);
		table_set_text(table, row, BREAKDOWN_PART, device_part_texts[part].name);
		table_set_text(table, row, BREAKDOWN_MEANING, device_part_texts[part].meaning);
		table_set_text(table, row, BREAKDOWN_WHOLE, fold->times->count ? "a step" : "the whole trace");
		table_set_int(table, row, BREAKDOWN_TOTAL, sum_ns);
		table_set_double(table, row, BREAKDOWN_MEAN, (double)sum_ns / (double)fold->count);
		if (total_ns > 0)
			table_set_double(table, row, BREAKDOWN_RATIO, (double)sum_ns / (double)total_ns);
		else
			table_set_missing(table, row, BREAKDOWN_RATIO, "the steps took no time");
		set_processes(table, row, fold, part);
	}
}

static enum status run_breakdown(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct breakdown_fold *fold = analysis_context_fold(context, &shared_breakdown);
	int64_t total_ns = 0;

	for (size_t i = 0; i < fold->count; i++)
		clamped_add(&total_ns, intervals_length(fold->windows[i].start_ns, fold->windows[i].end_ns));
	table_init(table, "step_breakdown", "Where a step goes, seen from the device",
	           "time of the complete steps of processes with a device, by activity of the device or "
	           "by the reason why it is idle");
	table_columns_of(table, breakdown_columns, BREAKDOWN_COLUMNS, (double)total_ns);
	if (fold->count)
		add_part_rows(table, fold, total_ns);
	else
		table->empty = step_breakdown_why_empty(fold);
	table->note = fold->count && !fold->windows[0].has_number ? STEP_TIMES_ONE_NOTE : NULL;
	return STATUS_OK;
}

const struct analysis analysis_step_breakdown = {
	.name = "step_breakdown",
	.row = "part of a step",
	.question = "where does the time of a step go, seen from the device?",
	.run = run_breakdown,
	.is_of_devices = true,
};

/* ---- the table of steps ---- */

enum {
	STEP_PROCESS,
	STEP_NUMBER,
	STEP_TIME,
	STEP_PARTS,
};

static void add_step_columns(struct table *table)
{
	table_column(table, &(struct table_column)PROCESS_COLUMN);
	table_column(table, &(struct table_column)STEP_NUMBER_COLUMN);
	table_column(table, &(struct table_column){.name = "step_ns",
	                                           .title = "step",
	                                           .type = TABLE_INT,
	                                           .unit = UNIT_NS,
	                                           .definition = "duration of the step; the parts sum to it",
	                                           .rules = RULE_NOT_NEGATIVE});
	for (int part = 0; part < PARTS; part++)
		table_column(table, &(struct table_column){.name = device_part_texts[part].column,
		                                           .title = device_part_texts[part].name,
		                                           .type = TABLE_INT,
		                                           .unit = UNIT_NS,
		                                           .definition = device_part_texts[part].meaning,
		                                           .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
		                                           .other = "step_ns"});
}

static enum status run_parts(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct breakdown_fold *fold = analysis_context_fold(context, &shared_breakdown);

	table_init(table, "step_parts", "Steps by device activity",
	           "complete steps of processes with a device, divided into the parts of the table "
	           "step_breakdown");
	add_step_columns(table);
	table_keep_in(table, model->storage);
	for (size_t i = 0; i < fold->count; i++) {
		const struct breakdown_window *window = &fold->windows[i];
		int row = table_row(table);

		table_set_text(table, row, STEP_PROCESS, process_label(model, window->process, &table->arena));
		if (window->has_number)
			table_set_int(table, row, STEP_NUMBER, window->number);
		else
			table_set_missing(table, row, STEP_NUMBER, STEP_TIMES_ONE_NOTE);
		table_set_int(table, row, STEP_TIME, intervals_length(window->start_ns, window->end_ns));
		for (int part = 0; part < PARTS; part++)
			table_set_int(table, row, STEP_PARTS + part, window->parts_ns[part]);
	}
	if (!fold->count)
		table->empty = step_breakdown_why_empty(fold);
	return STATUS_OK;
}

const struct analysis analysis_step_parts = {
	.name = "step_parts",
	.row = "step",
	.question = "where does the time of each step go, seen from the device?",
	.run = run_parts,
	.is_of_devices = true,
};
