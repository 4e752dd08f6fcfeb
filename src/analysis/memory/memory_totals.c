/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_totals.c: the table `memory_totals`: the peaks of the totals that allocators report, including memory from
 * before the trace started, and the capacity of the devices. The other tables of memory know only recorded
 * allocations.
 */
#include "analysis/analysis_context.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/shared/labels.h"
#include "base/units.h"
#include "model/reasons.h"

#include <stdlib.h>
#include <string.h>

enum {
	TOTALS_PROCESS,
	TOTALS_DEVICE,
	TOTALS_ALLOCATED,
	TOTALS_RESERVED,
	TOTALS_UNUSED,
	TOTALS_CAPACITY,
	TOTALS_RATIO,
	TOTALS_COLUMNS,
};

static const struct table_column columns[TOTALS_COLUMNS] = {
	[TOTALS_PROCESS] = PROCESS_COLUMN,
	[TOTALS_DEVICE] = MEMORY_DEVICE_COLUMN,
	[TOTALS_ALLOCATED] =
		{.name = "allocated_peak_bytes",
                 .title = "allocated",
                 .type = TABLE_INT,
                 .unit = UNIT_BYTES,
                 .definition =
                         "peak bytes allocated by PyTorch's allocator at any event of the trace, including allocations from "
                         "before the trace",
                 .rules = RULE_NOT_NEGATIVE},
	[TOTALS_RESERVED] = {.name = "reserved_peak_bytes",
                             .title = "reserved",
                             .type = TABLE_INT,
                             .unit = UNIT_BYTES,
                             .definition = "peak bytes that the allocator had taken from the device",
                             .rules = RULE_NOT_NEGATIVE},
	[TOTALS_UNUSED] = {.name = "unused_peak_bytes",
                           .title = "unused",
                           .type = TABLE_INT,
                           .unit = UNIT_BYTES,
                           .definition = "peak reserved minus peak allocated bytes: cached, or too fragmented to use"},
	[TOTALS_CAPACITY] = {.name = "capacity_bytes",
                             .title = "capacity",
                             .type = TABLE_INT,
                             .unit = UNIT_BYTES,
                             .definition = "memory of the device, given in the trace",
                             .rules = RULE_NOT_NEGATIVE},
	[TOTALS_RATIO] =
		{.name = "used_ratio",
                 .title = "used %",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition = "reserved peak as a share of the device's memory; if it is unknown, the allocated peak",
                 .denominator = "capacity_bytes",
                 .rules = RULE_NOT_NEGATIVE},
};

/* Gets a fact that is a positive number. */
static bool memory_totals_fact_of(const struct model *model, uint32_t process, const char *key, int64_t *number)
{
	const char *text = model_meta(model, process, key);
	char *end;

	if (!text)
		return false;
	*number = strtoll(text, &end, 10);
	return end != text && *number > 0;
}

/* Returns "0" for "memory.0.allocated_peak_bytes"; NULL for another fact. */
static const char *device_of(const char *key, const char *end, struct arena *arena)
{
	static const char begin[] = "memory.";
	size_t length = strlen(key), tail = strlen(end);

	if (length < sizeof(begin) + tail || strncmp(key, begin, sizeof(begin) - 1) != 0 ||
	    strcmp(key + length - tail, end) != 0)
		return NULL;
	return arena_dup_n(arena, key + sizeof(begin) - 1, length - sizeof(begin) - tail + 1);
}

/* If it has, the row of its allocated bytes also has its reserved bytes. */
static bool has_allocated(const struct model *model, uint32_t process, const char *device, struct arena *arena)
{
	return model_meta(model, process, arena_printf(arena, "memory.%s.allocated_peak_bytes", device));
}

/* A missing event may have had higher totals. */
static void set_unknown(struct table *table, int row, const char *why)
{
	char bytes[UNITS_BYTES];
	double most;

	for (int column = TOTALS_ALLOCATED; column <= TOTALS_UNUSED; column++) {
		const char *least = column < TOTALS_UNUSED && table_number(table, row, column, &most)
		                            ? units_bytes(bytes, most)
		                            : NULL;

		table_set_missing(table, row, column,
		                  least ? arena_printf(&table->arena, "at least %s; %s", least, why) : why);
	}
	table_set_missing(table, row, TOTALS_RATIO, why);
}

static void memory_totals_add_row(struct table *table, const struct model *model, uint32_t process, const char *device)
{
	struct arena *arena = &table->arena;
	int64_t allocated = 0, reserved = 0, capacity = 0;
	bool has_allocated = memory_totals_fact_of(
		model, process, arena_printf(arena, "memory.%s.allocated_peak_bytes", device), &allocated);
	bool has_reserved = memory_totals_fact_of(
		model, process, arena_printf(arena, "memory.%s.reserved_peak_bytes", device), &reserved);
	bool has_capacity = memory_totals_fact_of(model, process,
	                                          arena_printf(arena, "device.%s.totalGlobalMem", device), &capacity);
	int row = table_row(table);

	table_set_text(table, row, TOTALS_PROCESS, process_label(model, process, arena));
	table_set_text(table, row, TOTALS_DEVICE,
	               strcmp(device, "host") != 0 ? arena_printf(arena, "device %s", device) : device);
	for (int column = TOTALS_ALLOCATED; column < TOTALS_COLUMNS; column++)
		table_set_missing(table, row, column, "not in the trace");
	if (has_allocated)
		table_set_int(table, row, TOTALS_ALLOCATED, allocated);
	if (has_reserved)
		table_set_int(table, row, TOTALS_RESERVED, reserved);
	if (has_allocated && has_reserved)
		table_set_int(table, row, TOTALS_UNUSED, reserved - allocated);
	if (has_capacity)
		table_set_int(table, row, TOTALS_CAPACITY, capacity);
	if (model->processes[process].has_lost_memory) {
		set_unknown(table, row, model_text(model, model->processes[process].lost_memory));
		return;
	}
	if (!has_capacity)
		return;
	table_set_double(table, row, TOTALS_RATIO, (double)(has_reserved ? reserved : allocated) / (double)capacity);
}

static enum status memory_totals_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;

	table_init(table, "memory_totals", "Memory totals",
	           "peaks that the allocators reported over the whole trace, including memory from before the trace");
	table_columns(table, columns, TOTALS_COLUMNS);
	for (uint32_t i = 0; i < model->meta_count; i++) {
		const char *key = model_text(model, model->meta[i].key);
		const char *device = device_of(key, ".allocated_peak_bytes", &table->arena);
		const char *reserved = device ? NULL : device_of(key, ".reserved_peak_bytes", &table->arena);

		if (model->meta[i].process >= model->processes_count)
			continue;
		if (device)
			memory_totals_add_row(table, model, model->meta[i].process, device);
		else if (reserved && !has_allocated(model, model->meta[i].process, reserved, &table->arena))
			memory_totals_add_row(table, model, model->meta[i].process, reserved);
	}
	if (!table->row_count)
		table->empty = model_reason(model, REASON_NO_TOTALS);
	return STATUS_OK;
}

const struct analysis analysis_memory_totals = {
	.name = "memory_totals",
	.row = "device",
	.question = "how full was the device memory?",
	.run = memory_totals_run,
};
