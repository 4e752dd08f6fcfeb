/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_largest.c: the table `memory_largest`: the largest allocations that were alive at the peak, one by one.
 */
#include "analysis/analysis_context.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_times.h"
#include "base/memory.h"

#include <stdlib.h>

#define ROWS_MAX 50u /* for each device of a process */

enum {
	LARGE_PROCESS,
	LARGE_DEVICE,
	LARGE_BYTES,
	LARGE_CATEGORY,
	LARGE_BY,
	LARGE_BORN,
	LARGE_STEP,
	LARGE_AGE,
	LARGE_COLUMNS,
};

static const struct table_column columns[LARGE_COLUMNS] = {
	[LARGE_PROCESS] = PROCESS_COLUMN,
	[LARGE_DEVICE] = MEMORY_DEVICE_COLUMN,
	[LARGE_BYTES] = {.name = "bytes",
                         .type = TABLE_INT,
                         .unit = UNIT_BYTES,
                         .definition = "size of the allocation",
                         .rules = RULE_NOT_NEGATIVE},
	[LARGE_CATEGORY] = {.name = "category",
                            .type = TABLE_TEXT,
                            .definition = "purpose of the memory, see the table memory"},
	[LARGE_BY] = {.name = "allocated_by",
                      .title = "allocated by",
                      .type = TABLE_TEXT,
                      .definition = "operation that allocated the memory, see the table memory_peak"},
	[LARGE_BORN] = {.name = "born_ns",
                        .title = "allocated",
                        .type = TABLE_INT,
                        .unit = UNIT_NS_SINCE_START,
                        .definition = "time of the allocation, since the first known instant of its process"},
	[LARGE_STEP] = {.name = "born_step",
                        .title = "in step",
                        .type = TABLE_INT,
                        .definition = "number of the step of the allocation"},
	[LARGE_AGE] = {.name = "age_ns",
                       .title = "age",
                       .type = TABLE_INT,
                       .unit = UNIT_NS,
                       .definition = "time from the allocation to the peak",
                       .rules = RULE_NOT_NEGATIVE},
};

struct large_fold {
	const struct model *model;
	struct table *table;
	const struct memory_event **alive; /* in the current pool */
	size_t count, capacity;
	struct memory_unknown unknown;
};

static void list_alive(void *context, const struct memory_event *event)
{
	struct large_fold *fold = context;

	MEMORY_GROW(fold->alive, fold->count, fold->capacity, 256);
	fold->alive[fold->count++] = event;
}

static int compare_sizes(const void *left, const void *right)
{
	const struct memory_event *a = *(const struct memory_event *const *)left;
	const struct memory_event *b = *(const struct memory_event *const *)right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return (a > b) - (a < b);
}

static void memory_largest_add_row(const struct large_fold *fold, const struct memory_pool *pool,
                                   const struct memory_event *event)
{
	struct table *table = fold->table;
	int row = table_row(table);
	uint32_t by = memory_allocated_by(fold->model, event);
	const struct model_step *step = step_times_step_at(fold->model, event->process, event->time_ns);
	const char *before = fold->model->processes[pool->process].has_removed
	                             ? "allocated before the rest of the recording, or by another allocator"
	                             : "allocated before the recording started, or by another allocator";

	table_set_text(table, row, LARGE_PROCESS, process_label(fold->model, pool->process, &table->arena));
	table_set_text(table, row, LARGE_DEVICE, memory_device_name(&table->arena, pool->device));
	table_set_int(table, row, LARGE_BYTES, bytes_that_fit((wide_bytes)event->bytes));
	table_set_text(table, row, LARGE_CATEGORY, memory_category_name(event->category));
	table_set_missing(table, row, LARGE_BY, event->is_found ? before : "no span was open during the allocation");
	table_set_missing(table, row, LARGE_BORN, before);
	table_set_missing(table, row, LARGE_AGE, before);
	table_set_missing(table, row, LARGE_STEP, event->is_found ? before : "allocated outside every step");
	if (by)
		table_set_text(table, row, LARGE_BY, model_text(fold->model, by));
	if (event->is_found)
		return;
	table_set_missing(table, row, LARGE_BORN, "the input has no times");
	table_set_missing(table, row, LARGE_AGE, "the input has no times");
	if (!fold->model->processes[pool->process].has_times)
		return;
	table_set_int(table, row, LARGE_BORN, event->time_ns - fold->model->processes[pool->process].origin_ns);
	table_set_int(table, row, LARGE_AGE, fold->model->memory[pool->peak_event].time_ns - event->time_ns);
	if (step && event->time_ns < step->end_ns)
		table_set_int(table, row, LARGE_STEP, step->number);
}

static void memory_largest_end_pool(void *context, const struct memory_pool *pool)
{
	struct large_fold *fold = context;

	if (pool->unknown_peak)
		memory_unknown_add(&fold->unknown, pool, memory_peak_unknown(pool, &fold->table->head), fold->table);
	if (pool->unknown_peak && !pool->is_part)
		return;
	fold->count = 0;
	memory_pool_at_peak(pool, list_alive, fold);
	if (!fold->count)
		return;
	qsort(fold->alive, fold->count, sizeof(const struct memory_event *), compare_sizes);
	for (size_t i = 0; i < fold->count && i < ROWS_MAX; i++)
		memory_largest_add_row(fold, pool, fold->alive[i]);
	if (fold->count > ROWS_MAX)
		fold->table->note = arena_printf(&fold->table->arena,
		                                 "only the %u largest allocations of each device of each process",
		                                 ROWS_MAX);
}

static enum status memory_largest_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct large_fold fold = {.model = model, .table = table};

	table_init(table, "memory_largest", "Largest allocations at the peak",
	           "single allocations alive at the memory peak of each device of each process");
	table_columns(table, columns, LARGE_COLUMNS);
	memory_pools_each(context, &(struct memory_visitor){.context = &fold, .end = memory_largest_end_pool});
	free(fold.alive);
	const char *lacks = memory_lacks(model, &context->options);
	if (!table->row_count)
		table->empty = memory_not_recorded(context, &table->arena);
	else if (lacks)
		table->note = arena_printf(&table->arena, "%s%s%s", table->note ? table->note : "",
		                           table->note ? "; " : "", lacks);
	memory_unknown_tell(&fold.unknown, table);
	return STATUS_OK;
}

const struct analysis analysis_memory_largest = {
	.name = "memory_largest",
	.row = "allocation",
	.question = "which allocations alive at the peak are the largest?",
	.run = memory_largest_run,
	.with_past = true,
};
