/* SPDX-License-Identifier: Apache-2.0
 *
 * modules.c: the tables `modules`, a tree in the order of the calls, and `top_modules`, the same rows by self time.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/operators/module_work.h"
#include "analysis/operators/modules_columns.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "base/storage.h"
#include "model/number_map.h"
#include "model/reasons.h"
#include "pytorch/names.h"
#include "table/bound.h"

#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>

#define NO_BACKWARD "no backward is linked to the operators of a forward"

static void modules_set_times(struct table *table, int row, const struct module_fold *fold,
                              const struct module_sums *group)
{
	table_set_int(table, row, MODULE_CALLS, group->calls);
	table_set_int(table, row, MODULE_FORWARD, group->forward_ns);
	table_set_int(table, row, MODULE_FORWARD_SELF, group->forward_self_ns);
	if (fold->steps_ns > 0)
		table_set_double(table, row, MODULE_RATIO, (double)group->step_self_ns / fold->steps_ns);
	else
		table_set_missing(table, row, MODULE_RATIO, "no complete step has recorded operations");
	if (fold->linked) {
		table_set_int(table, row, MODULE_BACKWARD, group->backward_ns);
		table_set_int(table, row, MODULE_BACKWARD_SELF, group->backward_self_ns);
	} else {
		table_set_missing(table, row, MODULE_BACKWARD, NO_BACKWARD);
		table_set_missing(table, row, MODULE_BACKWARD_SELF, NO_BACKWARD);
	}
	if (group->recompute_calls)
		table_set_int(table, row, MODULE_RECOMPUTE, group->recompute_ns);
	else
		table_set_missing(table, row, MODULE_RECOMPUTE, "the module was not called inside a backward");
	if (memory_sums_unknown(fold->model))
		table_set_missing(table, row, MODULE_ALLOCATED, memory_sums_unknown(fold->model));
	else if (fold->model->memory_count)
		table_set_int(table, row, MODULE_ALLOCATED, bytes_that_fit(group->allocated));
	else
		table_set_missing(table, row, MODULE_ALLOCATED, model_reason(fold->model, REASON_NO_ALLOCATIONS));
}

static void modules_set_device(struct table *table, int row, const struct module_fold *fold,
                               const struct module_sums *group)
{
	if (!fold->launches->work_count) {
		for (int column = MODULE_DEVICE; column <= MODULE_LAUNCHED; column++)
			table_set_missing(table, row, column, DEVICE_NOTHING);
		return;
	}
	table_set_int(table, row, MODULE_DEVICE, group->device_ns);
	table_set_int(table, row, MODULE_SELF_DEVICE, group->device_self_ns);
	if (fold->linked)
		table_set_int(table, row, MODULE_BACKWARD_DEVICE, group->backward_device_ns);
	else
		table_set_missing(table, row, MODULE_BACKWARD_DEVICE, NO_BACKWARD);
	table_set_int(table, row, MODULE_LAUNCHED, group->launched);
}

static void modules_set_flops(struct table *table, int row, const struct model *model, const struct module_sums *group)
{
	const struct flop_sum *sums[] = {&group->flops, &group->flops_self, &group->backward_flops};

	for (int i = 0; i < 3; i++) {
		/* a part in which no operator has a formula takes 0 */
		bool is_none = group->flops.counted && !sums[i]->uncounted;

		if (!sums[i]->lacking && (sums[i]->counted || is_none))
			table_set_double(table, row, MODULE_FLOPS + i, sums[i]->flops);
		else
			table_set_missing(table, row, MODULE_FLOPS + i,
			                  flop_sum_missing(model, sums[i]->uncounted ? sums[i] : &group->flops));
	}
	table_set_int(table, row, MODULE_UNCOUNTED, group->flops.uncounted);
}

static void modules_set_operators(struct table *table, int row, const struct module_fold *fold,
                                  const struct module_group *group)
{
	const char *list = NULL;

	for (int i = 0; i < MODULE_OPERATOR_NAMES && group->operators[i]; i++)
		list = arena_printf(&table->arena, "%s%s%s", list ? list : "", list ? ", " : "",
		                    model_text(fold->model, group->operators[i]));
	table_set_text_or(table, row, MODULE_OPERATORS, list, "the module calls no operators itself");
}

static void modules_add_row(struct table *table, const struct module_fold *fold, const struct module_group *group)
{
	const char *path = model_text(fold->model, group->name);
	const char *around = group->parent ? model_text(fold->model, fold->groups[group->parent].name) : "";
	size_t common = strlen(around);
	int row = table_row(table);
	/* below `layers.0` the tree shows `fc`, not `layers.0.fc` */
	bool is_below = common && strncmp(path, around, common) == 0 && path[common] == '.';

	table_set_text(table, row, MODULE_PATH, path);
	table_set_text(
		table, row, MODULE_TREE,
		arena_printf(&table->arena, "%*s%s", 2 * (int)group->depth, "", path + (is_below ? common + 1 : 0)));
	table_set_int(table, row, MODULE_DEPTH, group->depth);
	const struct module_sums sums = module_fold_sums(fold, (uint32_t)(group - fold->groups));
	modules_set_times(table, row, fold, &sums);
	modules_set_device(table, row, fold, &sums);
	modules_set_flops(table, row, fold->model, &sums);
	modules_set_operators(table, row, fold, group);
	step_kinds_set_least(table, row, MODULE_LEAST, fold->times,
	                     fold->seen ? &fold->seen[group - fold->groups] : &(struct step_sightings){.amount = 0});
}

static void modules_fold_init(void *fold, struct analysis_context *context)
{
	module_fold_init(fold, context);
	module_work_add(fold, context);
	module_fold_forget_rows(fold);
}

static void modules_fold_release(void *fold)
{
	module_fold_release(fold);
}

static const struct analysis_fold shared_module_fold = {sizeof(struct module_fold), modules_fold_init,
                                                        modules_fold_release};

/* bound: the column whose largest rows are kept. */
static void modules_fill(struct analysis_context *context, struct table *table, int bound)
{
	const struct module_fold *fold = analysis_context_fold(context, &shared_module_fold);

	table_columns(table, module_columns, MODULE_COLUMNS);
	table_bound(table, bound);
	for (uint32_t i = 0; i + 1 < fold->group_count; i++)
		modules_add_row(table, fold, &fold->groups[fold->order[i]]);
	int more = table_add_more(table, MODULE_PATH);
	if (more >= 0) {
		table_set_text(table, more, MODULE_TREE, table_text(table, more, MODULE_PATH));
		table_set_int(table, more, MODULE_DEPTH, 0);
	}
	for (int column = MODULE_FLOPS; column <= MODULE_FLOPS_SELF; column++)
		table->columns[column].is_hidden = fold->flops_result != FLOPS_KNOWN;
	for (int column = MODULE_DEVICE; column <= MODULE_LAUNCHED; column++)
		table->columns[column].is_hidden |= !fold->launches->work_count;
	if (fold->group_count == 1)
		table->empty = step_times_no_operations(context, &table->arena,
		                                        model_reason(fold->model, REASON_NO_MODULES));
	step_kinds_note_sums(table, fold->times, MODULE_LEAST);
}

static enum status modules_run(struct analysis_context *context, struct table *table, struct error *err)
{
	table_init(table, "modules", "Modules",
	           "time, memory and operations of each module of the model, forward and backward");
	modules_fill(context, table, MODULE_FORWARD); /* a caller takes more time than the modules it calls */
	return STATUS_OK;
}

static enum status top_modules_run(struct analysis_context *context, struct table *table, struct error *err)
{
	table_init(table, "top_modules", "Modules by self time", "the rows of the table modules, sorted by self time");
	modules_fill(context, table, MODULE_FORWARD_SELF);
	table_sort(table, MODULE_FORWARD_SELF, false);
	table_sort(table, MODULE_RATIO, false);
	return STATUS_OK;
}

const struct analysis analysis_modules = {
	.name = "modules",
	.row = "module, as a tree",
	.question = "which modules of the model take the most time?",
	.run = modules_run,
	.is_of_operators = true,
};
const struct analysis analysis_top_modules = {
	.name = "top_modules",
	.row = "module, largest self time first",
	.question = "which modules take the most self time?",
	.run = top_modules_run,
	.is_of_operators = true,
};
