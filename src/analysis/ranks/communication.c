/* SPDX-License-Identifier: Apache-2.0
 *
 * communication.c: the table `communication`: kernels that exchange data between devices, by device, collective and
 * size. It has their time, the exposed part of it, and their bandwidth as nccl-tests define it. A kernel runs while it
 * waits for another rank, so the bandwidth is that of the whole time.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/ranks/communication_sizes.h"
#include "base/clamped.h"
#include "base/hash.h"
#include "base/storage.h"
#include "model/number_map.h"
#include "table/bound.h"

#include <stdlib.h>
#include <string.h>

enum {
	COMM_DEVICE,
	COMM_COLLECTIVE,
	COMM_BYTES,
	COMM_DTYPE,
	COMM_RANKS,
	COMM_COUNT,
	COMM_TOTAL,
	COMM_MEAN,
	COMM_MIN,
	COMM_MAX,
	COMM_EXPOSED,
	COMM_EXPOSED_RATIO,
	COMM_ALG_RATE,
	COMM_BUS_RATE,
	COMM_KERNEL,
	COMM_COLUMNS,
};

static const struct table_column columns[COMM_COLUMNS] = {
	[COMM_DEVICE] = DEVICE_COLUMN,
	[COMM_COLLECTIVE] = {.name = "collective",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "kind of collective, from the trace or from the name of the kernel"},
	[COMM_BYTES] = {.name = "bytes",
                        .type = TABLE_INT,
                        .unit = UNIT_BYTES,
                        .role = ROLE_KEY,
                        .definition = "size of each as nccl-tests count it: for allgather and gather, the bytes that a "
                                      "rank (gather: the root) receives; otherwise the bytes that a rank (scatter: the "
                                      "root) sends"},
	[COMM_DTYPE] = {.name = "dtype", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "type of the elements"},
	[COMM_RANKS] = {.name = "ranks",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .role = ROLE_KEY,
                        .definition = "number of ranks in its process group"},
	[COMM_COUNT] = {.name = "calls",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "number of executions",
                        .rules = RULE_NOT_NEGATIVE,
                        .more = MORE_SUM},
	[COMM_TOTAL] = {.name = "total_ns",
                        .title = "total",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "total duration, including waits for other ranks",
                        .rules = RULE_NOT_NEGATIVE,
                        .more = MORE_SUM},
	[COMM_MEAN] = {.name = "mean_ns",
                       .title = "mean",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "mean duration"},
	[COMM_MIN] = {.name = "min_ns",
                      .title = "min",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "shortest duration: the execution that waited least for others",
                      .more = MORE_LEAST},
	[COMM_MAX] = {.name = "max_ns",
                      .title = "max",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "longest duration",
                      .more = MORE_MOST},
	[COMM_EXPOSED] = {.name = "exposed_ns",
                          .title = "exposed",
                          .type = TABLE_INT,
                          .unit = UNIT_NS,
                          .definition = "part of total_ns in which the device ran no compute kernel",
                          .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                          .other = "total_ns",
                          .more = MORE_SUM},
	[COMM_EXPOSED_RATIO] = {.name = "exposed_ratio",
                                .title = "exposed %",
                                .type = TABLE_DOUBLE,
                                .unit = UNIT_RATIO,
                                .role = ROLE_SHARE,
                                .definition = "exposed share of its time",
                                .denominator = "total duration",
                                .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[COMM_ALG_RATE] = {.name = "algorithm_bytes_per_s",
                           .title = "algbw",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_BYTES_PER_SECOND,
                           .definition = "bytes times calls, divided by total_ns"},
	[COMM_BUS_RATE] = {.name = "bus_bytes_per_s",
                           .title = "busbw",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_BYTES_PER_SECOND,
                           .definition = COMMUNICATION_BUS_RATE_DEFINITION},
	[COMM_KERNEL] = {.name = "kernel", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name of the kernel"},
};

struct communication_group {
	uint32_t process, kernel;
	int32_t device;
	struct communication_size size;
	int64_t count, total_ns, min_ns, max_ns, exposed_ns;
};

struct communication_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	struct device_work work;
	struct device_times device;
	struct number_map by_key; /* hash of the key of a row */
	struct communication_group *groups;
	uint32_t count, capacity;
	struct launch_configs configs;
};

/* ---- groups ---- */

/* Returns a hash of 64 bits over the key of a row; two different rows do not collide in practice. */
static uint64_t communication_key_of(const struct communication_group *group)
{
	uint64_t hash = hash_bytes(HASH_BYTES, &group->process, sizeof(group->process));

	hash = hash_bytes(hash, &group->kernel, sizeof(group->kernel));
	hash = hash_bytes(hash, &group->device, sizeof(group->device));
	hash = hash_bytes(hash, &group->size.has_bytes, sizeof(group->size.has_bytes));
	hash = hash_bytes(hash, &group->size.bytes, sizeof(group->size.bytes));
	hash = hash_bytes(hash, &group->size.ranks, sizeof(group->size.ranks));
	hash = hash_bytes(hash, group->size.collective, strlen(group->size.collective) + 1);
	return hash_bytes(hash, group->size.dtype, strlen(group->size.dtype));
}

static struct communication_group *communication_group_of(struct communication_fold *fold,
                                                          const struct communication_group *wanted)
{
	uint64_t key = communication_key_of(wanted);
	uint32_t found = number_map_add(&fold->by_key, key, fold->count);

	if (found == fold->count) {
		STORAGE_GROW(fold->model->storage, fold->groups, fold->count, fold->capacity, 32);
		fold->groups[fold->count++] = *wanted;
	}
	return &fold->groups[found];
}

static void communication_add_kernel(struct communication_fold *fold, const struct device *device,
                                     const struct work *item)
{
	int64_t dur_ns = item->end_ns - item->start_ns;
	struct communication_group wanted = {.process = device->process, .device = device->device, .min_ns = INT64_MAX},
				   *group;
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(fold->model->tracks[item->track], item->row, &i);

	wanted.kernel = chunk->name[i];
	communication_size_find(&wanted.size, fold->model, fold->launches, &fold->configs, item->track, item->row);
	group = communication_group_of(fold, &wanted);
	group->count++;
	clamped_add(&group->total_ns, dur_ns);
	group->min_ns = dur_ns < group->min_ns ? dur_ns : group->min_ns;
	group->max_ns = dur_ns > group->max_ns ? dur_ns : group->max_ns;
	clamped_add(&group->exposed_ns, dur_ns - intervals_within(&fold->device.compute, item->start_ns, item->end_ns));
}

static void communication_fold_run(struct communication_fold *fold)
{
	struct device *devices;
	size_t count = devices_find(&devices, fold->model);

	for (size_t i = 0; i < count; i++) {
		device_work_get(&fold->work, fold->context, devices[i].process, devices[i].device);
		device_times_fill(&fold->device, &fold->work);
		for (size_t n = 0; n < fold->work.count; n++) {
			const struct work *item = &fold->work.items[n];

			if (item->class == WORK_COMMUNICATION &&
			    device_work_is_selected(fold->context, item->track, item->row))
				communication_add_kernel(fold, &devices[i], item);
		}
	}
	free(devices);
}

/* ---- the table ---- */

static void set_size(struct table *table, int row, const struct communication_size *size)
{
	static const char reason[] = "neither the trace nor the name of the kernel tells it";

	if (size->collective[0])
		table_set_text(table, row, COMM_COLLECTIVE, size->collective);
	else
		table_set_missing(table, row, COMM_COLLECTIVE, reason);
	if (size->dtype[0])
		table_set_text(table, row, COMM_DTYPE, size->dtype);
	else
		table_set_missing(table, row, COMM_DTYPE, "the trace does not say it");
	if (size->has_bytes && size->bytes < 0x1p63)
		table_set_int(table, row, COMM_BYTES, (int64_t)size->bytes);
	else
		table_set_missing(table, row, COMM_BYTES, "the trace does not say it");
	if (size->ranks)
		table_set_int(table, row, COMM_RANKS, size->ranks);
	else
		table_set_missing(table, row, COMM_RANKS, "the trace does not say it");
}

static void set_rates(struct table *table, int row, const struct communication_group *group)
{
	const struct communication_size *size = &group->size;
	double rate;

	table_set_missing(table, row, COMM_BUS_RATE, "the trace does not give its bytes or its ranks");
	if (!size->has_bytes || group->total_ns <= 0) {
		table_set_missing(table, row, COMM_ALG_RATE,
		                  size->has_bytes ? "it took no measurable time" : "the trace does not give its bytes");
		return;
	}
	rate = size->bytes * (double)group->count / ((double)group->total_ns / 1e9);
	table_set_double(table, row, COMM_ALG_RATE, rate);
	if (size->ranks && size->collective[0])
		table_set_double(table, row, COMM_BUS_RATE, rate * communication_bus_factor(size));
}

static void communication_add_row(struct table *table, const struct model *model,
                                  const struct communication_group *group)
{
	int row = table_row(table);

	table_set_text(table, row, COMM_DEVICE, device_label(model, group->process, group->device, &table->arena));
	table_set_text(table, row, COMM_KERNEL, model_text(model, group->kernel));
	set_size(table, row, &group->size);
	table_set_int(table, row, COMM_COUNT, group->count);
	table_set_int(table, row, COMM_TOTAL, group->total_ns);
	table_set_double(table, row, COMM_MEAN, (double)group->total_ns / (double)group->count);
	table_set_int(table, row, COMM_MIN, group->min_ns);
	table_set_int(table, row, COMM_MAX, group->max_ns);
	table_set_int(table, row, COMM_EXPOSED, group->exposed_ns);
	if (group->total_ns > 0)
		table_set_double(table, row, COMM_EXPOSED_RATIO, (double)group->exposed_ns / (double)group->total_ns);
	else
		table_set_missing(table, row, COMM_EXPOSED_RATIO, "it took no measurable time");
	set_rates(table, row, group);
}

static enum status communication_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct communication_fold fold = {.context = context, .model = model, .by_key = {.storage = model->storage}};

	fold.launches = analysis_context_launches(context);
	communication_fold_run(&fold);
	table_init(table, "communication", "Communication on devices",
	           "kernels that exchange data between devices, by collective and size; with --steps, "
	           "only those launched in these steps");
	table_columns(table, columns, COMM_COLUMNS);
	table_bound(table, COMM_TOTAL);
	for (uint32_t i = 0; i < fold.count; i++)
		communication_add_row(table, model, &fold.groups[i]);
	table_add_more(table, COMM_KERNEL);
	table_sort(table, COMM_KERNEL, true);
	table_sort(table, COMM_TOTAL, false);
	if (!fold.count)
		table->empty = "no kernel has the name of a communication kernel";
	device_work_release(&fold.work);
	device_times_release(&fold.device);
	number_map_release(&fold.by_key);
	launch_configs_release(&fold.configs);
	storage_release(model->storage, fold.groups);
	return STATUS_OK;
}

const struct analysis analysis_communication = {
	.name = "communication",
	.row = "device, collective and size",
	.question = "which data do devices exchange, and how much of that time is exposed?",
	.run = communication_run,
	.is_of_devices = true,
};
