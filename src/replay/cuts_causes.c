/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts_causes.c: the cuts of known causes that hold up a host thread, and of waits for a processor. See cuts.h.
 */
#include "base/memory.h"
#include "replay/cuts.h"

#include <math.h>
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

static bool has_delays(const struct replay_graph *graph)
{
	for (uint32_t s = 0; s < graph->step_count; s++)
		if (graph->steps[s].delay_ns > 0)
			return true;
	return false;
}

double *replay_delay_shares(const struct replay_graph *graph)
{
	double *shares = memory_resize(NULL, graph->step_count, sizeof(*shares));

	for (uint32_t s = 0; s < graph->step_count; s++)
		shares[s] = 0;
	for (uint32_t i = 1; i < graph->item_count; i++)
		if (graph->items[i].thread == graph->main_thread)
			shares[graph->items[i].step] += graph->items[i].gap_ns;
	for (uint32_t s = 0; s < graph->step_count; s++)
		shares[s] = shares[s] > 0 ? fmin(1, fmax(0, graph->steps[s].delay_ns) / shares[s]) : 0;
	return shares;
}

/* A step's thread waits for a processor wherever it works, so all its gaps become shorter by one share, also what other
 * cuts left of them. */
bool cut_processors(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;

	if (!has_delays(graph))
		return false;
	double *shares = replay_delay_shares(graph);
	for (uint32_t i = 1; i < graph->item_count; i++)
		if (graph->items[i].thread == graph->main_thread)
			plan->items[i].gap_ns *= 1 - shares[graph->items[i].step];
	free(shares);
	return true;
}
