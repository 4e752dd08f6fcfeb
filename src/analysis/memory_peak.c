/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_peak.c: the table `memory_peak`: what was alive when each device of each process held most, and what had allocated it.
 */
#include "analysis/labels.h"
#include "analysis/memory_pool.h"

#include "base/memory.h"

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
	[PEAK_BY] =
		{.name = "allocated_by",
                 .title = "allocated by",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "innermost operation, range or phase that was open when it was allocated, but for those that "
                         "only get memory for another one (aten::empty)"},
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
	uint32_t by; /* string; 0: outside of everything */
	wide_bytes bytes;
	int64_t count;
};

struct peak_fold {
	const struct model *model;
	struct table *table;
	struct alive *alive; /* in the pool that is looked at */
	size_t count, capacity;
	wide_bytes total;
};

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
	                                            .by = memory_allocated_by(fold->model, event),
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
	if (alive->by)
		table_set_text(table, row, PEAK_BY, model_text(fold->model, alive->by));
	else
		table_set_missing(table, row, PEAK_BY, "nothing was open when it was allocated");
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

static enum status run_peak(const struct model *model, const struct analysis_options *options, struct table *table,
                            struct error *err)
{
	struct peak_fold fold = {.model = model, .table = table};

	table_init(table, "memory_peak", "Memory alive at the peak",
	           "what was alive when each device of each process held most, by category and by what allocated it");
	table_columns(table, peak_columns, PEAK_COLUMNS);
	memory_pools_each(model, options, &(struct memory_visitor){.context = &fold, .end = end_pool});
	free(fold.alive);
	table->columns[PEAK_BYTES].total = (double)bytes_that_fit(fold.total);
	table_sort(table, PEAK_BY, true);
	table_sort(table, PEAK_BYTES, false);
	if (!table->row_count)
		table->empty = memory_not_recorded;
	return STATUS_OK;
}

const struct analysis analysis_memory_peak = {"memory_peak", "what was alive when memory peaked?", run_peak};
