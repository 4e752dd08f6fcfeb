/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts_causes.c: the cuts of known causes that hold up a host thread, and of waits for a processor. See cuts.h.
 */
#include "base/memory.h"
#include "replay/cuts.h"

#include <stdlib.h>

static bool cut_cause(struct replay_plan *plan, enum replay_cause cause)
{
	const struct replay_graph *graph = plan->graph;
	bool is_any = false;

	for (uint32_t t = 0; t < graph->thread_count; t++) {
		const struct replay_stretches *known = &graph->threads[t].causes[cause];
		struct replay_stretches stretches = {0};

		for (uint32_t i = 0; i < known->count; i++)
			plan_stretches_add(&stretches, plan, known->list[i].start_ns, known->list[i].end_ns);
		is_any |= replay_plan_remove(plan, t, &stretches);
		plan_stretches_release(&stretches, plan);
	}
	return is_any;
}

bool cut_garbage(struct replay_plan *plan)
{
	return cut_cause(plan, REPLAY_GARBAGE);
}

bool cut_compile(struct replay_plan *plan)
{
	return cut_cause(plan, REPLAY_COMPILE);
}

bool cut_checkpoint(struct replay_plan *plan)
{
	return cut_cause(plan, REPLAY_CHECKPOINT);
}

bool cut_evaluation(struct replay_plan *plan)
{
	return cut_cause(plan, REPLAY_EVALUATION);
}

/* ---- processors ---- */

/* Returns the same sums as replay_step_gaps(), with nothing removed. */
static double *measured_gaps(const struct replay_graph *graph)
{
	double *gaps_ns = memory_resize(NULL, graph->step_count, sizeof(*gaps_ns));

	for (uint32_t s = 0; s < graph->step_count; s++)
		gaps_ns[s] = 0;
	for (uint32_t i = 1; i < graph->item_count; i++)
		if (graph->items[i].thread == graph->main_thread)
			gaps_ns[graph->items[i].step] += graph->items[i].gap_ns;
	return gaps_ns;
}

static bool has_delays(const struct replay_graph *graph)
{
	for (uint32_t s = 0; s < graph->step_count; s++)
		if (graph->steps[s].delay_ns > 0)
			return true;
	return false;
}

/* A step's thread waits for a processor wherever it works, so all its gaps become shorter by one share, also what other
 * cuts left of them. */
bool cut_processors(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	bool is_any = false;

	if (!has_delays(graph))
		return false;
	double *gaps_ns = measured_gaps(graph);

	for (uint32_t i = 1; i < graph->item_count; i++) {
		uint32_t step = (uint32_t)graph->items[i].step;
		double share = gaps_ns[step] > 0 ? graph->steps[step].delay_ns / gaps_ns[step] : 0;

		if (graph->items[i].thread != graph->main_thread || share <= 0)
			continue;
		plan->items[i].gap_ns *= share < 1 ? 1 - share : 0;
		is_any = true;
	}
	free(gaps_ns);
	return is_any;
}
