/* SPDX-License-Identifier: Apache-2.0
 *
 * ops.c: the table `ops`: one row per name and kind of the operations and ranges that start in measured steps. Rows
 * may be split by shape, thread or phase. Self time is exact: the rows, with the time outside all operations, sum up
 * to all time in spans.
 */
#include "analysis/analysis_context.h"
#include "analysis/operators/ops_columns.h"
#include "analysis/operators/ops_rows.h"
#include "model/reasons.h"

#include <inttypes.h>

/* Returns true if the column says nothing here: rows are not split by it, or no row has a value. */
static bool ops_hides(int column, const struct op_fold *fold)
{
	unsigned by = fold->context->options.by;

	switch (column) {
	case OP_SHAPE:
		return !(by & BY_SHAPE);
	case OP_THREAD:
		return !(by & BY_THREAD);
	case OP_PHASE:
		return !(by & BY_PHASE);
	case OP_SELF_MEMORY:
	case OP_MEMORY:
		return !fold->model->memory_count;
	case OP_STEP_MEAN:
		return fold->times->job_detailed == fold->times->job_selected;
	default:
		return column >= OP_SELF_DEVICE && !fold->launches->work_count;
	}
}

static void ops_add_columns(struct table *table, const struct op_fold *fold, const struct op_totals *totals)
{
	for (int i = 0; i < OP_COLUMNS; i++) {
		struct table_column copy = operation_columns[i];

		copy.is_hidden |= ops_hides(i, fold);
		copy.total = (double)(i == OP_SELF_MEMORY   ? totals->memory
		                      : i == OP_SELF_DEVICE ? totals->device_ns
		                                            : totals->self_ns);
		table_column(table, &copy);
	}
}

static void ops_add_note(struct table *table, const struct op_fold *fold)
{
	step_kinds_note_sums(table, fold->times, OP_LEAST);
	if (!fold->times->count)
		table->note = "no steps were marked: all recorded spans are counted";
	if (fold->outside)
		table->note = arena_printf(
			&table->arena,
			"%s%s%" PRId64 " of %" PRId64 " calls are outside the measured steps and are not counted",
			table->note ? table->note : "", table->note ? "; " : "", fold->outside, fold->calls);
	if (fold->groups.count > OP_GROUP_FIRST)
		return;
	table->empty = step_times_no_operations(
		fold->context, &table->arena,
		fold->outside ? "all recorded operations and ranges are outside the measured steps"
			      : model_reason(fold->model, REASON_NO_OPERATORS));
}

static enum status ops_run(struct analysis_context *context, struct table *table, struct error *err)
{
	struct op_fold fold;
	struct op_totals totals;

	op_fold_init(&fold, context);
	op_totals_compute(&totals, &fold);
	table_init(table, "ops", "Top operations by self time",
	           "operations and ranges that start in steps with recorded operators, by name and kind");
	ops_add_columns(table, &fold, &totals);
	if (fold.groups.count > OP_GROUP_FIRST)
		ops_rows_add(table, &fold, &totals);
	ops_add_note(table, &fold);
	op_fold_release(&fold);
	return STATUS_OK;
}

const struct analysis analysis_ops = {
	.name = "ops",
	.row = "name and kind of operation or range",
	.question = "which operations take the most time?",
	.run = ops_run,
	.splits = BY_SHAPE | BY_THREAD | BY_PHASE,
	.is_of_operators = true,
};
