/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_growth.c: the table `memory_growth`: memory that grows from step to step, by category and allocating
 * operation and, if Python lines were recorded, by line.
 */
#include "analysis/analysis_context.h"
#include "analysis/memory/growth.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/shared/labels.h"
#include "analysis/shared/span_places.h"
#include "base/clamped.h"
#include "base/hash.h"
#include "base/storage.h"
#include "model/reasons.h"
#include "table/bound.h"

#include <string.h>

enum {
	GROWTH_PROCESS,
	GROWTH_DEVICE,
	GROWTH_CATEGORY,
	GROWTH_BY,
	GROWTH_LINE,
	GROWTH_SLOPE,
	GROWTH_LOW,
	GROWTH_HIGH,
	GROWTH_COUNT_SLOPE,
	GROWTH_LIVE,
	GROWTH_COUNT,
	GROWTH_TREND,
	GROWTH_COLUMNS,
};

static const struct table_column columns[GROWTH_COLUMNS] = {
	[GROWTH_PROCESS] = PROCESS_COLUMN,
	[GROWTH_DEVICE] = MEMORY_DEVICE_COLUMN,
	[GROWTH_CATEGORY] = {.name = "category",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "purpose of the memory, see the table memory"},
	[GROWTH_BY] = {.name = "allocated_by",
                       .title = "allocated by",
                       .type = TABLE_TEXT,
                       .role = ROLE_KEY,
                       .definition = "operation that allocated the memory, see the table memory_peak"},
	[GROWTH_LINE] =
		{.name = "line",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "innermost line of the user's own program during the allocation; in a backward, during its forward"},
	[GROWTH_SLOPE] =
		{.name = "growth_bytes_per_step",
                 .title = "growth per step",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_BYTES,
                 .definition =
                         "least-squares slope of the bytes alive at the step ends, over the last half of the complete steps "
                         "(at least three)",
                 .more = MORE_SUM},
	[GROWTH_LOW] = {.name = "growth_low_bytes_per_step",
                        .title = "low",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_BYTES,
                        .role = ROLE_EVIDENCE,
                        .definition = "lower end of the 95 % interval of the slope",
                        .is_hidden = true},
	[GROWTH_HIGH] = {.name = "growth_high_bytes_per_step",
                         .title = "high",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_BYTES,
                         .role = ROLE_EVIDENCE,
                         .definition = "upper end of the 95 % interval of the slope",
                         .is_hidden = true},
	[GROWTH_COUNT_SLOPE] =
		{.name = "growth_allocations_per_step",
                 .title = "allocations per step",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_COUNT,
                 .definition = "least-squares slope of the number of allocations alive, over the same steps",
                 .more = MORE_SUM},
	[GROWTH_LIVE] = {.name = "live_bytes",
                         .title = "at last step",
                         .type = TABLE_INT,
                         .unit = UNIT_BYTES,
                         .definition = "bytes alive at the end of the last complete step",
                         .rules = RULE_NOT_NEGATIVE,
                         .more = MORE_SUM},
	[GROWTH_COUNT] = {.name = "live_allocations",
                          .title = "allocations",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "allocations alive at the end of the last complete step",
                          .rules = RULE_NOT_NEGATIVE,
                          .more = MORE_SUM},
	[GROWTH_TREND] = {.name = "trend", .type = TABLE_TEXT, .definition = "verdict, see the table memory"},
};

struct memory_growth_group {
	uint8_t category;
	uint32_t by;   /* string */
	uint32_t line; /* 0: unknown */
	wide_bytes now;
	int64_t count;
	struct growth bytes, allocations; /* start when the group has memory at the end of a step */
};

struct growth_fold {
	const struct model *model;
	struct table *table;
	struct memory_growth_group *groups; /* of the current pool */
	uint32_t group_count, group_capacity;
	uint32_t *slots; /* open addressing, group + 1 or 0; a power of two */
	uint32_t slot_count;
	uint32_t *of_event;  /* by number of the allocation: group + 1; 0: not searched yet */
	struct growth steps; /* tells which steps are looked at */
	bool has_lines;
	struct memory_unknown unknown;
	struct span_places places;
};

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static bool is_group(const struct memory_growth_group *group, uint8_t category, uint32_t by, uint32_t line)
{
	return group->category == category && group->by == by && group->line == line;
}

static uint32_t *memory_growth_find_slot(const struct growth_fold *fold, uint8_t category, uint32_t by, uint32_t line)
{
	uint64_t hash = hash_two((uint64_t)by << 4 | category, line);
	uint32_t slot = (uint32_t)(hash >> 32) & (fold->slot_count - 1);

	while (fold->slots[slot] && !is_group(&fold->groups[fold->slots[slot] - 1], category, by, line))
		slot = (slot + 1) & (fold->slot_count - 1);
	return &fold->slots[slot];
}

static void memory_growth_grow_slots(struct growth_fold *fold)
{
	fold->slot_count = fold->slot_count ? 2 * fold->slot_count : 256;
	fold->slots = storage_resize(fold->model->storage, fold->slots, fold->slot_count, sizeof(*fold->slots));
	for (uint32_t i = 0; i < fold->slot_count; i++)
		fold->slots[i] = 0;
	for (uint32_t i = 0; i < fold->group_count; i++)
		*memory_growth_find_slot(fold, fold->groups[i].category, fold->groups[i].by, fold->groups[i].line) = i +
		                                                                                                     1;
}

/* Returns group + 1. */
static uint32_t memory_growth_find_group(struct growth_fold *fold, const struct memory_event *event)
{
	uint32_t by = memory_allocated_by(fold->model, event);
	uint32_t line = !fold->has_lines ? 0
	                : event->stack   ? span_line_of_stack(&fold->places, event->stack)
	                                 : span_line_of(&fold->places, event->track, event->row);
	uint32_t *slot;

	if (fold->group_count * 2 >= fold->slot_count)
		memory_growth_grow_slots(fold);
	slot = memory_growth_find_slot(fold, event->category, by, line);
	if (*slot)
		return *slot;
	STORAGE_GROW(fold->model->storage, fold->groups, fold->group_count, fold->group_capacity, 64);
	*slot = ++fold->group_count;
	fold->groups[*slot - 1] = (struct memory_growth_group){.category = event->category, .by = by, .line = line};
	return *slot;
}

/* An allocation belongs to one pool; the event that ends it asks again. */
static struct memory_growth_group *memory_growth_group_of(struct growth_fold *fold, const struct memory_event *event)
{
	uint32_t *known = &fold->of_event[event - fold->model->memory];

	if (!*known)
		*known = memory_growth_find_group(fold, event);
	return &fold->groups[*known - 1];
}

static void clear_groups(struct growth_fold *fold)
{
	for (uint32_t i = 0; i < fold->group_count; i++) {
		growth_release(&fold->groups[i].bytes);
		growth_release(&fold->groups[i].allocations);
	}
	for (uint32_t i = 0; i < fold->slot_count; i++)
		fold->slots[i] = 0;
	fold->group_count = 0;
	growth_release(&fold->steps);
}

/* ---- the replay -------------------------------------------------------------------------------------------------- */

static void begin_pool(void *context, const struct memory_pool *pool)
{
	struct growth_fold *fold = context;

	clear_groups(fold);
	growth_init(&fold->steps, pool->step_count);
}

static void change(void *context, const struct memory_event *event, int sign)
{
	struct memory_growth_group *group = memory_growth_group_of(context, event);

	group->now += sign * (wide_bytes)event->bytes;
	group->count += sign;
}

/* A group that appears later was empty before. */
static void memory_growth_end_step(void *context, const struct memory_pool *pool, uint32_t step)
{
	struct growth_fold *fold = context;

	for (uint32_t i = 0; i < fold->group_count && growth_wants(&fold->steps, pool->ordinal); i++) {
		struct memory_growth_group *group = &fold->groups[i];

		if (!group->bytes.x && !group->now && !group->count)
			continue;
		if (!group->bytes.x) {
			growth_init(&group->bytes, pool->step_count);
			growth_init(&group->allocations, pool->step_count);
		}
		growth_fill(&group->bytes, pool->ordinal);
		growth_fill(&group->allocations, pool->ordinal);
		growth_add(&group->bytes, pool->ordinal, (double)group->now);
		growth_add(&group->allocations, pool->ordinal, (double)group->count);
	}
}

static void set_slopes(struct table *table, int row, const struct memory_growth_group *group)
{
	struct slope bytes, allocations;

	if (!growth_slope(&group->bytes, &bytes) || !growth_slope(&group->allocations, &allocations))
		return;
	table_set_double(table, row, GROWTH_SLOPE, bytes.slope);
	table_set_double(table, row, GROWTH_LOW, bytes.low);
	table_set_double(table, row, GROWTH_HIGH, bytes.high);
	table_set_double(table, row, GROWTH_COUNT_SLOPE, allocations.slope);
}

/* Returns false for a group that never changes: it tells nothing. */
static bool has_changed(const struct memory_growth_group *group)
{
	for (uint32_t i = 1; i < group->bytes.count; i++)
		if (group->bytes.y[i] != group->bytes.y[0] || group->allocations.y[i] != group->allocations.y[0])
			return true;
	return false;
}

static void set_line(struct growth_fold *fold, int row, uint32_t line)
{
	struct table *table = fold->table;

	if (line)
		table_set_text(table, row, GROWTH_LINE, span_line_text(&fold->places, line, &table->arena));
	else
		table_set_missing(table, row, GROWTH_LINE,
		                  fold->has_lines ? "no line of the program was running during the allocation"
		                                  : model_reason(fold->model, REASON_NO_LINES));
}

static void memory_growth_end_pool(void *context, const struct memory_pool *pool)
{
	struct growth_fold *fold = context;
	struct table *table = fold->table;

	if (pool->unknown_growth)
		memory_unknown_add(&fold->unknown, pool, pool->unknown_growth, table);
	for (uint32_t i = 0; i < fold->group_count && pool->step_count >= 3 && !pool->unknown_growth; i++) {
		const struct memory_growth_group *group = &fold->groups[i];
		int row;

		if (!has_changed(group))
			continue;
		row = table_row(table);
		table_set_text(table, row, GROWTH_PROCESS, process_label(fold->model, pool->process, &table->arena));
		table_set_text(table, row, GROWTH_DEVICE, memory_device_name(&table->arena, pool->device));
		table_set_text(table, row, GROWTH_CATEGORY, memory_category_name(group->category));
		table_set_missing(table, row, GROWTH_BY, "no span was open during the allocation");
		if (group->by)
			table_set_text(table, row, GROWTH_BY, model_text(fold->model, group->by));
		set_line(fold, row, group->line);
		set_slopes(table, row, group);
		table_set_int(table, row, GROWTH_LIVE, clamped_int(group->bytes.y[group->bytes.count - 1]));
		table_set_int(table, row, GROWTH_COUNT,
		              clamped_int(group->allocations.y[group->allocations.count - 1]));
		for (int column = GROWTH_LIVE;
		     column <= GROWTH_COUNT && fold->model->processes[pool->process].removed_memory; column++)
			table_set_missing(table, row, column, pool->unknown_peak);
		table_set_text(table, row, GROWTH_TREND, growth_verdict(&group->bytes, &table->arena));
	}
}

static enum status memory_growth_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct growth_fold fold = {.model = model, .table = table, .has_lines = model->stacks_count > 1};
	const struct memory_visitor visitor = {.context = &fold,
	                                       .begin = begin_pool,
	                                       .change = change,
	                                       .step_end = memory_growth_end_step,
	                                       .end = memory_growth_end_pool};
	uint32_t steps = 0;

	table_init(table, "memory_growth", "Memory growth",
	           "bytes alive at the step ends, for allocations that change from step to step");
	table_columns(table, columns, GROWTH_COLUMNS);
	table_bound(table, GROWTH_SLOPE);
	table->columns[GROWTH_LINE].is_hidden = !fold.has_lines;
	span_places_init(&fold.places, model);
	fold.of_event = storage_resize(model->storage, NULL, (size_t)model->memory_count + 1, sizeof(*fold.of_event));
	memset(fold.of_event, 0, ((size_t)model->memory_count + 1) * sizeof(*fold.of_event));
	memory_pools_each(context, &visitor);
	table_add_more(table, GROWTH_BY);
	span_places_release(&fold.places);
	clear_groups(&fold);
	storage_release(model->storage, fold.groups);
	storage_release(model->storage, fold.slots);
	storage_release(model->storage, fold.of_event);
	table_sort(table, GROWTH_SLOPE, false);
	for (uint32_t i = 0; i < model->steps_count; i++)
		steps += model->steps[i].has_memory;
	if (!table->row_count)
		table->empty = !model->memory_count ? memory_not_recorded(context, &table->arena)
		               : steps < 3          ? "memory was recorded in fewer than three steps"
		                           : "the same memory was alive at the end of every step in the last half";
	else
		table->note = memory_lacks(model, &context->options);
	memory_unknown_tell(&fold.unknown, table);
	return STATUS_OK;
}

const struct analysis analysis_memory_growth = {
	.name = "memory_growth",
	.row = "category, allocating operation and, if recorded, line",
	.question = "which allocations grow from step to step?",
	.run = memory_growth_run,
	.with_past = true,
};
