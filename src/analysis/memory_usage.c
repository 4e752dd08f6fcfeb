/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_usage.c: the tables `memory` (levels and growth by category and device) and `memory_peak` (what was alive at the peak, by
 * what allocated it). Replays the allocations of each process in order of time.
 */
#include "analysis/labels.h"
#include "analysis/statistics.h"
#include "analysis/step_times.h"

#include "base/memory.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define CATEGORIES 7

static const char *const category_names[CATEGORIES] = {"other",      "parameter", "gradient", "optimizer state",
                                                       "activation", "input",     "temporary"};

static const char not_recorded[] = "memory was not recorded: --with memory, and the program calls "
				   "stepscope_memory_alloc()";

/* ---- one pool: a device of a process ---- */

struct level {
	wide_bytes now, peak, at_peak, allocated;
	int64_t count;
};

struct pool {
	uint32_t process;
	int16_t device;
	uint32_t first, last; /* events of the process: [first, last) */
	uint32_t peak_event;  /* the one that made the peak */
	wide_bytes now, peak;
	int64_t unknown_frees; /* of memory that was allocated before recording began */
	struct level levels[CATEGORIES];
	double *at_ends[CATEGORIES + 1]; /* live bytes at the ends of steps, by category and in all */
	double *numbers;
	size_t end_count;
};

static int category_of(const struct memory_event *event)
{
	return event->category < CATEGORIES ? event->category : STEPSCOPE_MEMORY_OTHER;
}

static void pool_alloc(struct pool *pool, const struct memory_event *event, uint32_t number)
{
	struct level *level = &pool->levels[category_of(event)];

	level->count++;
	level->allocated += (wide_bytes)event->bytes;
	level->now += (wide_bytes)event->bytes;
	pool->now += (wide_bytes)event->bytes;
	level->peak = level->now > level->peak ? level->now : level->peak;
	if (pool->now <= pool->peak)
		return;
	pool->peak = pool->now;
	pool->peak_event = number;
	for (int i = 0; i < CATEGORIES; i++)
		pool->levels[i].at_peak = pool->levels[i].now;
}

static void pool_event(struct pool *pool, const struct memory_event *event, uint32_t number)
{
	if (event->device != pool->device)
		return;
	if (!event->is_free) {
		pool_alloc(pool, event, number);
	} else if (event->has_bytes) {
		pool->levels[category_of(event)].now -= (wide_bytes)event->bytes;
		pool->now -= (wide_bytes)event->bytes;
	} else {
		pool->unknown_frees++;
	}
}

static void pool_step_end(struct pool *pool, size_t ordinal)
{
	pool->numbers[pool->end_count] = (double)ordinal;
	for (int i = 0; i < CATEGORIES; i++)
		pool->at_ends[i][pool->end_count] = (double)pool->levels[i].now;
	pool->at_ends[CATEGORIES][pool->end_count++] = (double)pool->now;
}

/* Replays the events up to the end of the last selected step. Levels start at the first event of all: what a selected
 * step finds alive was allocated before. */
static void pool_replay(struct pool *pool, const struct model *model, const struct step_times *times,
                        const struct analysis_options *options)
{
	uint32_t event = pool->first;
	size_t ordinal = 0;

	for (uint32_t i = 0; i < times->count; i++) {
		const struct model_step *step = &model->steps[i];

		if (step->process != pool->process || !times->steps[i].is_selected)
			continue;
		for (; event < pool->last && model->memory[event].time_ns <= step->end_ns; event++)
			pool_event(pool, &model->memory[event], event);
		if (step->has_memory && times->steps[i].is_complete)
			pool_step_end(pool, ordinal);
		ordinal++;
	}
	for (; event < pool->last && !options->has_steps; event++)
		pool_event(pool, &model->memory[event], event);
}

static void pool_init(struct pool *pool, const struct model *model, uint32_t first, uint32_t last, int16_t device,
                      size_t step_count)
{
	*pool = (struct pool){.process = model->memory[first].process, .device = device, .first = first, .last = last};
	pool->numbers = memory_resize(NULL, step_count + 1, sizeof(double));
	for (int i = 0; i <= CATEGORIES; i++)
		pool->at_ends[i] = memory_resize(NULL, step_count + 1, sizeof(double));
}

static void pool_release(struct pool *pool)
{
	free(pool->numbers);
	for (int i = 0; i <= CATEGORIES; i++)
		free(pool->at_ends[i]);
}

/* Calls `use` for every device of every process that allocated, replayed. */
static void each_pool(const struct model *model, const struct analysis_options *options,
                      void (*use)(void *context, const struct pool *pool), void *context)
{
	struct step_times own = {0};
	const struct step_times *times = step_times_get(&own, model, options);

	for (uint32_t first = 0, last; first < model->memory_count; first = last) {
		int16_t lowest = INT16_MAX, highest = INT16_MIN;

		for (last = first;
		     last < model->memory_count && model->memory[last].process == model->memory[first].process;
		     last++) {
			int16_t device = model->memory[last].device;

			lowest = device < lowest ? device : lowest;
			highest = device > highest ? device : highest;
		}
		for (int device = lowest; device <= highest; device++) {
			struct pool pool;

			pool_init(&pool, model, first, last, (int16_t)device, times->count);
			pool_replay(&pool, model, times, options);
			if (pool.peak > 0 || pool.unknown_frees)
				use(context, &pool);
			pool_release(&pool);
		}
	}
	step_times_release(&own);
}

static const char *device_name(struct arena *arena, int16_t device)
{
	return device < 0 ? "host" : arena_printf(arena, "device %d", device);
}

/* ---- memory ---- */

enum {
	MEMORY_PROCESS,
	MEMORY_DEVICE,
	MEMORY_CATEGORY,
	MEMORY_AT_PEAK,
	MEMORY_PEAK,
	MEMORY_LIVE,
	MEMORY_ALLOCATED,
	MEMORY_COUNT,
	MEMORY_GROWTH,
	MEMORY_GROWTH_LOW,
	MEMORY_GROWTH_HIGH,
	MEMORY_COLUMNS,
};

static const struct table_column columns[MEMORY_COLUMNS] = {
	[MEMORY_PROCESS] = {.name = "process", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "rank, or pid"},
	[MEMORY_DEVICE] = {.name = "device",
                           .type = TABLE_TEXT,
                           .role = ROLE_KEY,
                           .definition = "host, or the number of the device"},
	[MEMORY_CATEGORY] = {.name = "category",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "whose memory it is, as the program says; \"all\": their sum"},
	[MEMORY_AT_PEAK] = {.name = "at_peak_bytes",
                            .title = "at peak",
                            .type = TABLE_INT,
                            .unit = UNIT_BYTES,
                            .definition = "bytes alive when the sum of all categories was largest",
                            .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                            .other = "peak_bytes"},
	[MEMORY_PEAK] = {.name = "peak_bytes",
                         .title = "own peak",
                         .type = TABLE_INT,
                         .unit = UNIT_BYTES,
                         .definition = "largest number of bytes of the category alive at one time",
                         .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                         .other = "allocated_bytes"},
	[MEMORY_LIVE] = {.name = "live_bytes",
                         .title = "at end",
                         .type = TABLE_INT,
                         .unit = UNIT_BYTES,
                         .definition = "bytes alive at the end of the recording, or of the selected steps",
                         .rules = RULE_NOT_NEGATIVE},
	[MEMORY_ALLOCATED] = {.name = "allocated_bytes",
                              .title = "allocated",
                              .type = TABLE_INT,
                              .unit = UNIT_BYTES,
                              .definition = "bytes of all allocations together",
                              .rules = RULE_NOT_NEGATIVE},
	[MEMORY_COUNT] = {.name = "allocations",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "number of allocations",
                          .rules = RULE_NOT_NEGATIVE},
	[MEMORY_GROWTH] = {.name = "growth_bytes_per_step",
                           .title = "growth per step",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_BYTES,
                           .definition = "slope of the bytes alive at the ends of complete steps (least squares)"},
	[MEMORY_GROWTH_LOW] = {.name = "growth_low_bytes_per_step",
                               .title = "low",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_BYTES,
                               .role = ROLE_EVIDENCE,
                               .definition = "lower end of the 95 % interval of the slope",
                               .is_hidden = true},
	[MEMORY_GROWTH_HIGH] = {.name = "growth_high_bytes_per_step",
                                .title = "high",
                                .type = TABLE_DOUBLE,
                                .unit = UNIT_BYTES,
                                .role = ROLE_EVIDENCE,
                                .definition = "upper end of the 95 % interval of the slope",
                                .is_hidden = true},
};

struct memory_fold {
	const struct model *model;
	struct table *table;
	int64_t unknown_frees;
};

static void add_level(struct memory_fold *fold, const struct pool *pool, int category, const struct level *level)
{
	struct table *table = fold->table;
	int row = table_row(table);
	struct slope slope;

	table_set_text(table, row, MEMORY_PROCESS, process_label(fold->model, pool->process, &table->arena));
	table_set_text(table, row, MEMORY_DEVICE, device_name(&table->arena, pool->device));
	table_set_text(table, row, MEMORY_CATEGORY, category < CATEGORIES ? category_names[category] : "all");
	table_set_int(table, row, MEMORY_AT_PEAK, bytes_that_fit(level->at_peak));
	table_set_int(table, row, MEMORY_PEAK, bytes_that_fit(level->peak));
	table_set_int(table, row, MEMORY_LIVE, bytes_that_fit(level->now));
	table_set_int(table, row, MEMORY_ALLOCATED, bytes_that_fit(level->allocated));
	table_set_int(table, row, MEMORY_COUNT, level->count);
	for (int column = MEMORY_GROWTH; column <= MEMORY_GROWTH_HIGH; column++)
		table_set_missing(table, row, column, "fewer than three complete steps recorded memory");
	if (!slope_compute(&slope, pool->numbers, pool->at_ends[category], pool->end_count) || !slope.has_interval)
		return;
	table_set_double(table, row, MEMORY_GROWTH, slope.slope);
	table_set_double(table, row, MEMORY_GROWTH_LOW, slope.low);
	table_set_double(table, row, MEMORY_GROWTH_HIGH, slope.high);
}

static void add_pool(void *context, const struct pool *pool)
{
	struct memory_fold *fold = context;
	struct level all = {.now = pool->now, .peak = pool->peak, .at_peak = pool->peak};

	for (int i = 0; i < CATEGORIES; i++) {
		all.allocated += pool->levels[i].allocated;
		all.count += pool->levels[i].count;
	}
	add_level(fold, pool, CATEGORIES, &all);
	for (int i = 1; i <= CATEGORIES; i++) { /* "other" last */
		if (pool->levels[i % CATEGORIES].count)
			add_level(fold, pool, i % CATEGORIES, &pool->levels[i % CATEGORIES]);
	}
	fold->unknown_frees += pool->unknown_frees;
}

static enum status run_memory(const struct model *model, const struct analysis_options *options, struct table *table,
                              struct error *err)
{
	struct memory_fold fold = {.model = model, .table = table};
	uint32_t without = 0;

	table_init(table, "memory", "Memory", "bytes the program allocated, by category and device");
	table_columns(table, columns, MEMORY_COLUMNS);
	each_pool(model, options, add_pool, &fold);
	for (uint32_t i = 0; i < model->steps_count; i++)
		without += !model->steps[i].has_memory;
	if (!table->row_count)
		table->empty = not_recorded;
	else if (options->has_steps)
		table->note = "of a part of the steps: what was allocated before it and is still alive is not counted";
	else if (without)
		table->note = arena_printf(
			&table->arena,
			"memory was not recorded in %u of %u steps: what was allocated or freed in them is unknown",
			without, model->steps_count);
	else if (fold.unknown_frees)
		table->note = arena_printf(&table->arena, "%lld frees were of memory that nobody was seen to allocate",
		                           (long long)fold.unknown_frees);
	return STATUS_OK;
}

const struct analysis analysis_memory = {"memory", "how much memory, and does it grow?", run_memory};

/* ---- memory_peak ---- */

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
                           .definition = "whose memory it is, as the program says"},
	[PEAK_BY] = {.name = "allocated_by",
                     .title = "allocated by",
                     .type = TABLE_TEXT,
                     .role = ROLE_KEY,
                     .definition = "innermost operation, range or phase that was open when it was allocated"},
	[PEAK_BYTES] = {.name = "alive_bytes",
                        .title = "alive",
                        .type = TABLE_INT,
                        .unit = UNIT_BYTES,
                        .definition = "bytes alive when the sum of all categories was largest",
                        .rules = RULE_NOT_NEGATIVE},
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
	uint64_t address;
	uint32_t event;
	int category;
	uint32_t by; /* string; 0: outside of everything */
	wide_bytes bytes;
	int64_t count;
};

static int compare_addresses(const void *left, const void *right)
{
	const struct alive *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return (a->event > b->event) - (a->event < b->event);
}

static int compare_groups(const void *left, const void *right)
{
	const struct alive *a = left, *b = right;

	if (a->category != b->category)
		return a->category - b->category;
	return (a->by > b->by) - (a->by < b->by);
}

static uint32_t span_name(const struct model *model, const struct memory_event *event)
{
	uint32_t index;

	if (event->row == MODEL_NONE || event->track >= model->tracks_count ||
	    event->row >= model->tracks[event->track]->span_count)
		return 0;
	return track_chunk(model->tracks[event->track], event->row, &index)->name[index];
}

/* The allocations that were alive at the peak: of each address the last event until then, when it is no free. */
static size_t list_alive(const struct model *model, const struct pool *pool, struct alive *alive)
{
	size_t events = 0, count = 0;

	for (uint32_t i = pool->first; i <= pool->peak_event; i++) {
		if (model->memory[i].device == pool->device)
			alive[events++] = (struct alive){.address = model->memory[i].address, .event = i};
	}
	qsort(alive, events, sizeof(*alive), compare_addresses);
	for (size_t i = 0; i < events; i++) {
		const struct memory_event *event = &model->memory[alive[i].event];

		if (event->is_free || (i + 1 < events && alive[i + 1].address == alive[i].address))
			continue;
		alive[count++] = (struct alive){.category = category_of(event),
		                                .by = span_name(model, event),
		                                .bytes = (wide_bytes)event->bytes,
		                                .count = 1};
	}
	return count;
}

static void add_alive(struct memory_fold *fold, const struct pool *pool, const struct alive *alive)
{
	struct table *table = fold->table;
	int row = table_row(table);

	table_set_text(table, row, PEAK_PROCESS, process_label(fold->model, pool->process, &table->arena));
	table_set_text(table, row, PEAK_DEVICE, device_name(&table->arena, pool->device));
	table_set_text(table, row, PEAK_CATEGORY, category_names[alive->category]);
	if (alive->by)
		table_set_text(table, row, PEAK_BY, model_text(fold->model, alive->by));
	else
		table_set_missing(table, row, PEAK_BY, "nothing was open when it was allocated");
	table_set_int(table, row, PEAK_BYTES, bytes_that_fit(alive->bytes));
	table_set_int(table, row, PEAK_COUNT, alive->count);
	if (pool->peak > 0)
		table_set_double(table, row, PEAK_RATIO, (double)alive->bytes / (double)pool->peak);
}

static void add_peak(void *context, const struct pool *pool)
{
	struct memory_fold *fold = context;
	size_t events = (size_t)pool->peak_event - pool->first + 1, count;
	struct alive *alive;

	if (pool->peak <= 0)
		return;
	alive = memory_resize(NULL, events, sizeof(*alive));
	count = list_alive(fold->model, pool, alive);
	qsort(alive, count, sizeof(*alive), compare_groups);
	for (size_t i = 0, end; i < count; i = end) {
		struct alive group = alive[i];

		for (end = i + 1; end < count && compare_groups(&alive[i], &alive[end]) == 0; end++) {
			group.bytes += alive[end].bytes;
			group.count++;
		}
		add_alive(fold, pool, &group);
	}
	free(alive);
}

static enum status run_peak(const struct model *model, const struct analysis_options *options, struct table *table,
                            struct error *err)
{
	struct memory_fold fold = {.model = model, .table = table};

	table_init(table, "memory_peak", "Memory alive at the peak",
	           "what was alive when each device of each process held most, by category and by what allocated it");
	table_columns(table, peak_columns, PEAK_COLUMNS);
	each_pool(model, options, add_peak, &fold);
	table_sort(table, PEAK_BY, true);
	table_sort(table, PEAK_BYTES, false);
	if (!table->row_count)
		table->empty = not_recorded;
	return STATUS_OK;
}

const struct analysis analysis_memory_peak = {"memory_peak", "what was alive when memory peaked?", run_peak};
