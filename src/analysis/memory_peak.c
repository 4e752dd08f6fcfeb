/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_peak.c: the tables `memory_peak`, `memory_modules`, `memory_lines`: what was alive when each device of each process held most, by the
 * operation, the module, the line of Python that had allocated it. What a backward allocates is its forward's.
 */
#include "analysis/labels.h"
#include "analysis/memory_pool.h"
#include "analysis/python_places.h"

#include "base/memory.h"
#include "model/number_map.h"

#include <stdlib.h>

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
	[PEAK_PROCESS] = {.name = "process", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "rank, or pid"},
	[PEAK_DEVICE] = {.name = "device",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "host, or the number of the device"},
	[PEAK_CATEGORY] = {.name = "category",
                           .type = TABLE_TEXT,
                           .role = ROLE_KEY,
                           .definition = "what it is for, see the table memory"},
	[PEAK_BY] = {.type = TABLE_TEXT, .role = ROLE_KEY}, /* see struct place_kind */
	[PEAK_BYTES] =
		{.name = "alive_bytes",
                 .title = "alive",
                 .type = TABLE_INT,
                 .unit = UNIT_BYTES,
                 .definition = "bytes alive when the sum of all categories was largest; the rows sum to the peaks",
                 .rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL},
	[PEAK_RATIO] = {.name = "ratio",
                        .title = "%",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = "share of the peak",
                        .denominator = "all bytes alive then on that device of that process",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[PEAK_COUNT] = {.name = "allocations",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "number of allocations that were alive"},
};

struct alive {
	int category;
	uint32_t by; /* place; 0: none */
	wide_bytes bytes;
	int64_t count;
};

struct peak_fold;

struct place_kind {
	const char *table, *title, *text; /* of the table */
	const char *column, *column_title, *definition;
	const char *none;                                                               /* why there is no place */
	uint32_t (*place_of)(struct peak_fold *fold, const struct memory_event *event); /* 0: none */
	const char *(*name_of)(struct peak_fold *fold, uint32_t place);
};

struct peak_fold {
	const struct model *model;
	const struct place_kind *kind;
	struct table *table;
	struct alive *alive; /* in the pool that is looked at */
	size_t count, capacity;
	wide_bytes total;
	bool has_place;          /* of any allocation */
	struct number_map links; /* track and row of a backward -> its link */
	uint32_t *user_frames;   /* of the stacks */
	struct number_map lines; /* function and line -> the first of its frames */
	struct buffer text;
};

/* ---- places -------------------------------------------------------------------------------------------------------------- */

static void find_links(struct peak_fold *fold)
{
	const struct model *model = fold->model;

	for (uint32_t i = 0; i < model->links_count; i++) {
		const struct model_link *link = &model->links[i];

		if (link->kind == STEPSCOPE_LINK_BACKWARD && link->from_row != MODEL_NONE && link->to_row != MODEL_NONE)
			number_map_set(&fold->links, (uint64_t)link->to_track << 32 | link->to_row, i);
	}
}

typedef uint32_t (*use_span)(const struct span_chunk *chunk, uint32_t index); /* 0: goes on outwards */

static uint32_t search_outwards(const struct model *model, uint32_t track, uint32_t row, use_span use)
{
	uint32_t place = 0;

	while (!place && track < model->tracks_count && row < model->tracks[track]->span_count) {
		uint32_t index;
		const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &index);

		place = use(chunk, index);
		row = chunk->parent[index];
	}
	return place;
}

/* The link from the forward of the backward that the span lies in, innermost first; NULL: there is none. */
static const struct model_link *forward_of(const struct peak_fold *fold, uint32_t track, uint32_t row)
{
	const struct model *model = fold->model;

	while (fold->links.count && track < model->tracks_count && row < model->tracks[track]->span_count) {
		uint32_t index, link = number_map_find(&fold->links, (uint64_t)track << 32 | row);
		const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &index);

		if (link != NUMBER_MAP_NONE)
			return &model->links[link];
		row = chunk->parent[index];
	}
	return NULL;
}

static uint32_t search_around(const struct peak_fold *fold, const struct memory_event *event, use_span use)
{
	const struct model_link *forward = forward_of(fold, event->track, event->row);
	uint32_t place = forward ? search_outwards(fold->model, forward->from_track, forward->from_row, use) : 0;

	return place ? place : search_outwards(fold->model, event->track, event->row, use);
}

static uint32_t operation_of(struct peak_fold *fold, const struct memory_event *event)
{
	return memory_allocated_by(fold->model, event);
}

static uint32_t use_module(const struct span_chunk *chunk, uint32_t index)
{
	return chunk->kind[index] == SPAN_MODULE ? chunk->name[index] : 0;
}

static uint32_t module_of(struct peak_fold *fold, const struct memory_event *event)
{
	return search_around(fold, event, use_module);
}

static uint32_t line_of(struct peak_fold *fold, const struct memory_event *event)
{
	if (!fold->user_frames)
		fold->user_frames = python_user_frames(fold->model);
	uint32_t frame = fold->user_frames[search_around(fold, event, span_stack)];
	const struct stack_node *node = &fold->model->stacks[frame];
	/* one line has several entries, by its callers */
	uint64_t key = ((uint64_t)node->frame << 32 | node->line) * 0x9e3779b97f4a7c15u + node->file;
	uint32_t first = frame ? number_map_find(&fold->lines, key) : 0;

	if (first == NUMBER_MAP_NONE)
		number_map_set(&fold->lines, key, first = frame);
	return first;
}

static const char *string_of(struct peak_fold *fold, uint32_t place)
{
	return model_text(fold->model, place);
}

static const char *frame_of(struct peak_fold *fold, uint32_t place)
{
	buffer_clear(&fold->text);
	python_frame_text(fold->model, &fold->model->stacks[place], python_folder(fold->model), &fold->text);
	return arena_dup_n(&fold->table->arena, fold->text.data, fold->text.length);
}

static const struct place_kind operations = {
	.table = "memory_peak",
	.title = "Memory alive at the peak",
	.text = "what was alive when each device of each process held most, by category and by what allocated it",
	.column = "allocated_by",
	.column_title = "allocated by",
	.definition =
		"innermost operation, range or phase that was open when it was allocated, but for those that only get "
		"memory for another one (aten::empty)",
	.none = "nothing was open when it was allocated",
	.place_of = operation_of,
	.name_of = string_of,
};

static const struct place_kind modules = {
	.table = "memory_modules",
	.title = "Memory alive at the peak, by module",
	.text = "what was alive when each device of each process held most, by category and by the module that allocated it",
	.column = "module",
	.column_title = "module",
	.definition =
		"innermost module whose forward was running when it was allocated; in a backward, when its forward ran",
	.none = "no module's forward was running when it was allocated",
	.place_of = module_of,
	.name_of = string_of,
};

static const struct place_kind lines = {
	.table = "memory_lines",
	.title = "Memory alive at the peak, by line",
	.text = "what was alive when each device of each process held most, by category and by the line that allocated it",
	.column = "line",
	.column_title = "line",
	.definition =
		"innermost line of the user's own program that was running when it was allocated; in a backward, when its "
		"forward ran",
	.none = "no line of the program is known: run --with lines",
	.place_of = line_of,
	.name_of = frame_of,
};

/* ---- the peak -------------------------------------------------------------------------------------------------------------- */

static int compare_groups(const void *left, const void *right)
{
	const struct alive *a = left, *b = right;

	if (a->category != b->category)
		return a->category - b->category;
	return (a->by > b->by) - (a->by < b->by);
}

static void list_alive(void *context, const struct memory_event *event)
{
	struct peak_fold *fold = context;

	if (fold->count == fold->capacity) {
		fold->capacity = fold->capacity ? 2 * fold->capacity : 256;
		fold->alive = memory_resize(fold->alive, fold->capacity, sizeof(*fold->alive));
	}
	fold->alive[fold->count++] = (struct alive){.category = event->category,
	                                            .by = fold->kind->place_of(fold, event),
	                                            .bytes = (wide_bytes)event->bytes,
	                                            .count = 1};
}

static void add_alive(struct peak_fold *fold, const struct memory_pool *pool, const struct alive *alive)
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
		table_set_missing(table, row, PEAK_BY, fold->kind->none);
	table_set_int(table, row, PEAK_BYTES, bytes_that_fit(alive->bytes));
	table_set_int(table, row, PEAK_COUNT, alive->count);
	if (pool->peak > 0)
		table_set_double(table, row, PEAK_RATIO, (double)alive->bytes / (double)pool->peak);
}

static void end_pool(void *context, const struct memory_pool *pool)
{
	struct peak_fold *fold = context;

	fold->count = 0;
	memory_pool_at_peak(pool, list_alive, fold);
	if (!fold->count)
		return;
	qsort(fold->alive, fold->count, sizeof(*fold->alive), compare_groups);
	for (size_t i = 0, end; i < fold->count; i = end) {
		struct alive group = fold->alive[i];

		for (end = i + 1; end < fold->count && compare_groups(&fold->alive[i], &fold->alive[end]) == 0; end++) {
			group.bytes += fold->alive[end].bytes;
			group.count++;
		}
		add_alive(fold, pool, &group);
	}
	fold->total += pool->peak;
}

static void add_columns(struct table *table, const struct place_kind *kind)
{
	for (int i = 0; i < PEAK_COLUMNS; i++) {
		struct table_column column = peak_columns[i];

		if (i == PEAK_BY) {
			column.name = kind->column;
			column.title = kind->column_title;
			column.definition = kind->definition;
		}
		table_column(table, &column);
	}
}

static void run_kind(const struct place_kind *kind, const struct model *model, const struct analysis_options *options,
                     struct table *table)
{
	struct peak_fold fold = {.model = model, .table = table, .kind = kind};

	table_init(table, kind->table, kind->title, kind->text);
	add_columns(table, kind);
	buffer_init(&fold.text, 65536);
	find_links(&fold);
	memory_pools_each(model, options, &(struct memory_visitor){.context = &fold, .end = end_pool});
	free(fold.alive);
	free(fold.user_frames);
	number_map_release(&fold.links);
	number_map_release(&fold.lines);
	buffer_release(&fold.text);
	table->columns[PEAK_BYTES].total = (double)bytes_that_fit(fold.total);
	table_sort(table, PEAK_BY, true);
	table_sort(table, PEAK_BYTES, false);
	if (!table->row_count)
		table->empty = memory_not_recorded;
	else if (!fold.has_place && kind != &operations)
		table->empty = kind->none;
	if (!fold.has_place && kind != &operations)
		table_limit(table, 0);
}

static enum status run_operations(const struct model *model, const struct analysis_options *options,
                                  struct table *table, struct error *err)
{
	run_kind(&operations, model, options, table);
	return STATUS_OK;
}

static enum status run_modules(const struct model *model, const struct analysis_options *options, struct table *table,
                               struct error *err)
{
	run_kind(&modules, model, options, table);
	return STATUS_OK;
}

static enum status run_lines(const struct model *model, const struct analysis_options *options, struct table *table,
                             struct error *err)
{
	run_kind(&lines, model, options, table);
	return STATUS_OK;
}

const struct analysis analysis_memory_peak = {"memory_peak", "what was alive when memory peaked?", run_operations};
const struct analysis analysis_memory_modules = {"memory_modules", "which modules' memory was alive at the peak?",
                                                 run_modules};
const struct analysis analysis_memory_lines = {"memory_lines", "which lines' memory was alive at the peak?", run_lines};
