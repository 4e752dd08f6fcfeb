/* SPDX-License-Identifier: Apache-2.0
 *
 * functions.c: the table `functions`: the weight of the samples in which a function is the innermost one, and of those
 * in which it is anywhere in the stack. A recursive function counts once per stack. A function is a name in a file;
 * its lines are in `sampled_stacks`.
 */
#include "analysis/analysis_context.h"
#include "analysis/samples/sampled_stacks.h"
#include "analysis/shared/python_places.h"
#include "base/storage.h"
#include "model/number_map.h"
#include "table/bound.h"

#include <string.h>

enum {
	FUNCTION_SELF,
	FUNCTION_SELF_RATIO = FUNCTION_SELF + SAMPLED_UNITS,
	FUNCTION_TOTAL,
	FUNCTION_TOTAL_RATIO = FUNCTION_TOTAL + SAMPLED_UNITS,
	FUNCTION_SAMPLES,
	FUNCTION_THREAD,
	FUNCTION_NAME,
	FUNCTION_FILE,
	FUNCTION_WHAT,
	FUNCTION_COLUMNS,
};

static const struct table_column columns[FUNCTION_COLUMNS] = {
	SAMPLED_COLUMNS(FUNCTION_SELF, "self", "self",
                        "weight of the samples (time, bytes or count) in which this function is innermost",
                        RULE_AT_MOST_OTHER, true, MORE_SUM),
	[FUNCTION_SELF_RATIO] = {.name = "self_ratio",
                                 .title = "%",
                                 .type = TABLE_DOUBLE,
                                 .unit = UNIT_RATIO,
                                 .role = ROLE_SHARE,
                                 .definition = "share of the self weight",
                                 .denominator = "all samples of the same unit; with --by thread, those of the thread",
                                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	SAMPLED_COLUMNS(FUNCTION_TOTAL, "total", "total",
                        "weight of the samples with this function anywhere in the stack; each sample counts once", 0,
                        false, MORE_NOTHING),
	[FUNCTION_TOTAL_RATIO] = {.name = "total_ratio",
                                  .title = "% of all",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_SHARE,
                                  .definition = "share of the total weight",
                                  .denominator = "all samples of the same unit; with --by thread, those of the thread",
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[FUNCTION_SAMPLES] = {.name = "sample_rows",
                              .title = "samples",
                              .type = TABLE_INT,
                              .unit = UNIT_COUNT,
                              .role = ROLE_EVIDENCE,
                              .definition = "number of sample rows with this function in the stack",
                              .rules = RULE_NOT_NEGATIVE},
	[FUNCTION_THREAD] = {.name = "thread",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "thread, or profile of the file"},
	[FUNCTION_NAME] = {.name = "function",
                           .type = TABLE_TEXT,
                           .role = ROLE_KEY,
                           .definition = "name of the function; \"(more frames)\": the frames that were not kept"},
	[FUNCTION_FILE] = {.name = "file",
                           .type = TABLE_TEXT,
                           .role = ROLE_KEY,
                           .definition = "file of the function, without the folder in which packages are installed"},
	[FUNCTION_WHAT] = {.name = "what",
                           .type = TABLE_TEXT,
                           .role = ROLE_KEY,
                           .definition = "unit of the samples: time, bytes, or the name that the file gives it",
                           .is_hidden = true},
};

struct function_row {
	uint32_t node;   /* one of its frames */
	uint32_t row;    /* 1 + number of the row that counted it last */
	uint32_t is_met; /* in the current group */
	wide_weight self, total;
	int64_t samples;
};

struct function_fold {
	const struct model *model;
	const char *folder;
	struct function_row *functions;
	uint32_t *function_of; /* by stack */
	uint32_t count;
	uint32_t *met; /* functions met in the current group */
	uint32_t met_count;
};

static void find_functions(struct function_fold *fold)
{
	const struct model *model = fold->model;
	struct number_map known = {.storage = model->storage};

	fold->function_of = storage_resize(model->storage, NULL, model->stacks_count + 1, sizeof(*fold->function_of));
	fold->functions = storage_resize(model->storage, NULL, model->stacks_count + 1, sizeof(*fold->functions));
	fold->met = storage_resize(model->storage, NULL, model->stacks_count + 1, sizeof(*fold->met));
	fold->function_of[0] = 0; /* no stack */
	fold->functions[0] = (struct function_row){0};
	fold->count = 1;
	for (uint32_t i = 1; i < model->stacks_count; i++) {
		const struct stack_node *node = &model->stacks[i];
		uint64_t key = (uint64_t)node->file << 32 | node->frame;

		fold->function_of[i] = number_map_add(&known, key, fold->count);
		if (fold->function_of[i] == fold->count)
			fold->functions[fold->count++] = (struct function_row){.node = i};
	}
	number_map_release(&known);
}

static void functions_fold_release(struct function_fold *fold)
{
	storage_release(fold->model->storage, fold->function_of);
	storage_release(fold->model->storage, fold->functions);
	storage_release(fold->model->storage, fold->met);
}

static struct function_row *meet(struct function_fold *fold, uint32_t stack)
{
	uint32_t number = fold->function_of[stack];
	struct function_row *function = &fold->functions[number];

	if (!function->is_met) {
		function->is_met = true;
		fold->met[fold->met_count++] = number;
	}
	return function;
}

static void functions_add_stack(struct function_fold *fold, const struct sampled_stack *stack, uint32_t row)
{
	uint32_t node = stack->stack < fold->model->stacks_count ? stack->stack : 0;

	meet(fold, node)->self += stack->weight;
	do {
		struct function_row *function = meet(fold, node);

		if (function->row != row + 1) {
			function->row = row + 1;
			function->total += stack->weight;
			function->samples += stack->samples;
		}
		node = fold->model->stacks[node].parent;
	} while (node);
}

static void set_name(struct table *table, int row, const struct function_fold *fold, uint32_t node)
{
	const struct stack_node *frame = &fold->model->stacks[node];
	const char *file = model_text(fold->model, frame->file), *name = model_text(fold->model, frame->frame);

	table_set_text(table, row, FUNCTION_NAME, !node ? "(no stack)" : *name ? name : "(more frames)");
	if (*file)
		table_set_text(table, row, FUNCTION_FILE, python_short_file(file, fold->folder));
	else
		table_set_missing(table, row, FUNCTION_FILE, "the frame has no file");
}

static void functions_add_rows(struct table *table, struct function_fold *fold, const struct sampled_stack *group,
                               wide_weight whole)
{
	enum sampled_unit unit = sampled_unit_of(fold->model, group->what);

	for (uint32_t i = 0; i < fold->met_count; i++) {
		struct function_row *function = &fold->functions[fold->met[i]];
		int row = table_row(table);

		sampled_set_weight(table, row, FUNCTION_SELF, unit, function->self);
		sampled_set_ratio(table, row, FUNCTION_SELF_RATIO, function->self, whole);
		sampled_set_weight(table, row, FUNCTION_TOTAL, unit, function->total);
		sampled_set_ratio(table, row, FUNCTION_TOTAL_RATIO, function->total, whole);
		table_set_int(table, row, FUNCTION_SAMPLES, function->samples);
		sampled_set_thread(table, row, FUNCTION_THREAD, fold->model, group->track);
		set_name(table, row, fold, function->node);
		table_set_text(table, row, FUNCTION_WHAT, model_text(fold->model, group->what));
		*function = (struct function_row){.node = function->node};
	}
	fold->met_count = 0;
}

static enum status functions_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct function_fold fold = {.model = model, .folder = python_folder(model)};
	struct sampled_stacks stacks;
	wide_weight whole;

	table_init(table, "functions", "Hottest functions", "functions in the sampled stacks");
	table_columns(table, columns, FUNCTION_COLUMNS);
	sampled_stacks_init(&stacks, model, context->options.by & BY_THREAD);
	sampled_hide(table, FUNCTION_SELF, &stacks);
	sampled_hide(table, FUNCTION_TOTAL, &stacks);
	table->columns[FUNCTION_SAMPLES].is_hidden = stacks.has_unit[SAMPLED_COUNT];
	table->columns[FUNCTION_THREAD].is_hidden = !(context->options.by & BY_THREAD);
	table->columns[FUNCTION_WHAT].is_hidden = sampled_kinds(&stacks) < 2;
	if (sampled_is_one_group(&stacks)) {
		table->columns[FUNCTION_SELF_RATIO].rules |= RULE_SUMS_TO_ONE;
		table->columns[FUNCTION_SELF_RATIO].more = MORE_SUM;
	}
	table_bound(table, FUNCTION_SELF_RATIO);
	if (stacks.count)
		find_functions(&fold);
	for (uint32_t first = 0, end; first < stacks.count; first = end) {
		end = sampled_group_end(&stacks, first, &whole);
		for (uint32_t i = first; i < end; i++)
			functions_add_stack(&fold, &stacks.rows[i], i);
		functions_add_rows(table, &fold, &stacks.rows[first], whole);
	}
	table_add_more(table, FUNCTION_NAME);
	table_sort(table, FUNCTION_NAME, true);
	table_sort(table, FUNCTION_TOTAL_RATIO, false);
	table_sort(table, FUNCTION_SELF_RATIO, false);
	sampled_note(table, model);
	functions_fold_release(&fold);
	sampled_stacks_release(&stacks);
	return STATUS_OK;
}

const struct analysis analysis_functions = {
	.name = "functions",
	.row = "function",
	.question = "in which functions were the samples taken?",
	.run = functions_run,
	.splits = BY_THREAD,
};
