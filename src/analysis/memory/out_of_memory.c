/* SPDX-License-Identifier: Apache-2.0
 *
 * out_of_memory.c: the table `out_of_memory`: processes that ended because there was no memory, and how their memory
 * grew before. From the exception that ended Python, from kills by the kernel, and from memory snapshots.
 */
#include "analysis/analysis_context.h"
#include "analysis/machine/processes.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/memory/memory_trend.h"
#include "analysis/shared/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	OOM_PROCESS,
	OOM_DEVICE,
	OOM_HOW,
	OOM_WHAT,
	OOM_LINE,
	OOM_STEP,
	OOM_ASKED,
	OOM_LIMIT,
	OOM_SOURCE,
	OOM_CATEGORY,
	OOM_GROWTH,
	OOM_SINCE,
	OOM_LEVEL,
	OOM_LIMIT_STEP,
	OOM_COLUMNS,
};

static const struct table_column columns[OOM_COLUMNS] = {
	[OOM_PROCESS] = PROCESS_COLUMN,
	[OOM_DEVICE] = MEMORY_DEVICE_COLUMN,
	[OOM_HOW] = {.name = "how",
                     .type = TABLE_TEXT,
                     .definition =
                             "exception: it ended Python; control group, kernel: the kernel killed the process at the "
                             "limit of its control group, or because the machine was full; allocator: the last request "
                             "in a memory snapshot failed"},
	[OOM_WHAT] = {.name = "what", .type = TABLE_TEXT, .definition = "exception and its message"},
	[OOM_LINE] = {.name = "failing_line",
                      .type = TABLE_TEXT,
                      .definition = "innermost line of the user's own program at the failure"},
	[OOM_STEP] = {.name = "step",
                      .type = TABLE_INT,
                      .definition = "number of the last step that the process started"},
	[OOM_ASKED] = {.name = "asked_bytes",
                       .title = "asked for",
                       .type = TABLE_INT,
                       .unit = UNIT_BYTES,
                       .definition = "requested bytes that did not fit"},
	[OOM_LIMIT] =
		{.name = "memory_limit_bytes",
                 .title = "limit",
                 .type = TABLE_INT,
                 .unit = UNIT_BYTES,
                 .definition =
                         "memory that the process could have: of the device, the control group or the machine; or the addresses that it could have (ulimit -v)"},
	[OOM_SOURCE] = {.name = "growth_source",
                        .type = TABLE_TEXT,
                        .role = ROLE_EVIDENCE,
                        .definition = "source of the growth: allocations, or samples of the resident memory"},
	[OOM_CATEGORY] = {.name = "growing_category",
                          .type = TABLE_TEXT,
                          .definition = "category of memory that grows most, see the table memory"},
	[OOM_GROWTH] = {.name = "end_growth_bytes_per_step",
                        .title = "growth per step",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_BYTES,
                        .definition = "slope of the bytes at the ends of steps, over the last half of the steps"},
	[OOM_SINCE] = {.name = "since_step",
                       .title = "since step",
                       .type = TABLE_INT,
                       .definition = "first step from which on memory grows by that much"},
	[OOM_LEVEL] = {.name = "last_bytes",
                       .title = "at last step",
                       .type = TABLE_INT,
                       .unit = UNIT_BYTES,
                       .definition = "bytes at the last known end of a step",
                       .rules = RULE_NOT_NEGATIVE},
	[OOM_LIMIT_STEP] = {.name = "limit_step",
                            .title = "limit allows step",
                            .type = TABLE_INT,
                            .definition = "last step that the limit allows at this rate"},
};

/* One end. */
struct oom {
	uint32_t process;
	int16_t device;
	const char *how, *what, *line;                /* what, line: NULL: unknown */
	int64_t asked_bytes, limit_bytes, used_bytes; /* used_bytes: of the limit, if not the level of memory */
	bool has_asked, has_limit, has_used;
	const char *no_limit; /* why it has none */
};

/* ---- counters of the machine ---- */

static bool oom_has_name(const struct model *model, const struct value_series *series, const char *name)
{
	const char *text = model_text(model, series->name);
	size_t length = strlen(text), end = strlen(name);

	return length >= end && !strcmp(text + length - end, name);
}

/* Returns how often the counter rose; *most: its largest value. */
static double oom_rise_of(const struct model *model, const char *name, double *most)
{
	double rise = 0;

	*most = 0;
	for (uint32_t i = 0; i < model->series_count; i++) {
		const struct value_series *series = model->series[i];

		if (!series->count || !oom_has_name(model, series, name))
			continue;
		for (uint32_t k = 0; k < series->count; k++)
			*most = fmax(*most, series->value[k]);
		rise = fmax(rise, series->value[series->count - 1] - series->value[0]);
	}
	return rise;
}

/* Returns true if `stepscope run` saw the kernel kill for memory; its last look is after the last sample. */
static bool oom_has_noted_kills(const struct model *model)
{
	const char *kills = model_meta(model, MODEL_NONE, "oom_kills");

	return kills && strtoll(kills, NULL, 10) > 0;
}

/* A process shares pages with others, so its resident memory does not tell how much the limit left. */
static void oom_set_limit(struct oom *oom, const struct model *model, const char *counter, const char *used)
{
	double most;

	(void)oom_rise_of(model, used, &most);
	oom->has_used = most > 0 && most < 1e18;
	oom->used_bytes = oom->has_used ? (int64_t)most : 0;
	(void)oom_rise_of(model, counter, &most);
	oom->has_limit = most > 0 && most < 1e18;
	oom->limit_bytes = oom->has_limit ? (int64_t)most : 0;
	oom->no_limit = "the limit was not recorded";
}

/* ---- ends ---- */

static bool oom_is_kill(struct oom *oom, const struct model *model)
{
	const char *signal = process_signal(model, oom->process);
	double most;

	if (!signal || strcmp(signal, "SIGKILL") != 0)
		return false;
	if (oom_rise_of(model, "cgroup.memory_oom_kills", &most) > 0) {
		oom->how = CELL_OOM_GROUP;
		oom_set_limit(oom, model, "cgroup.memory_limit_bytes", "cgroup.memory_working_set_bytes");
		return true;
	}
	oom->how = CELL_OOM_KERNEL;
	oom_set_limit(oom, model, "memory.total_bytes", "memory.used_bytes");
	return oom_rise_of(model, "memory.oom_kills", &most) > 0 || oom_has_noted_kills(model);
}

/* "torch.OutOfMemoryError: CUDA out of memory. ..." */
static bool oom_is_of_device(const char *what)
{
	static const char *const names[] = {"CUDA", "HIP", "XPU", "NPU", "MPS", "cuda", "hip"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(what, names[i]))
			return true;
	return false;
}

/* Returns the device of the process whose memory was recorded; 0 if there is none. */
static int16_t oom_device_of(const struct model *model, uint32_t process)
{
	for (uint32_t i = 0; i < model->memory_count; i++)
		if (model->memory[i].process == process && model->memory[i].device >= 0)
			return model->memory[i].device;
	return 0;
}

static bool oom_fact(const struct model *model, uint32_t process, const char *key, int64_t *value)
{
	const char *text = model_meta(model, process, key);

	*value = text ? strtoll(text, NULL, 10) : 0;
	return *value > 0;
}

static bool oom_is_exception(struct oom *oom, const struct model *model)
{
	oom->what = model_meta(model, oom->process, "out_of_memory");
	oom->line = model_meta(model, oom->process, "out_of_memory.line");
	if (!oom->what)
		return false;
	oom->how = CELL_OOM_EXCEPTION;
	oom->device = oom_is_of_device(oom->what) ? oom_device_of(model, oom->process) : -1;
	oom->no_limit = "the limit was not recorded";
	oom->has_asked = oom_fact(model, oom->process, "out_of_memory.asked_bytes", &oom->asked_bytes);
	oom->has_limit = oom_fact(model, oom->process, "out_of_memory.limit_bytes", &oom->limit_bytes);
	oom->has_used = oom_fact(model, oom->process, "out_of_memory.used_bytes", &oom->used_bytes);
	return true;
}

/* ---- rows ---- */

static void oom_set_step(struct table *table, int row, const struct model *model, uint32_t process)
{
	table_set_missing(table, row, OOM_STEP, "no steps were recorded");
	for (uint32_t i = 0; i < model->steps_count; i++)
		if (model->steps[i].process == process)
			table_set_int(table, row, OOM_STEP, model->steps[i].number);
}

static void oom_set_text(struct table *table, int row, int column, const char *text, const char *reason)
{
	if (text)
		table_set_text(table, row, column, text);
	else
		table_set_missing(table, row, column, reason);
}

static void oom_set_trend(struct table *table, int row, const struct oom *oom, const struct memory_trend *trend)
{
	const char *unknown = trend->unknown ? trend->unknown : "memory does not grow from step to step";
	double left;

	for (int column = OOM_SOURCE; column <= OOM_LIMIT_STEP; column++)
		table_set_missing(table, row, column, unknown);
	if (trend->unknown)
		return;
	table_set_text(table, row, OOM_SOURCE, trend->is_resident ? CELL_OOM_RESIDENT : CELL_OOM_ALLOCATIONS);
	table_set_int(table, row, OOM_LEVEL, (int64_t)trend->last_bytes);
	if (!trend->is_growing)
		return;
	table_set_double(table, row, OOM_GROWTH, trend->bytes_per_step);
	table_set_int(table, row, OOM_SINCE, trend->since_step);
	oom_set_text(table, row, OOM_CATEGORY,
	             trend->category < MEMORY_CATEGORIES ? memory_category_name(trend->category) : NULL,
	             "allocations were not recorded: record with --with memory");
	left = (double)oom->limit_bytes - (oom->has_used ? (double)oom->used_bytes : trend->last_bytes);
	left /= trend->bytes_per_step;
	if (oom->has_limit && left >= 0 && left < 1e9)
		table_set_int(table, row, OOM_LIMIT_STEP, trend->last_step + (int64_t)left);
	else
		table_set_missing(table, row, OOM_LIMIT_STEP,
		                  oom->has_limit ? "more was in use than the limit allows" : oom->no_limit);
}

static void oom_add_row(struct table *table, const struct model *model, const struct oom *oom,
                        struct memory_trends *trends)
{
	const struct memory_trend trend = memory_trends_of(trends, oom->process, oom->device);
	int row = table_row(table);

	table_set_text(table, row, OOM_PROCESS, process_label(model, oom->process, &table->arena));
	table_set_text(table, row, OOM_DEVICE, memory_device_name(&table->arena, oom->device));
	table_set_text(table, row, OOM_HOW, oom->how);
	oom_set_text(table, row, OOM_WHAT, oom->what, "no exception was recorded");
	oom_set_text(table, row, OOM_LINE, oom->line, "no line was recorded");
	oom_set_step(table, row, model, oom->process);
	table_set_missing(table, row, OOM_ASKED, "the size of the request was not recorded");
	table_set_missing(table, row, OOM_LIMIT, oom->no_limit);
	if (oom->has_asked)
		table_set_int(table, row, OOM_ASKED, oom->asked_bytes);
	if (oom->has_limit)
		table_set_int(table, row, OOM_LIMIT, oom->limit_bytes);
	oom_set_trend(table, row, oom, &trend);
}

/* ---- snapshots ---- */

static bool oom_number(const struct table *failures, int row, const char *column, int64_t *value)
{
	double number;

	if (!table_number(failures, row, table_find_column(failures, column), &number))
		return false;
	*value = (int64_t)number;
	return true;
}

/* Finds the process and the device of a failure by their labels. */
static bool oom_find_place(struct oom *oom, const struct model *model, const struct table *failures, int row,
                           struct arena *arena)
{
	const char *process = table_text(failures, row, table_find_column(failures, "process")),
		   *device = table_text(failures, row, table_find_column(failures, "device"));

	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *track = model->tracks[i];

		if (track->device < 0 || strcmp(process_label(model, track->process, arena), process) != 0 ||
		    strcmp(memory_device_name(arena, (int16_t)track->device), device) != 0)
			continue;
		oom->process = track->process;
		oom->device = (int16_t)track->device;
		return true;
	}
	return false;
}

/* Returns true if the device has a later failure. */
static bool oom_has_later(const struct table *failures, int row)
{
	int process = table_find_column(failures, "process"), device = table_find_column(failures, "device");

	for (int later = row + 1; later < failures->row_count; later++)
		if (!strcmp(table_text(failures, later, process), table_text(failures, row, process)) &&
		    !strcmp(table_text(failures, later, device), table_text(failures, row, device)))
			return true;
	return false;
}

static void oom_add_failures(struct table *table, struct analysis_context *context, struct memory_trends *trends)
{
	struct table failures;
	struct error err = {0};

	if (!context->model->segments_count)
		return;
	if (analysis_find("memory_failures")->run(context, &failures, &err) == STATUS_OK) {
		int is_last = table_find_column(&failures, "is_last");

		for (int row = 0; row < failures.row_count; row++) {
			struct oom oom = {.how = CELL_OOM_ALLOCATOR, .no_limit = "the limit was not recorded"};

			if (!table_get(&failures, row, is_last)->b || oom_has_later(&failures, row) ||
			    !oom_find_place(&oom, context->model, &failures, row, &table->arena))
				continue;
			oom.line = table_text(&failures, row, table_find_column(&failures, "line"));
			oom.has_asked = oom_number(&failures, row, "asked_bytes", &oom.asked_bytes);
			oom.has_limit = oom_number(&failures, row, "limit_bytes", &oom.limit_bytes);
			oom_add_row(table, context->model, &oom, trends);
		}
	}
	table_release(&failures);
}

static enum status out_of_memory_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct memory_trends trends;

	table_init(table, "out_of_memory", "Ended out of memory",
	           "processes that ended because there was no memory, and the growth of their memory before");
	table_columns(table, columns, OOM_COLUMNS);
	memory_trends_init(&trends, context);
	for (uint32_t i = 0; i < model->processes_count; i++) {
		struct oom oom = {.process = i, .device = -1};

		if (model->processes[i].role != STEPSCOPE_ROLE_HOST &&
		    (oom_is_exception(&oom, model) || oom_is_kill(&oom, model)))
			oom_add_row(table, model, &oom, &trends);
	}
	oom_add_failures(table, context, &trends);
	memory_trends_release(&trends);
	if (!table->row_count)
		table->empty = "no process is known to have run out of memory";
	return STATUS_OK;
}

const struct analysis analysis_out_of_memory = {
	.name = "out_of_memory",
	.row = "process that ended out of memory",
	.question = "which processes ended because there was no memory, and what grew?",
	.run = out_of_memory_run,
	.with_past = true,
};
