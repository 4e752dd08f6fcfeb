/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_rows.c: converts a group to cells, each with its value or the reason why it has none.
 */
#include "analysis/operators/ops_rows.h"

#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/operators/flop_likeness.h"
#include "analysis/operators/ops_columns.h"
#include "analysis/shared/labels.h"
#include "model/cell_words.h"
#include "model/reasons.h"
#include "table/bound.h"

static void ops_set_key(struct table *table, int row, const struct op_fold *fold, const struct op_key *key)
{
	const struct model *model = fold->model;
	unsigned by = fold->context->options.by;

	table_set_text(table, row, OP_NAME, model_text(model, key->name));
	table_set_text(table, row, OP_KIND, span_kind_name(key->kind));
	if (by & BY_THREAD)
		table_set_text(table, row, OP_THREAD, track_label(model, key->track, &table->arena));
	else
		table_set_missing(table, row, OP_THREAD, "rows are not split by thread; use --by thread");
	if (by & BY_PHASE)
		table_set_text(table, row, OP_PHASE, key->phase ? phase_name(key->phase) : "none");
	else
		table_set_missing(table, row, OP_PHASE, "rows are not split by phase; use --by phase");
	if (key->shape)
		table_set_text(table, row, OP_SHAPE, model_text(model, key->shape));
	else
		table_set_missing(table, row, OP_SHAPE,
		                  by & BY_SHAPE ? model_reason(model, REASON_NO_SHAPES)
		                                : "rows are not split by shape; use --by shape");
}

static void ops_set_memory(struct table *table, int row, const struct op_fold *fold, const struct op_group *group)
{
	const char *lost = memory_sums_unknown(fold->model);
	const char *reason = lost ? lost : model_reason(fold->model, REASON_NO_ALLOCATIONS);

	table_set_missing(table, row, OP_SELF_MEMORY, reason);
	table_set_missing(table, row, OP_MEMORY, reason);
	if (!fold->model->memory_count || lost)
		return;
	table_set_int(table, row, OP_SELF_MEMORY, group->self_memory);
	table_set_int(table, row, OP_MEMORY, group->memory);
}

static void ops_set_device(struct table *table, int row, const struct op_fold *fold, const struct op_group *group)
{
	if (!fold->launches->work_count) {
		for (int column = OP_SELF_DEVICE; column <= OP_LAUNCHED; column++)
			table_set_missing(table, row, column, DEVICE_NOTHING);
		return;
	}
	table_set_int(table, row, OP_SELF_DEVICE, group->self_device_ns);
	table_set_int(table, row, OP_LAUNCHED, group->launched);
	table_set_int(table, row, OP_DEVICE, group->device_ns);
}

static const char *ops_why_no_flops(const struct model *model, const struct op_group *group)
{
	if (group->lacking_calls)
		return FLOP_LIKENESS_MISSING;
	if (group->has_inner_flops)
		return "the operations nested in it are counted instead";
	switch (group->flops_result) {
	case FLOPS_NO_SIZES:
		return model_reason(model, REASON_NO_SHAPES);
	case FLOPS_UNKNOWN:
		return "the recorded inputs do not give the number of operations";
	case FLOPS_KNOWN:
		return "no call has both a recorded start and end";
	case FLOPS_NO_FORMULA:
		break;
	}
	return model_reason(model, REASON_NO_FORMULA);
}

static const char *ops_why_no_rate(const struct op_group *group)
{
	if (!group->flop_calls)
		return "no floating point operations were recorded";
	if (!group->rated_calls)
		return "the device work that its calls launched was not recorded, and the calls do not wait for it";
	return "the calls took no measurable time";
}

static void ops_set_work(struct table *table, int row, const struct model *model, const struct op_group *group)
{
	if (group->flop_calls && !group->lacking_calls)
		table_set_double(table, row, OP_FLOPS, group->flops);
	else
		table_set_missing(table, row, OP_FLOPS, ops_why_no_flops(model, group));
	if (group->profiler_calls && !group->lacking_profiler_calls)
		table_set_double(table, row, OP_PROFILER_FLOPS, group->profiler_flops);
	else
		table_set_missing(
			table, row, OP_PROFILER_FLOPS,
			group->lacking_profiler_calls
				? FLOP_LIKENESS_MISSING
				: "torch.profiler counts no operations for it, or its inputs were not recorded");
	if (group->rated_ns > 0)
		table_set_double(table, row, OP_FLOP_RATE, group->rated_flops / ((double)group->rated_ns / 1e9));
	else
		table_set_missing(table, row, OP_FLOP_RATE, ops_why_no_rate(group));
	if (group->byte_calls)
		table_set_double(table, row, OP_BYTES, group->bytes);
	else
		table_set_missing(table, row, OP_BYTES, model_reason(model, REASON_NO_BYTES));
}

static void ops_set_times(struct table *table, int row, const struct op_group *group)
{
	table_set_int(table, row, OP_CALLS, group->calls);
	table_set_int(table, row, OP_TOTAL, group->total_ns);
	table_set_int(table, row, OP_INCOMPLETE, group->open_calls);
	if (group->timed_calls) {
		table_set_double(table, row, OP_MEAN, (double)group->timed_ns / (double)group->timed_calls);
		table_set_int(table, row, OP_MIN, group->min_ns);
		table_set_int(table, row, OP_MAX, group->max_ns);
		return;
	}
	for (int column = OP_MEAN; column <= OP_MAX; column++)
		table_set_missing(table, row, column, "no call has both a recorded start and end");
}

static void ops_set_step_self(struct table *table, int row, const struct op_totals *totals,
                              const struct op_group *group)
{
	int64_t step_self_ns = group ? group->step_self_ns : 0;

	double steps = totals->steps > 0 ? totals->steps : 1;

	if (totals->step_self_ns > 0) {
		table_set_double(table, row, OP_STEP_MEAN, (double)step_self_ns / steps);
		table_set_int(table, row, OP_STEP_SELF, step_self_ns);
		table_set_int(table, row, OP_STEP_OUTSIDE, group ? group->step_outside_ns : 0);
		table_set_double(table, row, OP_STEP_RATIO, (double)step_self_ns / (double)totals->step_self_ns);
		return;
	}
	table_set_missing(table, row, OP_STEP_MEAN, "no thread marks steps");
	table_set_missing(table, row, OP_STEP_SELF, "no thread marks steps");
	table_set_missing(table, row, OP_STEP_OUTSIDE, "no thread marks steps");
	table_set_missing(table, row, OP_STEP_RATIO, "no thread marks steps");
}

static void ops_set_unseen(struct table *table, int row, const struct op_totals *totals)
{
	if (totals->step_self_ns > 0)
		table_set_double(table, row, OP_UNSEEN, (double)totals->unseen_ns / (double)totals->step_self_ns);
	else
		table_set_missing(table, row, OP_UNSEEN, "no thread marks steps");
}

static void ops_set_self(struct table *table, int row, int64_t self_ns)
{
	table_set_int(table, row, OP_SELF, self_ns);
	if (table->columns[OP_SELF].total > 0)
		table_set_double(table, row, OP_RATIO, (double)self_ns / table->columns[OP_SELF].total);
	else
		table_set_missing(table, row, OP_RATIO, "the spans took no time");
}

static void ops_add_group(struct table *table, const struct op_fold *fold, const struct op_totals *totals,
                          const struct op_group *group)
{
	int row = table_row(table);

	ops_set_key(table, row, fold, &group->key);
	ops_set_times(table, row, group);
	ops_set_work(table, row, fold->model, group);
	ops_set_memory(table, row, fold, group);
	ops_set_device(table, row, fold, group);
	ops_set_self(table, row, group->self_ns);
	ops_set_step_self(table, row, totals, group);
	table_set_missing(table, row, OP_UNSEEN, "the row is an operation or range");
	step_kinds_set_least(table, row, OP_LEAST, fold->times, &group->seen);
}

/* Adds the row of the time outside all operations. */
static void ops_add_rest(struct table *table, const struct op_fold *fold, const struct op_totals *totals)
{
	static const int not_of_rest[] = {OP_SHAPE,      OP_THREAD, OP_PHASE, OP_CALLS, OP_TOTAL,     OP_MEAN,
	                                  OP_MIN,        OP_MAX,    OP_FLOPS, OP_BYTES, OP_FLOP_RATE, OP_PROFILER_FLOPS,
	                                  OP_INCOMPLETE, OP_LEAST};
	const struct op_group *rest = &fold->groups.list[OP_GROUP_REST];
	int row = table_row(table);

	table_set_text(table, row, OP_NAME, CELL_NO_OPERATION);
	table_set_text(table, row, OP_KIND, CELL_REST);
	ops_set_self(table, row, rest->self_ns);
	ops_set_step_self(table, row, totals, rest);
	ops_set_unseen(table, row, totals);
	ops_set_memory(table, row, fold, rest);
	ops_set_device(table, row, fold, rest);
	table_set_missing(table, row, OP_MEMORY, "not an operation");
	table_set_missing(table, row, OP_DEVICE, "not an operation");
	for (size_t i = 0; i < sizeof(not_of_rest) / sizeof(not_of_rest[0]); i++)
		table_set_missing(table, row, not_of_rest[i], "not an operation");
}

/* Adds the row of the work of devices without a launch in the trace. It belongs to no operation, and not to the host's
 * time outside of them. */
static void ops_add_unlaunched(struct table *table, const struct op_totals *totals)
{
	int row = table_row(table);

	for (int column = 0; column < OP_COLUMNS; column++)
		table_set_missing(table, row, column, "not an operation");
	table_set_text(table, row, OP_NAME, "(launched by nothing in the trace)");
	table_set_text(table, row, OP_KIND, CELL_REST);
	table_set_int(table, row, OP_SELF_DEVICE, totals->unlaunched_ns);
	table_set_int(table, row, OP_LAUNCHED, totals->unlaunched);
	ops_set_self(table, row, 0);
	ops_set_step_self(table, row, totals, NULL);
}

void ops_rows_add(struct table *table, const struct op_fold *fold, const struct op_totals *totals)
{
	table_bound(table, OP_SELF);
	for (uint32_t i = OP_GROUP_FIRST; i < fold->groups.count; i++)
		if (!fold->groups.list[i].key.is_sampled)
			ops_add_group(table, fold, totals, &fold->groups.list[i]);
	int more = table_add_more(table, OP_NAME);
	if (more >= 0)
		table_set_text(table, more, OP_KIND, CELL_REST);
	ops_add_rest(table, fold, totals);
	if (totals->unlaunched)
		ops_add_unlaunched(table, totals);
	/* ties by name, so that the order does not depend on the order of threads in the file */
	table_sort(table, OP_NAME, true);
	table_sort(table, OP_SELF, false);
	table_sort(table, OP_STEP_SELF, false);
}
