/* SPDX-License-Identifier: Apache-2.0
 *
 * device_use.c: see device_use.h. Two walks along the work of a device: over the kernels, and over the instants at
 * which a kernel starts or ends. Between these instants the same multiprocessors are in use.
 */
#include "analysis/devices/device_use.h"

#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/device_names.h"
#include "model/launch_config.h"

#define WHOLE (1LL << 30) /* all multiprocessors; an integer, so that starts and ends cancel exactly */

struct device_use_change { /* in the multiprocessors that have a block */
	int64_t time_ns, share;
};

struct device_use_walk {
	const struct model *model;
	struct use_window *windows;
	size_t count, first; /* windows before `first` are over */
	struct name_classes names;
	struct launch_configs configs;
	struct device_use_change *changes;
	size_t change_count, change_capacity;
};

/* ---- kernels ---- */

struct kernel_facts {
	enum name_answer tensor_cores;
	bool has_efficiency, has_occupancy;
	double efficiency, occupancy;
};

static struct kernel_facts facts_of(struct device_use_walk *walk, const struct work *item)
{
	struct kernel_facts facts = {0};
	const struct launch_config *config;
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(walk->model->tracks[item->track], item->row, &i);

	facts.tensor_cores = (enum name_answer)name_class(&walk->names, walk->model, chunk->name[i]);
	config = launch_config_of(&walk->configs, walk->model, span_inputs(chunk, i));
	if (!config)
		return facts;
	facts.has_efficiency = launch_config_has(config, LAUNCH_BLOCKS_PER_SM);
	if (facts.has_efficiency)
		facts.efficiency = config->numbers[LAUNCH_BLOCKS_PER_SM];
	facts.efficiency = facts.efficiency < 1 ? facts.efficiency : 1;
	facts.has_occupancy = launch_config_occupancy(config, &facts.occupancy);
	return facts;
}

static double part_within(const struct use_window *window, int64_t start_ns, int64_t end_ns)
{
	start_ns = start_ns > window->start_ns ? start_ns : window->start_ns;
	end_ns = end_ns < window->end_ns ? end_ns : window->end_ns;
	return end_ns > start_ns ? (double)intervals_length(start_ns, end_ns)
	                         : 0; /* exact, unlike doubles of times since 1970 */
}

/* Returns the first window that may hold something that starts at this instant or later. */
static size_t first_window(struct device_use_walk *walk, int64_t start_ns)
{
	while (walk->first < walk->count && walk->windows[walk->first].end_ns <= start_ns)
		walk->first++;
	return walk->first;
}

static void device_use_add_kernel(struct device_use_walk *walk, const struct work *item,
                                  const struct kernel_facts *facts)
{
	for (size_t i = first_window(walk, item->start_ns); i < walk->count && walk->windows[i].start_ns < item->end_ns;
	     i++) {
		struct device_use *use = &walk->windows[i].use;
		double part_ns = part_within(&walk->windows[i], item->start_ns, item->end_ns);

		use->kernel_ns += part_ns;
		use->tensor_core_ns += facts->tensor_cores == NAME_YES ? part_ns : 0;
		use->unknown_ns += facts->tensor_cores == NAME_UNKNOWN ? part_ns : 0;
		use->efficiency_ns += facts->has_efficiency ? facts->efficiency * part_ns : 0;
		use->efficiency_of_ns += facts->has_efficiency ? part_ns : 0;
		use->occupancy_ns += facts->has_occupancy ? facts->occupancy * part_ns : 0;
		use->occupancy_of_ns += facts->has_occupancy ? part_ns : 0;
	}
}

/* ---- multiprocessors ---- */

static void add_changes(struct device_use_walk *walk, const struct work *item, double efficiency)
{
	int64_t share = (int64_t)(efficiency * WHOLE);

	if (walk->change_count + 2 > walk->change_capacity) {
		walk->change_capacity = walk->change_capacity ? 2 * walk->change_capacity : 1024;
		walk->changes = storage_resize(walk->model->storage, walk->changes, walk->change_capacity,
		                               sizeof(*walk->changes));
	}
	walk->changes[walk->change_count++] = (struct device_use_change){item->start_ns, share};
	walk->changes[walk->change_count++] = (struct device_use_change){item->end_ns, -share};
}

static int device_use_compare_changes(const void *left, const void *right)
{
	const struct device_use_change *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static void add_shares(struct device_use_walk *walk)
{
	int64_t share = 0;

	merge_sort_in(walk->model->storage, walk->changes, walk->change_count, sizeof(*walk->changes),
	              device_use_compare_changes);
	walk->first = 0;
	for (size_t i = 0; i + 1 < walk->change_count; i++) {
		int64_t from_ns = walk->changes[i].time_ns, to_ns = walk->changes[i + 1].time_ns;

		share += walk->changes[i].share;
		if (!share || from_ns == to_ns)
			continue;
		for (size_t n = first_window(walk, from_ns); n < walk->count && walk->windows[n].start_ns < to_ns; n++)
			walk->windows[n].use.sm_ns += part_within(&walk->windows[n], from_ns, to_ns) *
			                              (share < WHOLE ? (double)share / WHOLE : 1);
	}
}

static uint8_t device_use_classify(const char *name)
{
	return (uint8_t)tensor_cores_of_kernel(name);
}

void device_use_fill(struct use_window *windows, size_t count, const struct model *model,
                     const struct device_work *work)
{
	struct device_use_walk walk = {
		.model = model, .windows = windows, .count = count, .names.classify = device_use_classify};

	for (size_t n = 0; n < work->count && count; n++) {
		const struct work *item = &work->items[n];
		struct kernel_facts facts;

		if (item->class != WORK_COMPUTE && item->class != WORK_COMMUNICATION)
			continue;
		facts = facts_of(&walk, item);
		device_use_add_kernel(&walk, item, &facts);
		if (facts.has_efficiency)
			add_changes(&walk, item, facts.efficiency);
	}
	add_shares(&walk);
	name_classes_release(&walk.names);
	storage_release(model->storage, walk.changes);
	launch_configs_release(&walk.configs);
}

/* ---- columns ---- */

enum {
	USE_SM_EFFICIENCY,
	USE_OCCUPANCY,
	USE_TENSOR_CORES,
	USE_STEP_SM,
};

const struct table_column device_use_columns[USE_COLUMNS] = {
	[USE_SM_EFFICIENCY] =
		{.name = "sm_efficiency_ratio",
                 .title = "SM efficiency",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition =
                         "share of multiprocessors with a block while a kernel runs: the smaller of 1 and blocks per "
                         "multiprocessor, mean over time",
                 .denominator = "sum of the durations of the kernels with blocks per multiprocessor in the trace",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[USE_OCCUPANCY] = {.name = "occupancy_ratio",
                           .title = "occupancy",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_RATIO,
                           .definition = "occupancy of the kernels as estimated in the trace, mean over time",
                           .rules = RULE_NOT_NEGATIVE},
	[USE_TENSOR_CORES] =
		{.name = "tensor_core_ratio",
                 .title = "tensor cores",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition =
                         "share of the kernels' time in families known, by name, to compute on tensor cores (AMD: matrix "
                         "cores). Not measured if the names of more than a twentieth of the time do not tell",
                 .denominator = "sum of the durations of all kernels",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[USE_STEP_SM] =
		{.name = "step_sm_ratio",
                 .title = "SMs % of steps",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition =
                         "share of multiprocessors with a block, mean over the steps: sum of blocks per multiprocessor over "
                         "the running kernels, at most 1. It is 0 while no kernel runs, and for kernels without blocks per "
                         "multiprocessor in the trace",
                 .denominator = "multiprocessors over the time of the complete steps of the device's process",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
};

static void set_mean(struct table *table, int row, int column, double sum, double weight, const char *otherwise)
{
	if (weight > 0)
		table_set_double(table, row, column, sum / weight);
	else
		table_set_missing(table, row, column, otherwise);
}

static double at_most(double sum, double all) /* rounding may lift a part above the whole */
{
	return sum < all ? sum : all;
}

void device_use_set(struct table *table, int row, int first, const struct device_use *use, int64_t all_ns,
                    const char *no_time)
{
	const char *no_kernel = "no kernel ran for a measurable time";
	const char *unknown = use->kernel_ns > 0 ? "not in the trace" : no_kernel;

	set_mean(table, row, first + USE_SM_EFFICIENCY, at_most(use->efficiency_ns, use->efficiency_of_ns),
	         use->efficiency_of_ns, unknown);
	set_mean(table, row, first + USE_OCCUPANCY, use->occupancy_ns, use->occupancy_of_ns, unknown);
	if (use->unknown_ns > MOST_UNKNOWN_NAMES * use->kernel_ns)
		table_set_missing(table, row, first + USE_TENSOR_CORES, NAMES_DO_NOT_TELL);
	else
		set_mean(table, row, first + USE_TENSOR_CORES, at_most(use->tensor_core_ns, use->kernel_ns),
		         use->kernel_ns, no_kernel);
	if (use->kernel_ns > 0 && use->efficiency_of_ns <= 0)
		table_set_missing(table, row, first + USE_STEP_SM, unknown);
	else
		set_mean(table, row, first + USE_STEP_SM, at_most(use->sm_ns, (double)all_ns), (double)all_ns, no_time);
}
