/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_steps.c: the table `memory_steps`: the peak of each step and the level at its end, by category. The
 * categories sum to the whole.
 */
#include "analysis/analysis_context.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/shared/labels.h"

enum {
	STEP_NUMBER,
	STEP_PROCESS,
	STEP_DEVICE,
	STEP_PEAK,
	STEP_END,
	STEP_PARTS,
	STEP_COLUMNS = STEP_PARTS + 2 * MEMORY_CATEGORIES,
};

static const struct table_column heads[STEP_PARTS] = {
	[STEP_NUMBER] = STEP_NUMBER_COLUMN,
	[STEP_PROCESS] = PROCESS_COLUMN,
	[STEP_DEVICE] = MEMORY_DEVICE_COLUMN,
	[STEP_PEAK] = {.name = "peak_bytes",
                       .title = "peak",
                       .type = TABLE_INT,
                       .unit = UNIT_BYTES,
                       .definition = "most bytes alive at one time during the step",
                       .rules = RULE_NOT_NEGATIVE},
	[STEP_END] = {.name = "end_bytes",
                      .title = "at end",
                      .type = TABLE_INT,
                      .unit = UNIT_BYTES,
                      .definition = "bytes alive at the end of the step",
                      .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                      .other = "peak_bytes"},
};

/* The names of columns, in the order of memory_category_at(). */
static const char *const peak_names[MEMORY_CATEGORIES] = {
	"peak_parameter_bytes",       "peak_buffer_bytes",          "peak_gradient_bytes",
	"peak_optimizer_state_bytes", "peak_activation_bytes",      "peak_input_bytes",
	"peak_temporary_bytes",       "peak_autograd_detail_bytes", "peak_other_bytes"};
static const char *const end_names[MEMORY_CATEGORIES] = {
	"end_parameter_bytes",       "end_buffer_bytes",          "end_gradient_bytes",
	"end_optimizer_state_bytes", "end_activation_bytes",      "end_input_bytes",
	"end_temporary_bytes",       "end_autograd_detail_bytes", "end_other_bytes"};

static void memory_steps_add_columns(struct table *table)
{
	table_columns(table, heads, STEP_PARTS);
	for (int place = 0; place < 2 * MEMORY_CATEGORIES; place++) {
		bool is_end = place >= MEMORY_CATEGORIES;
		int category = place % MEMORY_CATEGORIES;
		const struct table_column column = {
			.name = is_end ? end_names[category] : peak_names[category],
			.title = memory_category_name(memory_category_at(category)),
			.type = TABLE_INT,
			.unit = UNIT_BYTES,
			.definition = is_end ? "bytes of the category alive at the end of the step"
		                             : "bytes of the category alive at the peak of the step",
			.rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
			.other = is_end ? "end_bytes" : "peak_bytes",
			.is_hidden = is_end,
		};

		table_column(table, &column);
	}
}

struct step_fold {
	struct table *table;
	bool is_seen[MEMORY_CATEGORIES];
};

static void memory_steps_end_step(void *context, const struct memory_pool *pool, uint32_t step)
{
	struct step_fold *fold = context;
	struct table *table = fold->table;
	int row = table_row(table);

	table_set_int(table, row, STEP_NUMBER, pool->model->steps[step].number);
	table_set_text(table, row, STEP_PROCESS, process_label(pool->model, pool->process, &table->arena));
	table_set_text(table, row, STEP_DEVICE, memory_device_name(&table->arena, pool->device));
	table_set_int(table, row, STEP_PEAK, bytes_that_fit(pool->step_peak));
	table_set_int(table, row, STEP_END, bytes_that_fit(pool->now));
	for (int place = 0; place < MEMORY_CATEGORIES; place++) {
		const struct memory_level *level = &pool->levels[memory_category_at(place)];

		fold->is_seen[place] |= level->at_step_peak > 0 || level->now > 0;
		table_set_int(table, row, STEP_PARTS + place, bytes_that_fit(level->at_step_peak));
		table_set_int(table, row, STEP_PARTS + MEMORY_CATEGORIES + place, bytes_that_fit(level->now));
	}
	for (int column = STEP_PEAK; column < STEP_COLUMNS && pool->unknown; column++)
		table_set_missing(table, row, column, pool->unknown);
}

static enum status memory_steps_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct step_fold fold = {.table = table};

	table_init(table, "memory_steps", "Memory by step",
	           "complete steps with recorded memory: the peak and its categories");
	memory_steps_add_columns(table);
	table_keep_in(table, model->storage);
	memory_pools_each(context, &(struct memory_visitor){.context = &fold, .step_end = memory_steps_end_step});
	for (int place = 0; place < MEMORY_CATEGORIES; place++)
		table->columns[STEP_PARTS + place].is_hidden = !fold.is_seen[place];
	if (!table->row_count)
		table->empty = model->memory_count ? "memory was recorded in no complete step"
		                                   : memory_not_recorded(context, &table->arena);
	else
		table->note = memory_lacks(model, &context->options);
	return STATUS_OK;
}

const struct analysis analysis_memory_steps = {
	.name = "memory_steps",
	.row = "step and device",
	.question = "how much memory did each step use, by category?",
	.run = memory_steps_run,
	.with_past = true,
};
