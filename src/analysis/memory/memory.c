/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: the table `memory`: levels, peak and growth by category and device.
 */
#include "analysis/analysis_context.h"
#include "analysis/loader/loader_batches.h"
#include "analysis/memory/growth.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/shared/labels.h"
#include "base/units.h"

#include <stepscope/stepscope.h>
#include <string.h>
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
	MEMORY_TREND,
	MEMORY_COLUMNS,
};

static const struct table_column columns[MEMORY_COLUMNS] = {
	[MEMORY_PROCESS] = PROCESS_COLUMN,
	[MEMORY_DEVICE] = MEMORY_DEVICE_COLUMN,
	[MEMORY_CATEGORY] =
		{.name = "category",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "purpose of the memory, given by the program or inferred for PyTorch; \"all\" is the sum of the "
                         "categories"},
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
                         .definition = "bytes alive when memory was recorded last, or at the end of the selected steps",
                         .rules = RULE_NOT_NEGATIVE},
	[MEMORY_ALLOCATED] = {.name = "allocated_bytes",
                              .title = "allocated",
                              .type = TABLE_INT,
                              .unit = UNIT_BYTES,
                              .definition = "total bytes of all allocations, including those before the selected steps",
                              .rules = RULE_NOT_NEGATIVE},
	[MEMORY_COUNT] = {.name = "allocations",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "number of allocations, including those before the selected steps",
                          .rules = RULE_NOT_NEGATIVE},
	[MEMORY_GROWTH] =
		{.name = "growth_bytes_per_step",
                 .title = "growth per step",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_BYTES,
                 .definition =
                         "least-squares slope of the bytes alive at the step ends, over the last half of the complete steps "
                         "(at least three)"},
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
	[MEMORY_TREND] =
		{.name = "trend",
                 .type = TABLE_TEXT,
                 .definition =
                         "grows: the whole interval is above 0, and the mean rises from third to third of these steps; "
                         "shrinks: the reverse; does not grow: both ends of the interval are near 0; otherwise cannot tell"},
};

struct memory_fold {
	const struct model *model;
	struct table *table;
	struct growth growths[MEMORY_CATEGORIES + 1]; /* of the current pool; last: all */
	int64_t unknown_frees, lost_frees;
	wide_bytes found;
	struct memory_unknown unknown;
	bool has_gaps;
	bool has_growth; /* the total of a device grows */
};

static void set_growth(struct memory_fold *fold, int row, const struct growth *growth, const char *unknown)
{
	struct table *table = fold->table;
	struct slope slope;
	const char *verdict = growth_verdict(growth, &table->arena);

	if (unknown) {
		for (int column = MEMORY_GROWTH; column <= MEMORY_TREND; column++)
			table_set_missing(table, row, column, unknown);
		return;
	}
	table_set_text(table, row, MEMORY_TREND, verdict);
	fold->has_growth |= growth == &fold->growths[MEMORY_CATEGORIES] && growth_grows(growth);
	for (int column = MEMORY_GROWTH; column <= MEMORY_GROWTH_HIGH; column++)
		table_set_missing(table, row, column, "memory was recorded in fewer than three complete steps");
	if (!growth_slope(growth, &slope))
		return;
	table_set_double(table, row, MEMORY_GROWTH, slope.slope);
	table_set_double(table, row, MEMORY_GROWTH_LOW, slope.low);
	table_set_double(table, row, MEMORY_GROWTH_HIGH, slope.high);
}

/* If only the rest of a recording is left, a category has the numbers of the rest. The total would only be a bound, so
 * its cells are missing. */
static void set_levels(struct table *table, int row, const struct memory_pool *pool, int category,
                       const struct memory_level *level)
{
	bool is_all = category == MEMORY_CATEGORIES;

	table_set_int(table, row, MEMORY_AT_PEAK, bytes_that_fit(level->at_peak));
	table_set_int(table, row, MEMORY_PEAK, bytes_that_fit(level->peak));
	table_set_int(table, row, MEMORY_LIVE, bytes_that_fit(level->now));
	table_set_int(table, row, MEMORY_ALLOCATED, bytes_that_fit(level->allocated));
	table_set_int(table, row, MEMORY_COUNT, level->count);
	if (!pool->unknown_peak || (pool->is_part && !is_all))
		return;
	for (int column = MEMORY_AT_PEAK; column <= MEMORY_COUNT; column++)
		table_set_missing(table, row, column, pool->unknown_peak);
	if (is_all)
		table_set_missing(table, row, MEMORY_PEAK, memory_peak_unknown(pool, &table->arena));
}

static void memory_add_level(struct memory_fold *fold, const struct memory_pool *pool, int category,
                             const struct memory_level *level)
{
	struct table *table = fold->table;
	int row = table_row(table);

	table_set_text(table, row, MEMORY_PROCESS, process_label(fold->model, pool->process, &table->arena));
	table_set_text(table, row, MEMORY_DEVICE, memory_device_name(&table->arena, pool->device));
	table_set_text(table, row, MEMORY_CATEGORY, memory_category_name(category));
	set_levels(table, row, pool, category, level);
	set_growth(fold, row, &fold->growths[category], pool->unknown_growth);
}

static void begin_pool(void *context, const struct memory_pool *pool)
{
	struct memory_fold *fold = context;

	for (int i = 0; i <= MEMORY_CATEGORIES; i++) {
		growth_release(&fold->growths[i]);
		growth_init(&fold->growths[i], pool->step_count);
	}
}

static void memory_end_step(void *context, const struct memory_pool *pool, uint32_t step)
{
	struct memory_fold *fold = context;

	for (int i = 0; i < MEMORY_CATEGORIES; i++)
		growth_add(&fold->growths[i], pool->ordinal, (double)pool->levels[i].now);
	growth_add(&fold->growths[MEMORY_CATEGORIES], pool->ordinal, (double)pool->now);
}

static void memory_end_pool(void *context, const struct memory_pool *pool)
{
	struct memory_fold *fold = context;
	struct table *table = fold->table;
	struct memory_level all = {.now = pool->now, .peak = pool->peak, .at_peak = pool->peak};

	for (int i = 0; i < MEMORY_CATEGORIES; i++) {
		all.allocated += pool->levels[i].allocated;
		all.count += pool->levels[i].count;
	}
	memory_add_level(fold, pool, MEMORY_CATEGORIES, &all);
	for (int i = 0; i < MEMORY_CATEGORIES; i++) {
		int category = memory_category_at(i);

		if (pool->levels[category].count && (pool->is_part || !pool->unknown_peak || !pool->unknown_growth))
			memory_add_level(fold, pool, category, &pool->levels[category]);
	}
	if (pool->unknown_peak)
		memory_unknown_add(&fold->unknown, pool, memory_peak_unknown(pool, &table->head), table);
	fold->unknown_frees += pool->unknown_frees;
	fold->lost_frees += pool->lost_frees;
	fold->found += pool->found;
	fold->has_gaps |= pool->has_gaps;
}

/* Returns true if the oldest events of some process were removed. */
static bool has_removed(const struct model *model)
{
	bool has = false;

	for (uint32_t i = 0; i < model->processes_count; i++)
		has |= model->processes[i].has_removed;
	return has;
}

/* Returns the note on the limits of the numbers. */
static const char *note_of(struct table *table, const struct model *model, const struct analysis_options *options,
                           const struct memory_fold *fold)
{
	const char *lacks = memory_lacks(model, options);
	uint32_t without = 0;

	if (lacks)
		return lacks;
	for (uint32_t i = 0; i < model->steps_count; i++)
		without += !model->steps[i].has_memory;
	if (without)
		return arena_printf(
			&table->arena, "memory %s in %u of %u steps, so their allocations and frees are unknown%s",
			has_removed(model) ? "was not recorded, or was removed later," : "was not recorded", without,
			model->steps_count,
			fold->has_gaps
				? "; after such steps, only permanent memory (such as parameters and optimizer state), memory seen "
				  "again, and new memory count"
				: "");
	if (fold->unknown_frees)
		return arena_printf(&table->arena, "%s without a recorded allocation: not counted",
		                    counted(&table->arena, (uint64_t)fold->unknown_frees, "free"));
	if (fold->lost_frees)
		return arena_printf(&table->arena,
		                    "%s without a recorded free: counted as freed when the address was allocated again",
		                    counted(&table->arena, (uint64_t)fold->lost_frees, "allocation"));
	return NULL;
}

/* Returns false for traces of torch.profiler, which do not tell which tensors a program holds. Traces that stepscope
 * exported do. */
static bool has_owners(const struct model *model)
{
	const char *format = model_meta(model, MODEL_NONE, "trace.format");

	if (!format || strcmp(format, "kineto") != 0)
		return true;
	for (uint32_t i = 0; i < model->memory_count; i++) {
		uint8_t category = model->memory[i].category;

		if (category == STEPSCOPE_MEMORY_PARAMETER || category == STEPSCOPE_MEMORY_GRADIENT ||
		    category == STEPSCOPE_MEMORY_OPTIMIZER)
			return true;
	}
	return false;
}

static void memory_add_note(struct table *table, const char *text)
{
	table->note = arena_printf(&table->arena, "%s%s%s", table->note ? table->note : "", table->note ? "; " : "",
	                           text);
}

static enum status run_memory(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct memory_fold fold = {.model = model, .table = table};
	const struct memory_visitor visitor = {
		.context = &fold, .begin = begin_pool, .step_end = memory_end_step, .end = memory_end_pool};
	char bytes[UNITS_BYTES];

	table_init(table, "memory", "Memory", "bytes that the program allocated, by category and device");
	table_columns(table, columns, MEMORY_COLUMNS);
	memory_pools_each(context, &visitor);
	for (int i = 0; i <= MEMORY_CATEGORIES; i++)
		growth_release(&fold.growths[i]);
	if (!table->row_count)
		table->empty = memory_not_recorded(context, &table->arena);
	else
		table->note = note_of(table, model, &context->options, &fold);
	if (table->row_count && !has_owners(model))
		memory_add_note(
			table,
			"a trace does not distinguish parameters, gradients and optimizer state, so they count as other");
	if (fold.found)
		memory_add_note(
			table,
			arena_printf(&table->arena, "%s were alive before %s, or belong to another allocator",
		                     units_bytes(bytes, (double)fold.found),
		                     has_removed(model) ? "the rest of the recording" : "the recording started"));
	if (table->row_count && loader_has_workers(model)) /* workers map it without an allocator */
		memory_add_note(table, "batches from data loader workers are in shared memory, which is not counted");
	memory_unknown_tell(&fold.unknown, table);
	if (fold.has_growth)
		memory_add_note(table, "--table memory_growth shows the growing allocations");
	return STATUS_OK;
}

const struct analysis analysis_memory = {
	.name = "memory",
	.row = "device and category",
	.question = "how much memory does each category use, and does it grow?",
	.run = run_memory,
	.with_past = true,
};
