/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_operators.c: in which of the compared steps operators were recorded, and what that cost. The two sides must
 * have steps of the same kind; otherwise their difference includes the cost of recording (comparison_operators.c).
 */
#include "analysis/evidence/cost.h"
#include "analysis/evidence/operator_cost.h"
#include "compare/compared.h"

#include <stepscope/format.h>
#include <string.h>

/* Returns false for traces of other profilers, because they record the same events in all steps of both sides. */
static bool is_recording(const struct model *model)
{
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model->processes[i].role == STEPSCOPE_ROLE_IMPORTED)
			return false;
	return model->steps_count > 0;
}

static const char *compared_operators_kind_of(const struct step_times *times)
{
	uint32_t with = 0, plain = 0;

	if (times->has_plain)
		return COMPARED_SOME;
	for (uint32_t i = 0; i < times->job_count; i++) {
		with += times->job[i].plain < times->job[i].processes;
		plain += times->job[i].plain == times->job[i].processes;
	}
	return !with ? COMPARED_NONE : plain ? COMPARED_MIXED : COMPARED_ALL;
}

/* Reads the measured difference between steps with operators and steps without. */
static void read_price(struct compared_run *run, const struct model *model, const struct step_times *times)
{
	const struct operator_cost cost = operator_cost_find(model, times, MODEL_NONE);

	if (cost.unknown) {
		compared_run_add_missing(run, COMPARED_PRICE, cost.unknown);
		compared_run_add_missing(run, COMPARED_PRICE_HALF, cost.unknown);
		return;
	}
	compared_run_add_value(run, COMPARED_PRICE, cost.ratio * cost.without_ns);
	compared_run_add_value(run, COMPARED_PRICE_HALF, cost.half * cost.without_ns);
}

/* Reads the cost computed from the number of events, if the program has no other costs of being recorded. */
static void read_counted(struct compared_run *run, const struct model *model)
{
	struct recording_cost counted;

	if (model_meta(model, MODEL_NONE, "torch.version"))
		compared_run_add_missing(run, COMPARED_COUNTED, "PyTorch's own cost of being profiled is unknown");
	else if (recording_cost_all(&counted, model))
		compared_run_add_value(run, COMPARED_COUNTED, counted.ratio);
	else
		compared_run_add_missing(run, COMPARED_COUNTED, "the recorder did not measure itself");
}

static void read_calls(struct compared_run *run, struct report *report)
{
	const struct table *ops = report_table(report, "ops"), *about = report_table(report, "run");
	double calls = 0, steps = compared_number_at(about, 0, "operator_sum_steps");

	for (int row = 0; row < ops->row_count; row++)
		calls += compared_number_at(ops, row, "calls");
	if (steps > 0 && calls > 0)
		compared_run_add_value(run, COMPARED_CALLS, calls / steps);
	else
		compared_run_add_missing(run, COMPARED_CALLS, "the recording has no operators");
}

void compared_read_operators(struct compared_run *run, struct report *report)
{
	const struct step_times *times = report_step_times(report);
	const char *range = model_meta(report->model, MODEL_NONE, "budget.range");
	const char *every = range ? range : model_meta(report->model, MODEL_NONE, "budget.every");

	if (!is_recording(report->model) || !run->steps_count)
		return;
	compared_run_add_fact(run, FACT_RECORDING, COMPARED_OPERATORS, compared_operators_kind_of(times));
	if (every)
		compared_run_add_fact(run, FACT_RECORDING, COMPARED_EVERY, every);
	read_price(run, report->model, times);
	read_counted(run, report->model);
	read_calls(run, report);
}
