/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.c: the table `steps`, one row per step and process, its phases side by side. Summaries are in step_time.c.
 */
#include "analysis/analysis_context.h"
#include "analysis/operators/flop_counts.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_times.h"
#include "base/statistics.h"
#include "base/storage.h"
#include "model/reasons.h"

#include <math.h>
#include <stepscope/format.h>
#include <stepscope/stepscope.h>

enum {
	STEP_NUMBER,
	STEP_PROCESS,
	STEP_START,
	STEP_DURATION,
	STEP_LENGTH,
	STEP_DATA, /* the phases, in the order of enum stepscope_phase */
	STEP_OTHER = STEP_DATA + PHASE_COUNT - 1,
	STEP_CPU,
	STEP_PROCESSOR_WAIT,
	STEP_PROCESS_CPU,
	STEP_WAITS,
	STEP_PAGE_FAULTS,
	STEP_TOKENS,
	STEP_SAMPLES,
	STEP_FLOPS,
	STEP_UNCOUNTED,
	STEP_CAPTURE,
	STEP_DETAIL,
	STEP_RARE,
	STEP_PROGRAM,
	STEP_COMPLETE,
	STEP_OUTLIER,
	STEP_COLUMNS,
};

#define PHASE_COLUMN(phase, text)                                                                                      \
	{                                                                                                              \
		.name = phase "_ns", .title = phase, .type = TABLE_INT, .unit = UNIT_NS, .definition = text,           \
		.rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER, .other = "duration_ns"                                \
	}
#define INNERMOST "time of the step with the innermost phase "

static const struct table_column columns[STEP_COLUMNS] = {
	[STEP_NUMBER] = STEP_NUMBER_COLUMN,
	[STEP_PROCESS] = PROCESS_COLUMN,
	[STEP_START] = {.name = "start_ns",
                        .title = "start",
                        .type = TABLE_INT,
                        .unit = UNIT_NS_SINCE_START,
                        .definition = "start of the step, since the first known instant of its process",
                        .is_hidden = true},
	[STEP_DURATION] =
		{.name = "duration_ns",
                 .title = "duration",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition = "time from the start of the step to its end, or to the last known instant if the "
                               "step is incomplete",
                 .rules = RULE_NOT_NEGATIVE},
	[STEP_LENGTH] =
		{.name = "length_ns",
                 .title = "length",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "if the host runs ahead of the device: time from the end of the device's work "
                         "for the step before to the end of its work for this step (estimated if "
                         "the step before was not recorded); otherwise the duration. The table step_time, outliers and comparisons use it",
                 .rules = RULE_NOT_NEGATIVE,
                 .is_hidden = true},
	[STEP_DATA] = PHASE_COLUMN("data", INNERMOST "data"),
	[STEP_DATA + 1] = PHASE_COLUMN("forward", INNERMOST "forward"),
	[STEP_DATA + 2] = PHASE_COLUMN("backward", INNERMOST "backward"),
	[STEP_DATA + 3] = PHASE_COLUMN("optimizer", INNERMOST "optimizer"),
	[STEP_DATA + 4] = PHASE_COLUMN("communication", INNERMOST "communication"),
	[STEP_DATA + 5] = PHASE_COLUMN("checkpoint", INNERMOST "checkpoint"),
	[STEP_DATA + 6] = PHASE_COLUMN("evaluation", INNERMOST "evaluation"),
	[STEP_OTHER] = PHASE_COLUMN("other", "time of the step outside all phases of its thread"),
	[STEP_CPU] = {.name = "cpu_ns",
                      .title = "CPU time",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "CPU time of the step's thread, in the step; for the rest of the duration, the "
                                    "thread waited for data, a device or a processor",
                      .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                      .other = "duration_ns",
                      .is_hidden = true},
	[STEP_PROCESSOR_WAIT] =
		{.name = "wait_for_processor_ns",
                 .title = "wait for processor",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition = "time of the step in which its thread could run but other threads had the processors, "
                               "from the kernel's schedstat",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                 .other = "duration_ns",
                 .is_hidden = true},
	[STEP_PROCESS_CPU] = {.name = "process_cpu_ns",
                              .title = "process CPU time",
                              .type = TABLE_INT,
                              .unit = UNIT_NS,
                              .definition = "CPU time of all threads of the step's process, in the step; with several "
                                            "threads it may be larger than the duration",
                              .rules = RULE_NOT_NEGATIVE,
                              .is_hidden = true},
	[STEP_WAITS] = {.name = "waits",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "number of times that the thread stopped in the step to wait for a lock, a file, a "
                                      "pipe, a device or the like; if 0, all of the duration that is not CPU time was "
                                      "spent waiting for a processor",
                        .rules = RULE_NOT_NEGATIVE,
                        .is_hidden = true},
	[STEP_PAGE_FAULTS] =
		{.name = "page_faults",
                 .title = "page faults",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .definition = "page faults of the thread in the step that read nothing from disk, usually the "
                               "first access to memory that it got from the kernel; those of other threads do not "
                               "count",
                 .rules = RULE_NOT_NEGATIVE,
                 .is_hidden = true},
	[STEP_TOKENS] = {.name = "tokens",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .definition = "tokens that the program reported for the step"},
	[STEP_SAMPLES] = {.name = "samples",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "samples that the program reported for the step"},
	[STEP_FLOPS] =
		{.name = "flops",
                 .title = "FLOP",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_FLOP,
                 .definition = "floating point operations of the step's PyTorch operators, in all threads, by the "
                               "formulas of PyTorch's flop_counter, as in the table ops; operations that calls of "
                               "the program reported do not count",
                 .rules = RULE_NOT_NEGATIVE},
	[STEP_UNCOUNTED] =
		{.name = "uncounted_operators",
                 .title = "uncounted",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .role = ROLE_EVIDENCE,
                 .definition = "number of operators with a formula whose inputs or end were not recorded: flops "
                               "leaves them out",
                 .rules = RULE_NOT_NEGATIVE,
                 .is_hidden = true},
	[STEP_CAPTURE] =
		{.name = "capture",
                 .type = TABLE_TEXT,
                 .role = ROLE_EVIDENCE,
                 .definition = "action that the schedule requested at the start of the step: none, warmup, record, save"},
	[STEP_DETAIL] = {.name = "has_detail",
                         .title = "detail",
                         .type = TABLE_BOOL,
                         .role = ROLE_EVIDENCE,
                         .definition = "ranges and operations were recorded in the whole step"},
	[STEP_RARE] =
		{.name = "has_rare",
                 .title = "rare",
                 .type = TABLE_BOOL,
                 .role = ROLE_EVIDENCE,
                 .definition =
                         "rare events were recorded in the whole step: garbage collections, compilations, "
                         "torch.save and torch.load, the start and end of a loader's workers and the way of their batches",
                 .is_hidden = true},
	[STEP_PROGRAM] = {.name = "is_program",
                          .title = "program",
                          .type = TABLE_BOOL,
                          .role = ROLE_EVIDENCE,
                          .definition = "statistics of durations include the step: it is complete and, if operators were "
                                        "recorded in only some steps, has no operators"},
	[STEP_COMPLETE] = {.name = "is_complete",
                           .title = "complete",
                           .type = TABLE_BOOL,
                           .role = ROLE_EVIDENCE,
                           .definition = "the end of the step was recorded; only complete steps enter statistics"},
	[STEP_OUTLIER] = {.name = "is_outlier",
                          .title = "outlier",
                          .type = TABLE_BOOL,
                          .role = ROLE_EVIDENCE,
                          .definition = "longer than the process's median step by more than 5 * 1.4826 median absolute "
                                        "deviations and by at least 5 %"},
};

struct step_flops {
	const struct model *model;
	struct flop_sum *sums; /* by step */
	enum flops_result result;
};

static void use_flops(void *context, const struct flop_count *count)
{
	struct step_flops *flops = context;
	uint32_t index;
	int32_t step = track_chunk(flops->model->tracks[count->track], count->row, &index)->step[index];

	if (step >= 0 && (uint32_t)step < flops->model->steps_count)
		flop_sum_add(&flops->sums[step], count);
}

static void sum_flops(struct step_flops *flops, const struct model *model, const struct flop_likeness *likeness)
{
	flops->model = model;
	flops->sums = storage_resize(model->storage, NULL, (size_t)model->steps_count + 1, sizeof(*flops->sums));
	for (uint32_t i = 0; i < model->steps_count; i++)
		flops->sums[i] = (struct flop_sum){0};
	flops->result = flop_counts_each(model, likeness, use_flops, flops);
}

static void set_flops(struct table *table, int row, const struct step_flops *flops, uint32_t number)
{
	const struct model_step *step = &flops->model->steps[number];
	const struct flop_sum *sum = &flops->sums[number];
	const char *why = NULL;

	if (!step->has_detail)
		why = "not all of its operations were recorded";
	else if (!sum->counted || sum->lacking)
		why = flop_sum_missing(flops->model, sum);
	else if (sum->uncounted && !step->has_shapes)
		why = model_reason(flops->model, REASON_NO_SHAPES);
	if (why)
		table_set_missing(table, row, STEP_FLOPS, why);
	else
		table_set_double(table, row, STEP_FLOPS, sum->flops);
	if (step->has_detail)
		table_set_int(table, row, STEP_UNCOUNTED, sum->uncounted);
	else
		table_set_missing(table, row, STEP_UNCOUNTED, why);
}

static const char *capture_name(uint8_t capture)
{
	static const char *const names[] = {"none", "warmup", "record", "save"};

	return capture < sizeof(names) / sizeof(names[0]) ? names[capture] : "unknown";
}

/* Returns the duration above which a complete step of the process is an outlier; infinite with fewer than three
 * steps. */
static double outlier_limit(const struct step_times *times, const struct model *model, uint32_t process)
{
	double *values = storage_resize(model->storage, NULL, 2 * (size_t)times->count, sizeof(*values));
	double median, mad;
	size_t count = 0;

	for (uint32_t i = 0; i < times->count; i++) {
		if (model->steps[i].process == process && times->steps[i].is_program)
			values[count++] = (double)times->steps[i].length_ns;
	}
	if (count < 3) {
		storage_release(model->storage, values);
		return INFINITY;
	}
	median_and_mad(values, values + times->count, count, &median, &mad);
	storage_release(model->storage, values);
	return fmax(median + 5 * 1.4826 * mad, median * 1.05);
}

static void set_count(struct table *table, int row, int column, bool has_value, uint64_t value)
{
	if (has_value)
		table_set_int(table, row, column, (int64_t)value);
	else
		table_set_missing(table, row, column, "the program did not report any");
}

static int64_t int_that_fits(uint64_t value)
{
	return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* Returns why CPU time, waits or page faults of the step's thread are unknown. */
static const char *no_use(const struct model *model, const struct model_step *step)
{
	if (step->has_cpu)
		return "the recording is from a version that did not count them";
	if (step->is_inferred)
		return "the program did not mark the step";
	if (step->is_open)
		return "the step is incomplete";
	return model_reason(model, REASON_NO_THREAD_USE);
}

/* Returns why a reading of the step is missing. */
static const char *no_reading(const struct model *model, const struct model_step *step, enum step_reading reading)
{
	if (step->is_open)
		return "the step is incomplete";
	if (reading == STEP_READ_WAIT && step->readings & STEP_READ_CPU)
		return "not measured: this kernel does not count the thread's waits in /proc/thread-self/schedstat";
	return model_reason(model, REASON_NO_READINGS);
}

static void set_reading(struct table *table, int row, int column, const struct model *model,
                        const struct model_step *step, enum step_reading reading)
{
	int64_t value = reading == STEP_READ_WAIT ? step->processor_wait_ns : step->process_cpu_ns;

	if (step->readings & reading)
		table_set_int(table, row, column, value);
	else
		table_set_missing(table, row, column, no_reading(model, step, reading));
}

/* Sets CPU time, waits and page faults of the step's thread. Only the program's marks count waits and page faults. */
static void set_use(struct table *table, int row, const struct model *model, const struct model_step *step)
{
	const char *why = no_use(model, step);

	if (step->has_cpu) {
		table_set_int(table, row, STEP_CPU, step->cpu_ns);
		table_set_int(table, row, STEP_WAITS, int_that_fits(step->waits));
	} else {
		table_set_missing(table, row, STEP_WAITS, why);
		if (step->readings & STEP_READ_CPU)
			table_set_int(table, row, STEP_CPU, step->read_cpu_ns);
		else
			table_set_missing(table, row, STEP_CPU, no_reading(model, step, STEP_READ_CPU));
	}
	set_reading(table, row, STEP_PROCESSOR_WAIT, model, step, STEP_READ_WAIT);
	set_reading(table, row, STEP_PROCESS_CPU, model, step, STEP_READ_PROCESS);
	if (step->has_page_faults)
		table_set_int(table, row, STEP_PAGE_FAULTS, int_that_fits(step->page_faults));
	else
		table_set_missing(table, row, STEP_PAGE_FAULTS, why);
}

static void set_phases(struct table *table, int row, const struct step_time *time, const struct model_step *step)
{
	const char *why = step->has_lost_phases ? STEP_TIMES_LOST_PHASES : STEP_TIMES_UNTOLD_PHASES;

	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		int column = phase == PHASE_OTHER ? STEP_OTHER : STEP_DATA + phase - 1;

		if (time->knows_all || (time->has_calls && step_times_is_told_by_calls(phase)))
			table_set_int(table, row, column, time->phase_ns[phase]);
		else
			table_set_missing(table, row, column, why);
	}
}

static void steps_add_row(struct table *table, struct labels *labels, const struct step_time *time,
                          const struct model_step *step, double limit_ns)
{
	int row = table_row(table);
	const struct process *process = &labels->model->processes[step->process];

	table_set_int(table, row, STEP_NUMBER, step->number);
	table_set_lasting_text(table, row, STEP_PROCESS, labels_process(labels, step->process));
	table_set_int(table, row, STEP_START, step->start_ns - process->origin_ns);
	table_set_int(table, row, STEP_DURATION, time->dur_ns);
	table_set_int(table, row, STEP_LENGTH, time->length_ns);
	set_phases(table, row, time, step);
	set_use(table, row, labels->model, step);
	set_count(table, row, STEP_TOKENS, step->has_tokens, step->tokens);
	set_count(table, row, STEP_SAMPLES, step->has_samples, step->samples);
	table_set_text(table, row, STEP_CAPTURE, capture_name(step->capture));
	table_set_bool(table, row, STEP_DETAIL, step->has_detail);
	table_set_bool(table, row, STEP_RARE, step->has_detail || step->has_rare);
	table_set_bool(table, row, STEP_PROGRAM, time->is_program);
	table_set_bool(table, row, STEP_COMPLETE, time->is_complete);
	if (!time->is_complete)
		table_set_missing(table, row, STEP_OUTLIER, "the step is incomplete");
	else if (!time->is_program)
		table_set_missing(table, row, STEP_OUTLIER, "operators were recorded in it, which takes extra time");
	else
		table_set_bool(table, row, STEP_OUTLIER, (double)time->length_ns > limit_ns);
}

/* Hides phases in which no step spent time: they would only make the rows wide. */
static void hide_empty_phases(struct table *table)
{
	const char *list = NULL;

	for (int column = STEP_DATA; column < STEP_OTHER && table->row_count; column++) {
		bool is_empty = true;

		for (int row = 0; row < table->row_count && is_empty; row++)
			is_empty = table_get(table, row, column)->i == 0;
		if (!is_empty)
			continue;
		table->columns[column].is_hidden = true;
		list = arena_printf(&table->arena, "%s%s%s", list ? list : "", list ? ", " : "",
		                    table->columns[column].title);
	}
	if (list)
		table->note = arena_printf(&table->arena, "no step spent time in: %s", list);
}

static enum status steps_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	uint32_t process = MODEL_NONE;
	struct step_flops flops;
	struct labels labels;
	double limit_ns = INFINITY;

	sum_flops(&flops, model, analysis_context_flop_likeness(context));
	table_init(table, "steps", "Steps", "one row per step and process; the phases sum to the duration");
	table_columns(table, columns, STEP_COLUMNS);
	table_keep_in(table, model->storage);
	labels_init(&labels, model, &table->arena);
	for (uint32_t i = 0; i < times->count; i++) {
		if (!times->steps[i].is_selected)
			continue;
		if (model->steps[i].process != process) {
			process = model->steps[i].process;
			limit_ns = outlier_limit(times, model, process);
		}
		steps_add_row(table, &labels, &times->steps[i], &model->steps[i], limit_ns);
		set_flops(table, table->row_count - 1, &flops, i);
	}
	labels_release(&labels);
	hide_empty_phases(table);
	table->columns[STEP_LENGTH].is_hidden = !times->has_device_lengths;
	table->columns[STEP_PROGRAM].is_hidden = !times->has_plain;
	table->columns[STEP_FLOPS].is_hidden = flops.result != FLOPS_KNOWN;
	storage_release(model->storage, flops.sums);
	if (!table->row_count)
		table->empty = step_times_empty_reason(times);
	return STATUS_OK;
}

const struct analysis analysis_steps = {
	.name = "steps",
	.row = "step and process",
	.question = "how long did each step and its phases take?",
	.run = steps_run,
};
