/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.c: the table `kernels`: kernels of devices by name, with their number, time, streams and launch
 * configuration. Facts of launches are means over the time of the kernels that have them, since one name runs in many
 * shapes. Rows can be split by the operator that launched the kernel: by its shapes, and the module, line and Python
 * stack around it.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/shared/durations.h"
#include "analysis/shared/python_places.h"
#include "analysis/shared/span_places.h"
#include "base/clamped.h"
#include "base/storage.h"
#include "model/cell_words.h"
#include "model/device_names.h"
#include "model/lanes.h"
#include "model/launch_config.h"
#include "model/number_map.h"
#include "table/bound.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
	KERNEL_CLASS,
	KERNEL_COUNT,
	KERNEL_TOTAL,
	KERNEL_RATIO,
	KERNEL_MEAN,
	KERNEL_MIN,
	KERNEL_MAX,
	KERNEL_INCOMPLETE,
	KERNEL_TENSOR_CORES,
	KERNEL_WORK,
	KERNEL_PRODUCT,
	KERNEL_STREAMS,
	KERNEL_OPERATIONS,
	KERNEL_GRID,
	KERNEL_BLOCK,
	KERNEL_REGISTERS,
	KERNEL_SHARED,
	KERNEL_BLOCKS_PER_SM,
	KERNEL_SM_EFFICIENCY,
	KERNEL_WARPS_PER_SM,
	KERNEL_OCCUPANCY,
	KERNEL_SHAPE,
	KERNEL_MODULE,
	KERNEL_LINE,
	KERNEL_STACK,
	KERNEL_NAME,
	KERNEL_COLUMNS,
};

static const struct table_column columns[KERNEL_COLUMNS] = {
	[KERNEL_CLASS] =
		{.name = "class",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "communication if the name is one of a communication library, otherwise compute"},
	[KERNEL_COUNT] = {.name = "calls",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "number of calls",
                          .rules = RULE_NOT_NEGATIVE,
                          .more = MORE_SUM},
	[KERNEL_TOTAL] = {.name = "total_ns",
                          .title = "total",
                          .type = TABLE_INT,
                          .unit = UNIT_NS,
                          .definition = "sum of the durations, including those that overlap",
                          .rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL,
                          .more = MORE_SUM},
	[KERNEL_RATIO] = {.name = "ratio",
                          .title = "%",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_RATIO,
                          .role = ROLE_SHARE,
                          .definition = "share of the time of all kernels",
                          .denominator = "sum of the durations of all kernels",
                          .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE,
                          .more = MORE_SUM},
	[KERNEL_MEAN] = {.name = "mean_ns",
                         .title = "mean",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_NS,
                         .definition = "mean duration"},
	[KERNEL_MIN] = {.name = "min_ns",
                        .title = "min",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "shortest",
                        .more = MORE_LEAST},
	[KERNEL_MAX] = {.name = "max_ns",
                        .title = "max",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "longest",
                        .more = MORE_MOST},
	[KERNEL_INCOMPLETE] = DURATIONS_INCOMPLETE,
	[KERNEL_TENSOR_CORES] =
		{.name = "is_tensor_core",
                 .title = "tensor cores",
                 .type = TABLE_BOOL,
                 .definition =
                         "true if the name is of a family known to compute on tensor cores (AMD: matrix cores), false if "
                         "it is of one known to do without"},
	[KERNEL_WORK] =
		{.name = "work",
                 .type = TABLE_TEXT,
                 .definition =
                         "kind of work, judged by name. matrix: products, convolutions and attention. memory: elementwise, "
                         "norms, reductions and copies, limited by memory"},
	[KERNEL_PRODUCT] =
		{.name = "product",
                 .type = TABLE_TEXT,
                 .definition = "of products of numbers in float32, judged by name: float32 without tensor cores, "
                               "TF32 on tensor cores"},
	[KERNEL_STREAMS] = {.name = "stream", .type = TABLE_TEXT, .definition = "stream of the kernel, or several"},
	[KERNEL_OPERATIONS] = {.name = "operation",
                               .type = TABLE_TEXT,
                               .definition = "operator or range that launched the kernel, or several"},
	[KERNEL_GRID] = {.name = "grid",
                         .type = TABLE_TEXT,
                         .definition = "blocks of the launch, if all launches agree"},
	[KERNEL_BLOCK] = {.name = "block",
                          .type = TABLE_TEXT,
                          .definition = "threads of a block, if all launches agree"},
	[KERNEL_REGISTERS] = {.name = "registers",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_COUNT,
                              .definition = "registers of a thread, mean over time"},
	[KERNEL_SHARED] = {.name = "shared_bytes",
                           .title = "shared",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_BYTES,
                           .definition = "shared memory of a block, mean over time"},
	[KERNEL_BLOCKS_PER_SM] =
		{.name = "blocks_per_sm",
                 .title = "blocks/SM",
                 .type = TABLE_DOUBLE,
                 .definition =
                         "blocks of the launch per multiprocessor of the device, mean over time; below 1, some multiprocessors "
                         "have no work"},
	[KERNEL_SM_EFFICIENCY] =
		{.name = "sm_efficiency_ratio",
                 .title = "SM efficiency",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition =
                         "share of multiprocessors with a block while the kernel runs: the smaller of 1 and blocks per "
                         "multiprocessor, mean over time",
                 .denominator = "sum of the kernel's durations",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[KERNEL_WARPS_PER_SM] = {.name = "warps_per_sm",
                                 .title = "warps/SM",
                                 .type = TABLE_DOUBLE,
                                 .definition = "warps of the launch per multiprocessor, mean over time"},
	[KERNEL_OCCUPANCY] =
		{.name = "occupancy_ratio",
                 .title = "occupancy",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .definition =
                         "warps that a multiprocessor holds, divided by its maximum, as estimated in the trace, mean over "
                         "time. An estimate of 0 is ignored if the launch needs more",
                 .rules = RULE_NOT_NEGATIVE},
	[KERNEL_SHAPE] = {.name = "shape",
                          .type = TABLE_TEXT,
                          .role = ROLE_KEY,
                          .definition = "input shapes of the operator that launched the kernel"},
	[KERNEL_MODULE] =
		{.name = "module",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "path of the innermost module around the launch; in a backward node, of the module whose operator "
                         "created the node",
                 .keeps_end = true},
	[KERNEL_LINE] =
		{.name = "line",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "innermost line of the user's own program around the launch; in a backward, around its forward",
                 .keeps_end = true},
	[KERNEL_STACK] =
		{.name = "stack",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "Python frames around the launch, outermost first, separated by semicolons; in a backward, the frames "
                         "that started it",
                 .keeps_end = true},
	[KERNEL_NAME] = {.name = "kernel", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name of the kernel"},
};

/* Columns that are means of facts of the launches. */
static const struct {
	int column;
	enum launch_fact fact;
} means[] = {
	{KERNEL_REGISTERS, LAUNCH_REGISTERS},         {KERNEL_SHARED, LAUNCH_SHARED_BYTES},
	{KERNEL_BLOCKS_PER_SM, LAUNCH_BLOCKS_PER_SM}, {KERNEL_SM_EFFICIENCY, LAUNCH_BLOCKS_PER_SM},
	{KERNEL_WARPS_PER_SM, LAUNCH_WARPS_PER_SM},   {KERNEL_OCCUPANCY, LAUNCH_OCCUPANCY},
};
#define MEANS (sizeof(means) / sizeof(means[0]))

#define SPLITS 4

struct few { /* numbers: the first one, and whether others differ from it */
	uint32_t first, count;
};

struct kernel {
	uint32_t name;
	uint32_t parts[SPLITS];
	uint8_t class;
	struct durations calls;
	struct few streams, operations;     /* tracks; names */
	double sums[MEANS], weights[MEANS]; /* by time */
	double plain[MEANS];
	int64_t known[MEANS];
	double shapes[2][3]; /* grid, block */
	bool is_mixed[2];    /* not the same in all launches, or unknown */
};

struct kernels_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	struct device_work work;
	struct span_places places;          /* used if rows are split */
	struct number_map by_parts[SPLITS]; /* number so far and next part -> number for both */
	struct number_map by_key;           /* name, or the last of these numbers -> kernel */
	struct kernel *kernels;
	uint32_t count, capacity;
	uint64_t outside;
	struct launch_configs configs;
};

/* ---- the parts that split rows: a number of the model; 0: there is none ---- */

static const struct span_chunk *operation_of(const struct kernels_fold *fold, const struct launch *launch,
                                             uint32_t *index)
{
	return track_chunk(fold->model->tracks[launch->track], launch->operation, index);
}

static uint32_t shape_of(struct kernels_fold *fold, const struct launch *launch)
{
	uint32_t i;

	return launch->operation == MODEL_NONE ? 0 : operation_of(fold, launch, &i)->shape[i];
}

static uint32_t module_of(struct kernels_fold *fold, const struct launch *launch)
{
	return span_module_of(&fold->places, launch->track, launch->row);
}

static uint32_t kernels_line_of(struct kernels_fold *fold, const struct launch *launch)
{
	return span_line_of(&fold->places, launch->track, launch->row);
}

static uint32_t stack_of(struct kernels_fold *fold, const struct launch *launch)
{
	return span_stack_of(&fold->places, launch->track, launch->row);
}

static const char *string_text(struct kernels_fold *fold, uint32_t part, struct arena *arena)
{
	return model_text(fold->model, part);
}

static const char *line_text(struct kernels_fold *fold, uint32_t part, struct arena *arena)
{
	return span_line_text(&fold->places, part, arena);
}

static const char *stack_text(struct kernels_fold *fold, uint32_t part, struct arena *arena)
{
	return python_stack_text(fold->model, part, arena);
}

static const struct split {
	enum analysis_by by;
	int column;
	uint32_t (*part_of)(struct kernels_fold *fold, const struct launch *launch);
	const char *(*text_of)(struct kernels_fold *fold, uint32_t part, struct arena *arena);
	const char *none, *not_split;
} splits[SPLITS] = {
	{BY_SHAPE, KERNEL_SHAPE, shape_of, string_text,
         "the trace lacks its launch, or the operator's shapes (torch.profiler: record_shapes=True)",
         "rows are not split by shape; add --by shape"},
	{BY_MODULE, KERNEL_MODULE, module_of, string_text,
         "the trace lacks its launch, or a module call around the launch (torch.profiler: with_stack=True)",
         "rows are not split by module; add --by module"},
	{BY_LINE, KERNEL_LINE, kernels_line_of, line_text,
         "the trace lacks its launch, or a program line around the launch (torch.profiler: with_stack=True)",
         "rows are not split by line; add --by line"},
	{BY_STACK, KERNEL_STACK, stack_of, stack_text,
         "the trace lacks its launch, or a Python stack around the launch (torch.profiler: with_stack=True)",
         "rows are not split by stack; add --by stack"},
};

/* Returns one number for a pair. */
static uint32_t number_of_both(struct number_map *numbers, uint32_t first, uint32_t second)
{
	return number_map_add(numbers, (uint64_t)first << 32 | second, numbers->count);
}

static struct kernel *kernel_of(struct kernels_fold *fold, uint32_t name, const struct launch *launch)
{
	struct kernel new = {.name = name, .calls = DURATIONS_NONE};
	uint32_t key = name, found;

	for (int i = 0; fold->context->options.by && i < SPLITS; i++) {
		if (!(fold->context->options.by & splits[i].by))
			continue;
		if (launch && launch->track != MODEL_NONE)
			new.parts[i] = splits[i].part_of(fold, launch);
		key = number_of_both(&fold->by_parts[i], key, new.parts[i]);
	}
	found = number_map_add(&fold->by_key, key, fold->count);
	if (found == fold->count) {
		STORAGE_GROW(fold->model->storage, fold->kernels, fold->count, fold->capacity, 64);
		fold->kernels[fold->count++] = new;
	}
	return &fold->kernels[found];
}

/* ---- the fold ---- */

static void few_add(struct few *few, uint32_t number)
{
	if (few->count == 0)
		few->first = number;
	if (few->count == 0 || (few->count == 1 && few->first != number))
		few->count++;
}

/* Grid (0) or block (1): kept if all launches have the same. */
static void add_shape(struct kernel *kernel, int which, const double *numbers)
{
	assert(which == 0 || which == 1);
	for (int i = 0; i < 3; i++) {
		if (kernel->calls.count == 1)
			kernel->shapes[which][i] = numbers[i];
		else if (kernel->shapes[which][i] != numbers[i])
			kernel->is_mixed[which] = true;
	}
}

static void add_config(struct kernels_fold *fold, struct kernel *kernel, uint32_t inputs, int64_t dur_ns)
{
	const struct launch_config *config = launch_config_of(&fold->configs, fold->model, inputs);
	double weight = (double)dur_ns, occupancy;

	if (!config) {
		kernel->is_mixed[0] = kernel->is_mixed[1] = true;
		return;
	}
	for (size_t i = 0; i < MEANS; i++) {
		double number = config->numbers[means[i].fact];

		if (means[i].fact == LAUNCH_OCCUPANCY ? !launch_config_occupancy(config, &occupancy)
		                                      : !launch_config_has(config, means[i].fact))
			continue;
		if (means[i].column == KERNEL_SM_EFFICIENCY && number > 1)
			number = 1;
		kernel->sums[i] += number * weight;
		kernel->weights[i] += weight;
		kernel->plain[i] += number;
		kernel->known[i]++;
	}
	for (int which = 0; which < 2; which++) {
		int first = which ? LAUNCH_BLOCK_X : LAUNCH_GRID_X;

		if (launch_config_has(config, (enum launch_fact)first))
			add_shape(kernel, which, &config->numbers[first]);
		else
			kernel->is_mixed[which] = true;
	}
}

static void add_operation(struct kernels_fold *fold, struct kernel *kernel, const struct launch *launch)
{
	uint32_t i;

	if (launch && launch->operation != MODEL_NONE)
		few_add(&kernel->operations, operation_of(fold, launch, &i)->name[i]);
}

static void kernels_fold_track(struct kernels_fold *fold, uint32_t number)
{
	const struct model *model = fold->model;
	const struct track *track = model->tracks[number];
	uint32_t lane = first_lane(model, number);

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			const struct launch *launch;
			int64_t dur_ns = chunk->dur_ns[i];
			struct kernel *kernel;

			if (chunk->kind[i] != SPAN_KERNEL)
				continue;
			if (!device_work_is_selected(fold->context, number, chunk->first_row + i)) {
				fold->outside++;
				continue;
			}
			launch = launches_of(fold->launches, number, chunk->first_row + i);
			kernel = kernel_of(fold, chunk->name[i], launch);
			kernel->class = (uint8_t)device_work_class(&fold->work, model, chunk->kind[i], chunk->name[i]);
			durations_add(&kernel->calls, dur_ns, span_is_timed(chunk->flags[i]));
			few_add(&kernel->streams, lane);
			add_operation(fold, kernel, launch);
			add_config(fold, kernel, span_inputs(chunk, i), dur_ns);
		}
		model_chunk_done(model, chunk);
	}
}

/* ---- the table ---- */

static void set_launch(struct table *table, int row, const struct kernel *kernel)
{
	static const char reason[] = "not in the trace";

	for (int which = 0; which < 2; which++) {
		const double *sizes = kernel->shapes[which];
		int column = which ? KERNEL_BLOCK : KERNEL_GRID;

		if (kernel->is_mixed[which])
			table_set_missing(table, row, column, "its launches differ, or are not in the trace");
		else
			table_set_text(table, row, column,
			               arena_printf(&table->arena, "%.0f,%.0f,%.0f", sizes[0], sizes[1], sizes[2]));
	}
	for (size_t i = 0; i < MEANS; i++) {
		if (kernel->weights[i] > 0)
			table_set_double(table, row, means[i].column, kernel->sums[i] / kernel->weights[i]);
		else if (kernel->known[i]) /* all are too short to measure */
			table_set_double(table, row, means[i].column, kernel->plain[i] / (double)kernel->known[i]);
		else
			table_set_missing(table, row, means[i].column, reason);
	}
}

static void set_few(struct table *table, int row, const struct kernels_fold *fold, const struct kernel *kernel)
{
	const struct model *model = fold->model;

	if (kernel->streams.count == 1)
		table_set_text(table, row, KERNEL_STREAMS,
		               arena_printf(&table->arena, "%" PRId64, model->tracks[kernel->streams.first]->tid));
	else
		table_set_text(table, row, KERNEL_STREAMS, "several");
	if (kernel->operations.count == 1)
		table_set_text(table, row, KERNEL_OPERATIONS, model_text(model, kernel->operations.first));
	else if (kernel->operations.count)
		table_set_text(table, row, KERNEL_OPERATIONS, "several");
	else
		table_set_missing(table, row, KERNEL_OPERATIONS, "its launch is outside every operator and range");
}

static void set_durations(struct table *table, int row, const struct kernel *kernel)
{
	table_set_int(table, row, KERNEL_INCOMPLETE, kernel->calls.count - kernel->calls.timed);
	for (int column = KERNEL_MEAN; column <= KERNEL_MAX; column++)
		table_set_missing(table, row, column, "no call has a start and an end in the trace");
	if (!kernel->calls.timed)
		return;
	table_set_double(table, row, KERNEL_MEAN, (double)kernel->calls.timed_ns / (double)kernel->calls.timed);
	table_set_int(table, row, KERNEL_MIN, kernel->calls.min_ns);
	table_set_int(table, row, KERNEL_MAX, kernel->calls.max_ns);
}

static void set_parts(struct table *table, int row, struct kernels_fold *fold, const struct kernel *kernel)
{
	for (int i = 0; i < SPLITS; i++) {
		uint32_t part = kernel->parts[i];

		if (part)
			table_set_text(table, row, splits[i].column, splits[i].text_of(fold, part, &table->arena));
		else
			table_set_missing(table, row, splits[i].column,
			                  fold->context->options.by & splits[i].by ? splits[i].none
			                                                           : splits[i].not_split);
	}
}

static void set_tensor_cores(struct table *table, int row, enum name_answer answer)
{
	if (answer == NAME_UNKNOWN)
		table_set_missing(table, row, KERNEL_TENSOR_CORES, "the name does not tell");
	else
		table_set_bool(table, row, KERNEL_TENSOR_CORES, answer == NAME_YES);
}

static void set_product(struct table *table, int row, enum product_type type)
{
	if (type == PRODUCT_OTHER)
		table_set_missing(table, row, KERNEL_PRODUCT, "another type, or not in the name");
	else
		table_set_text(table, row, KERNEL_PRODUCT,
		               type == PRODUCT_TF32 ? CELL_PRODUCT_TF32 : CELL_PRODUCT_FLOAT32);
}

static void kernels_add_row(struct table *table, struct kernels_fold *fold, const struct kernel *kernel,
                            int64_t total_ns)
{
	const char *name = model_text(fold->model, kernel->name);
	int row = table_row(table);

	table_set_text(table, row, KERNEL_NAME, name);
	set_parts(table, row, fold, kernel);
	table_set_text(table, row, KERNEL_CLASS,
	               kernel->class == WORK_COMMUNICATION ? CELL_CLASS_COMMUNICATION : CELL_CLASS_COMPUTE);
	table_set_int(table, row, KERNEL_COUNT, kernel->calls.count);
	table_set_int(table, row, KERNEL_TOTAL, kernel->calls.total_ns);
	set_durations(table, row, kernel);
	set_tensor_cores(table, row, tensor_cores_of_kernel(name));
	set_product(table, row, product_type_of_kernel(name));
	if (work_of_kernel(name))
		table_set_text(table, row, KERNEL_WORK, work_of_kernel(name));
	else
		table_set_missing(table, row, KERNEL_WORK, "not in the name");
	if (total_ns > 0)
		table_set_double(table, row, KERNEL_RATIO, (double)kernel->calls.total_ns / (double)total_ns);
	else
		table_set_missing(table, row, KERNEL_RATIO, "the kernels have no duration");
	set_few(table, row, fold, kernel);
	set_launch(table, row, kernel);
}

static void kernels_add_rows(struct table *table, struct kernels_fold *fold)
{
	int64_t total_ns = 0;

	for (uint32_t i = 0; i < fold->count; i++)
		clamped_add(&total_ns, fold->kernels[i].calls.total_ns);
	table_columns_of(table, columns, KERNEL_COLUMNS, (double)total_ns);
	for (int i = 0; i < SPLITS; i++)
		table->columns[splits[i].column].is_hidden = !(fold->context->options.by & splits[i].by);
	table_bound(table, KERNEL_TOTAL);
	for (uint32_t i = 0; i < fold->count; i++)
		kernels_add_row(table, fold, &fold->kernels[i], total_ns);
	table_add_more(table, KERNEL_NAME);
	for (int i = SPLITS; i-- > 0;)
		if (fold->context->options.by & splits[i].by)
			table_sort(table, splits[i].column, true);
	table_sort(table, KERNEL_NAME, true);
	table_sort(table, KERNEL_TOTAL, false);
}

static enum status kernels_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct kernels_fold fold = {.context = context, .model = model, .by_key = {.storage = model->storage}};

	for (int i = 0; i < SPLITS; i++)
		fold.by_parts[i].storage = model->storage;
	if (context->options.by & (BY_MODULE | BY_LINE | BY_STACK))
		span_places_init(&fold.places, model);
	fold.launches = analysis_context_launches(context);
	for (uint32_t track = 0; track < model->tracks_count; track++)
		if (model->tracks[track]->kind == TRACK_DEVICE)
			kernels_fold_track(&fold, track);
	table_init(table, "kernels", "Kernels",
	           "kernels of all devices in the trace, by name; with --steps, those launched in these steps; with "
	           "--by, also split by a property of the launching operator");
	kernels_add_rows(table, &fold);
	if (fold.outside)
		table->note = arena_printf(&table->arena,
		                           "%" PRIu64
		                           " kernels were launched outside the selected steps and are not counted",
		                           fold.outside);
	if (!fold.count)
		table->empty = fold.outside ? "no kernel was launched in the selected steps"
		                            : "no device kernels were recorded";
	device_work_release(&fold.work);
	launch_configs_release(&fold.configs);
	for (int i = 0; i < SPLITS; i++)
		number_map_release(&fold.by_parts[i]);
	number_map_release(&fold.by_key);
	span_places_release(&fold.places);
	storage_release(model->storage, fold.kernels);
	return STATUS_OK;
}

const struct analysis analysis_kernels = {
	.name = "kernels",
	.row = "kernel name",
	.question = "which kernels take the device time?",
	.run = kernels_run,
	.splits = BY_SHAPE | BY_LINE | BY_STACK | BY_MODULE,
	.is_of_devices = true,
};
