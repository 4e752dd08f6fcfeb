/* SPDX-License-Identifier: Apache-2.0
 *
 * mfu.c: the table `mfu`: the floating point operations of the steps, divided by the peak of the devices in that time.
 * Operations come from the sizes of inputs (flop_counts.h), the peak from device_peaks.c. The table shows both,
 * because tools disagree on both.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_peaks.h"
#include "analysis/devices/device_use.h"
#include "analysis/devices/device_work.h"
#include "analysis/operators/flop_counts.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_times.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "model/device_names.h"
#include "model/operator_inputs.h"
#include "model/reasons.h"
#include "pytorch/types.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	MFU_PROCESS,
	MFU_DEVICE,
	MFU_ELEMENTS,
	MFU_FLOPS,
	MFU_TIME,
	MFU_RATE,
	MFU_KERNELS,
	MFU_KERNEL_RATE,
	MFU_TENSOR_CORES,
	MFU_PEAK,
	MFU_RATIO,
	MFU_KERNEL_RATIO,
	MFU_SOURCE,
	MFU_COLUMNS,
};

static const struct table_column columns[MFU_COLUMNS] = {
	[MFU_PROCESS] = PROCESS_COLUMN,
	[MFU_DEVICE] = {.name = "device_name",
                        .title = "device",
                        .type = TABLE_TEXT,
                        .role = ROLE_KEY,
                        .definition = "name of the process's device, with the number of devices if it uses several"},
	[MFU_ELEMENTS] = {.name = "elements",
                          .type = TABLE_TEXT,
                          .role = ROLE_KEY,
                          .definition = "element type of the operators' first tensor; all: sum over all types"},
	[MFU_FLOPS] = {.name = "flops",
                       .title = "FLOP",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_FLOP,
                       .definition = "floating point operations of the operators in the measured steps, by the formulas "
                                     "of PyTorch's flop_counter, including recomputation by checkpoints. Missing if "
                                     "operators whose inputs do not give the number take over 5 % of the kernel time",
                       .rules = RULE_NOT_NEGATIVE},
	[MFU_TIME] = {.name = "measured_ns",
                      .title = "time",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "duration of these steps, or of the process if no steps are marked",
                      .rules = RULE_NOT_NEGATIVE},
	[MFU_RATE] = {.name = "flops_per_s",
                      .title = "FLOP/s",
                      .type = TABLE_DOUBLE,
                      .unit = UNIT_FLOP_PER_SECOND,
                      .definition = "flops divided by measured_ns"},
	[MFU_KERNELS] = {.name = "kernel_ns",
                         .title = "kernels",
                         .type = TABLE_INT,
                         .unit = UNIT_NS,
                         .definition = "total duration of the kernels that these operators launched",
                         .rules = RULE_NOT_NEGATIVE},
	[MFU_KERNEL_RATE] = {.name = "kernel_flops_per_s",
                             .title = "FLOP/s in kernels",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_FLOP_PER_SECOND,
                             .definition = "flops divided by kernel_ns"},
	[MFU_TENSOR_CORES] =
		{.name = "tensor_core_ratio",
                 .title = "tensor cores",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition = "share of kernel_ns in tensor-core kernels, recognized by name. Not measured if the "
                               "names of more than a twentieth of the time do not tell",
                 .denominator = "kernel_ns",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[MFU_PEAK] =
		{.name = "peak_flops_per_s",
                 .title = "peak",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_FLOP_PER_SECOND,
                 .definition = "dense peak rate of the devices for this element type. float32 is compared with TF32 "
                               "if more than half of kernel_ns ran on tensor cores; other types are always compared "
                               "with tensor cores"},
	[MFU_RATIO] = {.name = "mfu_ratio",
                       .title = "MFU",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_RATIO,
                       .role = ROLE_SHARE,
                       .definition = "flops divided by (measured_ns times peak); all: the sum over the types",
                       .denominator = "the operations that the devices could do in measured_ns",
                       .rules = RULE_NOT_NEGATIVE},
	[MFU_KERNEL_RATIO] = {.name = "kernel_mfu_ratio",
                              .title = "MFU in kernels",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_RATIO,
                              .role = ROLE_SHARE,
                              .definition = "flops divided by (kernel_ns times peak): utilization while the kernels run",
                              .denominator = "the operations that the devices could do in kernel_ns",
                              .rules = RULE_NOT_NEGATIVE},
	[MFU_SOURCE] = {.name = "peak_source",
                        .title = "peak of",
                        .type = TABLE_TEXT,
                        .definition = "device that has this peak, and the source of the value"},
};

/* After the types: unknown types, and operators with an unknown number of operations. */
#define UNKNOWN PYTORCH_TYPES
#define UNCOUNTED (PYTORCH_TYPES + 1)
#define TYPES (PYTORCH_TYPES + 2)

struct mfu_group { /* of a process, by type */
	double flops;
	int64_t kernel_ns, tensor_core_ns, uncounted;
	int64_t unknown_ns; /* of kernel_ns: names that do not tell whether they use tensor cores */
};

struct mfu_fold {
	const struct model *model;
	const struct step_times *times;
	struct analysis_context *context;
	const struct launches *launches;
	struct mfu_group *groups;    /* process * TYPES + type */
	struct number_map types;     /* text of inputs -> type */
	struct number_map operators; /* track << 32 | row of a counted operator -> group */
	struct name_classes tensor_cores;
	struct device *devices;
	size_t device_count;
};

/* ---- operations ---- */

static uint32_t read_type(const char *text)
{
	struct operator_inputs inputs = operator_inputs_split(text);
	struct inputs_part part = {0};

	while (operator_inputs_next(&inputs.types, ';', &part)) {
		const struct pytorch_type *type = pytorch_type_named(part.text, part.length);

		for (uint32_t number = 0; type && number < PYTORCH_TYPES; number++)
			if (pytorch_type(number) == type)
				return number;
	}
	return UNKNOWN;
}

static uint32_t mfu_type_of(struct mfu_fold *fold, uint32_t inputs)
{
	uint32_t type = inputs ? number_map_find(&fold->types, inputs) : UNKNOWN;

	if (type == NUMBER_MAP_NONE)
		number_map_set(&fold->types, inputs, type = read_type(model_text(fold->model, inputs)));
	return type;
}

static void use_flops(void *context, const struct flop_count *count)
{
	struct mfu_fold *fold = context;
	const struct track *track = fold->model->tracks[count->track];
	uint32_t i, group;
	const struct span_chunk *chunk = track_chunk(track, count->row, &i);

	if (!step_times_measures(fold->times, chunk->step[i]) || !(count->is_counted || count->is_uncounted))
		return;
	group = track->process * TYPES + (count->is_counted ? mfu_type_of(fold, count->inputs) : UNCOUNTED);
	fold->groups[group].flops += count->is_counted ? count->flops : 0;
	fold->groups[group].uncounted += count->is_uncounted;
	number_map_set(&fold->operators, (uint64_t)count->track << 32 | count->row, group);
}

/* ---- kernels of these operators ---- */

/* Returns the group of the counted operator around the launch; NUMBER_MAP_NONE: there is none. */
static uint32_t group_around(const struct mfu_fold *fold, const struct launch *launch)
{
	uint32_t row = launch->operation;

	while (row != MODEL_NONE) {
		uint32_t i, group = number_map_find(&fold->operators, (uint64_t)launch->track << 32 | row);
		const struct span_chunk *chunk = track_chunk(fold->model->tracks[launch->track], row, &i);

		if (group != NUMBER_MAP_NONE)
			return group;
		row = chunk->parent[i];
	}
	return NUMBER_MAP_NONE;
}

static void mfu_add_kernel(struct mfu_fold *fold, const struct work *item)
{
	const struct launch *launch = launches_of(fold->launches, item->track, item->row);
	uint32_t i, group = launch && launch->track != MODEL_NONE ? group_around(fold, launch) : NUMBER_MAP_NONE;
	const struct span_chunk *chunk = track_chunk(fold->model->tracks[item->track], item->row, &i);

	if (group == NUMBER_MAP_NONE)
		return;
	clamped_add(&fold->groups[group].kernel_ns, item->end_ns - item->start_ns);
	switch ((enum name_answer)name_class(&fold->tensor_cores, fold->model, chunk->name[i])) {
	case NAME_YES:
		clamped_add(&fold->groups[group].tensor_core_ns, item->end_ns - item->start_ns);
		break;
	case NAME_UNKNOWN:
		clamped_add(&fold->groups[group].unknown_ns, item->end_ns - item->start_ns);
		break;
	default:
		break;
	}
}

static uint8_t mfu_classify(const char *name)
{
	return (uint8_t)tensor_cores_of_kernel(name);
}

static void mfu_fold_run(struct mfu_fold *fold)
{
	const struct model *model = fold->model;
	size_t count = (size_t)model->processes_count * TYPES + 1;
	struct device_work work = {0};

	fold->groups = memory_resize(NULL, count, sizeof(*fold->groups));
	memset(fold->groups, 0, count * sizeof(*fold->groups));
	flop_counts_each(model, analysis_context_flop_likeness(fold->context), use_flops, fold);
	fold->device_count = devices_find(&fold->devices, model);
	fold->tensor_cores.classify = mfu_classify;
	for (size_t i = 0; i < fold->device_count; i++) {
		device_work_get(&work, fold->context, fold->devices[i].process, fold->devices[i].device);
		for (size_t n = 0; n < work.count; n++)
			if (work.items[n].class == WORK_COMPUTE)
				mfu_add_kernel(fold, &work.items[n]);
	}
	device_work_release(&work);
}

static void mfu_fold_release(struct mfu_fold *fold)
{
	free(fold->groups);
	free(fold->devices);
	number_map_release(&fold->types);
	number_map_release(&fold->operators);
	name_classes_release(&fold->tensor_cores);
}

/* ---- one process ---- */

struct use { /* of the process's devices */
	const char *name;
	const char *reason;    /* why they have no name; NULL: they have one */
	const char *too_small; /* why flops do not cover the steps; NULL: they do */
	int64_t devices, time_ns;
};

static void find_devices(struct use *use, const struct mfu_fold *fold, uint32_t process, struct arena *arena)
{
	for (size_t i = 0; i < fold->device_count; i++) {
		const char *name;

		if (fold->devices[i].process != process)
			continue;
		name = model_meta(fold->model, process, arena_printf(arena, "device.%d.name", fold->devices[i].device));
		if (!name)
			use->reason = "the trace does not name its device";
		else if (use->name && strcmp(use->name, name) != 0)
			use->reason = "the process uses devices of several kinds";
		use->name = name ? name : use->name;
		use->devices++;
	}
}

/* Operators with an unknown number of operations may take up to a twentieth of the kernels' time. */
static void find_uncounted(struct use *use, const struct mfu_fold *fold, uint32_t process, struct arena *arena)
{
	const struct mfu_group *groups = &fold->groups[process * TYPES];
	double all_ns = 0, uncounted_ns = (double)groups[UNCOUNTED].kernel_ns;

	for (uint32_t type = 0; type < TYPES; type++)
		all_ns += (double)groups[type].kernel_ns;
	if (!groups[UNCOUNTED].uncounted || (all_ns > 0 && 20 * uncounted_ns <= all_ns))
		return;
	use->too_small = arena_printf(
		arena, "of %" PRId64 " calls the inputs do not say how much they compute%s",
		groups[UNCOUNTED].uncounted,
		all_ns > 0 ? arena_printf(arena, ": %.0f %% of the time of such kernels", 100 * uncounted_ns / all_ns)
			   : "");
}

/* Returns the time of the measured steps as if nothing were recorded in them: from the mean of the program's steps. */
static int64_t time_without_recording(const struct mfu_fold *fold, uint32_t process, int64_t time_ns)
{
	double sum_ns = 0, measured = 0, count = 0;

	for (uint32_t i = 0; i < fold->times->count; i++) {
		if (fold->model->steps[i].process != process)
			continue;
		measured += fold->times->steps[i].is_measured;
		count += fold->times->steps[i].is_program;
		sum_ns += fold->times->steps[i].is_program ? (double)fold->times->steps[i].dur_ns : 0;
	}
	return fold->times->has_plain && count > 0 ? clamped_int(sum_ns / count * measured) : time_ns;
}

static int64_t mfu_time_of(const struct mfu_fold *fold, uint32_t process)
{
	const struct process *which = &fold->model->processes[process];
	int64_t time_ns = 0;

	if (!fold->times->count)
		return which->has_times ? intervals_length(which->first_ns, which->last_ns) : 0;
	for (uint32_t i = 0; i < fold->times->count; i++)
		if (fold->model->steps[i].process == process && fold->times->steps[i].is_measured)
			clamped_add(&time_ns, fold->times->steps[i].dur_ns);
	return time_without_recording(fold, process, time_ns);
}

/* ---- the table ---- */

static void set_rate(struct table *table, int row, int column, double flops, int64_t time_ns, const char *otherwise)
{
	if (time_ns > 0)
		table_set_double(table, row, column, flops / ((double)time_ns / 1e9));
	else
		table_set_missing(table, row, column, otherwise);
}

static void set_flops(struct table *table, int row, const struct use *use, const struct mfu_group *group)
{
	if (use->too_small) {
		table_set_missing(table, row, MFU_FLOPS, use->too_small);
		table_set_missing(table, row, MFU_RATE, use->too_small);
		return;
	}
	table_set_double(table, row, MFU_FLOPS, group->flops);
	set_rate(table, row, MFU_RATE, group->flops, use->time_ns, "no time passed");
}

#define NO_KERNELS "the trace has no launch of a kernel by these operators"

static void set_tensor_core_ratio(struct table *table, int row, const struct mfu_group *group)
{
	if (group->kernel_ns <= 0)
		table_set_missing(table, row, MFU_TENSOR_CORES, NO_KERNELS);
	else if ((double)group->unknown_ns > MOST_UNKNOWN_NAMES * (double)group->kernel_ns)
		table_set_missing(table, row, MFU_TENSOR_CORES, NAMES_DO_NOT_TELL);
	else
		table_set_double(table, row, MFU_TENSOR_CORES,
		                 (double)group->tensor_core_ns / (double)group->kernel_ns);
}

static int mfu_add_row(struct table *table, const struct mfu_fold *fold, uint32_t process, const struct use *use,
                       const struct mfu_group *group)
{
	const char *name = use->devices > 1 ? arena_printf(&table->arena, "%s x %" PRId64, use->name, use->devices)
	                                    : use->name;
	int row = table_row(table);

	table_set_text(table, row, MFU_PROCESS, process_label(fold->model, process, &table->arena));
	table_set_text_or(table, row, MFU_DEVICE, use->reason ? NULL : name, use->reason);
	table_set_int(table, row, MFU_TIME, use->time_ns);
	table_set_int(table, row, MFU_KERNELS, group->kernel_ns);
	set_flops(table, row, use, group);
	set_rate(table, row, MFU_KERNEL_RATE, group->flops, group->kernel_ns, NO_KERNELS);
	set_tensor_core_ratio(table, row, group);
	return row;
}

static void miss_peak(struct table *table, int row, const char *reason)
{
	table_set_missing(table, row, MFU_PEAK, reason);
	table_set_missing(table, row, MFU_SOURCE, reason);
	table_set_missing(table, row, MFU_RATIO, reason);
	table_set_missing(table, row, MFU_KERNEL_RATIO, reason);
}

static void set_ratio(struct table *table, int row, int column, double could_ns, int64_t time_ns, const char *otherwise)
{
	if (time_ns > 0)
		table_set_double(table, row, column, could_ns / (double)time_ns);
	else
		table_set_missing(table, row, column, otherwise);
}

static void set_ratios(struct table *table, int row, double could_ns, const struct use *use,
                       const struct mfu_group *group)
{
	if (use->too_small)
		table_set_missing(table, row, MFU_RATIO, use->too_small);
	else
		set_ratio(table, row, MFU_RATIO, could_ns, use->time_ns, "no time passed");
	set_ratio(table, row, MFU_KERNEL_RATIO, could_ns, group->kernel_ns, NO_KERNELS);
}

/* Returns how long the devices would take for the operations at their peak, in ns; 0: the peak is unknown. */
static double set_peak(struct table *table, int row, const struct use *use, const struct mfu_group *group,
                       uint32_t type)
{
	struct device_peak peak;
	double could_ns, all;

	if (type == UNKNOWN || use->reason) {
		miss_peak(table, row, use->reason ? use->reason : "the types of the inputs were not recorded");
		return 0;
	}
	if (!device_peak_find(&peak, use->name, pytorch_type(type)->dtype,
	                      2 * (double)group->tensor_core_ns > (double)group->kernel_ns)) {
		miss_peak(table, row, "the peak of this device is unknown for this element type");
		return 0;
	}
	all = peak.flops_per_s * (double)use->devices;
	could_ns = 1e9 * group->flops / all;
	table_set_double(table, row, MFU_PEAK, all);
	table_set_text(table, row, MFU_SOURCE,
	               arena_printf(&table->arena, "%s, %s: %s", peak.device, peak.unit, peak.source));
	set_ratios(table, row, could_ns, use, group);
	return could_ns;
}

static void mfu_add_process(struct table *table, const struct mfu_fold *fold, uint32_t process)
{
	struct use use = {.time_ns = mfu_time_of(fold, process)};
	struct mfu_group all = {0};
	double could_ns = 0;
	bool is_known = true;
	int row;

	find_devices(&use, fold, process, &table->arena);
	if (!use.devices)
		return;
	find_uncounted(&use, fold, process, &table->arena);
	for (uint32_t type = 0; type < UNCOUNTED; type++) {
		const struct mfu_group *group = &fold->groups[process * TYPES + type];
		double own_ns;

		if (group->flops <= 0)
			continue;
		row = mfu_add_row(table, fold, process, &use, group);
		table_set_text_or(table, row, MFU_ELEMENTS, type != UNKNOWN ? pytorch_type(type)->dtype : NULL,
		                  "the types of the inputs were not recorded");
		own_ns = set_peak(table, row, &use, group, type);
		is_known = is_known && own_ns > 0;
		could_ns += own_ns;
		all.flops += group->flops;
		clamped_add(&all.kernel_ns, group->kernel_ns);
		clamped_add(&all.tensor_core_ns, group->tensor_core_ns);
		clamped_add(&all.unknown_ns, group->unknown_ns);
	}
	if (all.flops <= 0)
		return;
	row = mfu_add_row(table, fold, process, &use, &all);
	table_set_text(table, row, MFU_ELEMENTS, "all");
	miss_peak(table, row,
	          is_known ? "each element type has its own peak" : "the peak is unknown for some element types");
	if (!is_known)
		return;
	set_ratios(table, row, could_ns, &use, &all);
}

static enum status mfu_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct mfu_fold fold = {.context = context, .model = model, .times = analysis_context_step_times(context)};

	fold.launches = analysis_context_launches(context);
	mfu_fold_run(&fold);
	table_init(table, "mfu", "Floating point operations against the peak",
	           "operations in the measured steps, compared with the peak of the devices");
	table_columns(table, columns, MFU_COLUMNS);
	for (uint32_t process = 0; process < model->processes_count; process++)
		mfu_add_process(table, &fold, process);
	if (!table->row_count)
		table->empty = fold.device_count ? model_reason(model, REASON_NO_FLOPS) : DEVICE_NOTHING;
	mfu_fold_release(&fold);
	return STATUS_OK;
}

const struct analysis analysis_mfu = {
	.name = "mfu",
	.row = "process and element type",
	.question = "how much of the devices' peak do the steps use?",
	.run = mfu_run,
	.is_of_devices = true,
};
