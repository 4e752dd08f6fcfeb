/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_peak.c: the tables `memory_peak`, `memory_modules`, `memory_lines`: the memory alive when each device of each
 * process held most, by the operation, module or Python line that allocated it.
 */
#include "analysis/analysis_context.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/shared/labels.h"
#include "analysis/shared/span_places.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/reasons.h"
#include "table/bound.h"

enum {
	PEAK_PROCESS,
	PEAK_DEVICE,
	PEAK_CATEGORY,
	PEAK_BY,
	PEAK_BYTES,
	PEAK_RATIO,
	PEAK_COUNT,
	PEAK_COLUMNS
};

static const struct table_column peak_columns[PEAK_COLUMNS] = {
	[PEAK_PROCESS] = PROCESS_COLUMN,
	[PEAK_DEVICE] = MEMORY_DEVICE_COLUMN,
	[PEAK_CATEGORY] = {.name = "category",
                           .type = TABLE_TEXT,
                           .role = ROLE_KEY,
                           .definition = "purpose of the memory, see the table memory"},
	[PEAK_BY] = {.type = TABLE_TEXT, .role = ROLE_KEY}, /* see struct place_kind */
	[PEAK_BYTES] =
		{.name = "alive_bytes",
                 .title = "alive",
                 .type = TABLE_INT,
                 .unit = UNIT_BYTES,
                 .definition = "bytes alive when the sum of all categories was largest; the rows sum to the peaks",
                 .rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL,
                 .more = MORE_SUM},
	[PEAK_RATIO] = {.name = "ratio",
                        .title = "%",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = "share of the peak",
                        .denominator = "all bytes alive at the peak on this device of this process",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[PEAK_COUNT] = {.name = "live_allocations",
                        .title = "allocations",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "number of allocations alive at the peak",
                        .more = MORE_SUM},
};

struct memory_peak_alive {
	int category;
	uint32_t by; /* place; 0: none */
	wide_bytes bytes;
	int64_t count;
};

struct peak_fold;

struct place_kind {
	const char *table, *title, *text; /* of the table */
	const char *column, *column_title, *definition;
	bool keeps_end;   /* of the column: a text that is cut keeps its end */
	const char *none; /* why there is no place */
	uint32_t (*place_of)(struct peak_fold *fold, const struct memory_event *event); /* 0: none */
	const char *(*name_of)(struct peak_fold *fold, uint32_t place);
};

struct peak_fold {
	const struct model *model;
	const struct place_kind *kind;
	struct table *table;
	struct memory_peak_alive *alive; /* in the current pool */
	size_t count, capacity;
	wide_bytes total;
	bool has_place; /* some allocation has one */
	struct memory_unknown unknown;
	struct span_places places;
};

/* ---- places ------------------------------------------------------------------------------------------------------ */

static uint32_t operation_of(struct peak_fold *fold, const struct memory_event *event)
{
	return memory_allocated_by(fold->model, event);
}

static uint32_t module_of(struct peak_fold *fold, const struct memory_event *event)
{
	return span_module_of(&fold->places, event->track, event->row);
}

static uint32_t memory_peak_line_of(struct peak_fold *fold, const struct memory_event *event)
{
	return event->stack ? span_line_of_stack(&fold->places, event->stack)
	                    : span_line_of(&fold->places, event->track, event->row);
}

static const char *string_of(struct peak_fold *fold, uint32_t place)
{
	return model_text(fold->model, place);
}

static const char *frame_of(struct peak_fold *fold, uint32_t place)
{
	return span_line_text(&fold->places, place, &fold->table->arena);
}

static const struct place_kind operations = {
	.table = "memory_peak",
	.title = "Memory alive at the peak",
	.text = "memory alive at the peak of each device of each process, by category and allocating operation",
	.column = "allocated_by",
	.column_title = "allocated by",
	.definition =
		"innermost operation, range or phase open during the allocation, except operations that only allocate "
		"for another one (aten::empty). In a memory snapshot: the operation in the stack, otherwise the "
		"innermost Python function",
	.none = "no span was open during the allocation",
	.place_of = operation_of,
	.name_of = string_of,
};

static const struct place_kind modules = {
	.table = "memory_modules",
	.title = "Memory alive at the peak, by module",
	.text = "memory alive at the peak of each device of each process, by category and allocating module",
	.column = "module",
	.column_title = "module",
	.keeps_end = true,
	.definition =
		"innermost module whose forward was running during the allocation; in a backward, during its forward",
	.none = "no module's forward was running during the allocation",
	.place_of = module_of,
	.name_of = string_of,
};

static const struct place_kind lines = {
	.table = "memory_lines",
	.title = "Memory alive at the peak, by line",
	.text = "memory alive at the peak of each device of each process, by category and allocating line",
	.column = "line",
	.column_title = "line",
	.keeps_end = true,
	.definition = "innermost line of the user's own program during the allocation; in a backward, during its forward",
	.none = "no line of the program was running during the allocation",
	.place_of = memory_peak_line_of,
	.name_of = frame_of,
};

/* Returns why an allocation has no place of this kind. */
static const char *no_place(const struct peak_fold *fold)
{
	return fold->kind == &lines && fold->model->stacks_count <= 1 ? model_reason(fold->model, REASON_NO_LINES)
	                                                              : fold->kind->none;
}

/* ---- the peak ---------------------------------------------------------------------------------------------------- */

static int compare_groups(const void *left, const void *right)
{
	const struct memory_peak_alive *a = left, *b = right;

	if (a->category != b->category)
		return a->category - b->category;
	return (a->by > b->by) - (a->by < b->by);
}

static void list_alive(void *context, const struct memory_event *event)
{
	struct peak_fold *fold = context;

	STORAGE_GROW(fold->model->storage, fold->alive, fold->count, fold->capacity, 256);
	fold->alive[fold->count++] = (struct memory_peak_alive){.category = event->category,
	                                                        .by = fold->kind->place_of(fold, event),
	                                                        .bytes = (wide_bytes)event->bytes,
	                                                        .count = 1};
}

static void add_alive(struct peak_fold *fold, const struct memory_pool *pool, const struct memory_peak_alive *alive)
{
	struct table *table = fold->table;
	int row = table_row(table);

	table_set_text(table, row, PEAK_PROCESS, process_label(fold->model, pool->process, &table->arena));
	table_set_text(table, row, PEAK_DEVICE, memory_device_name(&table->arena, pool->device));
	table_set_text(table, row, PEAK_CATEGORY, memory_category_name(alive->category));
	fold->has_place |= alive->by != 0;
	if (alive->by)
		table_set_text(table, row, PEAK_BY, fold->kind->name_of(fold, alive->by));
	else
		table_set_missing(table, row, PEAK_BY, no_place(fold));
	table_set_int(table, row, PEAK_BYTES, bytes_that_fit(alive->bytes));
	table_set_int(table, row, PEAK_COUNT, alive->count);
	if (pool->peak > 0)
		table_set_double(table, row, PEAK_RATIO, (double)alive->bytes / (double)pool->peak);
}

static void memory_peak_end_pool(void *context, const struct memory_pool *pool)
{
	struct peak_fold *fold = context;

	if (pool->unknown_peak)
		memory_unknown_add(&fold->unknown, pool, memory_peak_unknown(pool, &fold->table->head), fold->table);
	if (pool->unknown_peak && !pool->is_part)
		return;
	fold->count = 0;
	memory_pool_at_peak(pool, list_alive, fold);
	if (!fold->count)
		return;
	merge_sort_in(fold->model->storage, fold->alive, fold->count, sizeof(*fold->alive), compare_groups);
	for (size_t i = 0, end; i < fold->count; i = end) {
		struct memory_peak_alive group = fold->alive[i];

		for (end = i + 1; end < fold->count && compare_groups(&fold->alive[i], &fold->alive[end]) == 0; end++) {
			group.bytes += fold->alive[end].bytes;
			group.count++;
		}
		add_alive(fold, pool, &group);
	}
	fold->total += pool->peak;
}

static void memory_peak_add_columns(struct table *table, const struct place_kind *kind)
{
	for (int i = 0; i < PEAK_COLUMNS; i++) {
		struct table_column column = peak_columns[i];

		if (i == PEAK_BY) {
			column.name = kind->column;
			column.title = kind->column_title;
			column.definition = kind->definition;
			column.keeps_end = kind->keeps_end;
		}
		table_column(table, &column);
	}
}

static void run_kind(const struct place_kind *kind, struct analysis_context *context, struct table *table)
{
	const struct model *model = context->model;
	struct peak_fold fold = {.model = model, .table = table, .kind = kind};

	table_init(table, kind->table, kind->title, kind->text);
	memory_peak_add_columns(table, kind);
	table_bound(table, PEAK_BYTES);
	span_places_init(&fold.places, model);
	memory_pools_each(context, &(struct memory_visitor){.context = &fold, .end = memory_peak_end_pool});
	table_add_more(table, PEAK_BY);
	storage_release(model->storage, fold.alive);
	span_places_release(&fold.places);
	table->columns[PEAK_BYTES].total = (double)bytes_that_fit(fold.total);
	table_sort(table, PEAK_BY, true);
	table_sort(table, PEAK_BYTES, false);
	if (!table->row_count)
		table->empty = memory_not_recorded(context, &table->arena);
	else if (!fold.has_place && kind != &operations)
		table->empty = no_place(&fold);
	else
		table->note = memory_lacks(model, &context->options);
	if (!fold.has_place && kind != &operations)
		table_limit(table, 0);
	memory_unknown_tell(&fold.unknown, table);
}

static enum status run_operations(struct analysis_context *context, struct table *table, struct error *err)
{
	run_kind(&operations, context, table);
	return STATUS_OK;
}

static enum status run_modules(struct analysis_context *context, struct table *table, struct error *err)
{
	run_kind(&modules, context, table);
	return STATUS_OK;
}

static enum status run_lines(struct analysis_context *context, struct table *table, struct error *err)
{
	run_kind(&lines, context, table);
	return STATUS_OK;
}

const struct analysis analysis_memory_peak = {
	.name = "memory_peak",
	.row = "category and allocating operation",
	.question = "which operations allocated the memory alive at the peak?",
	.run = run_operations,
	.with_past = true,
};
const struct analysis analysis_memory_modules = {
	.name = "memory_modules",
	.row = "category and module",
	.question = "which modules allocated the memory alive at the peak?",
	.run = run_modules,
	.with_past = true,
};
const struct analysis analysis_memory_lines = {
	.name = "memory_lines",
	.row = "category and Python line",
	.question = "which lines allocated the memory alive at the peak?",
	.run = run_lines,
	.with_past = true,
};
