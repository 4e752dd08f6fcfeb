/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts_loader.c: the cuts of a loader of PyTorch in our own recordings: more workers, and batches that are easy to hand
 * over. See cuts.h. The model of loading.h tells how much shorter a step is; all waits become shorter by one share.
 */
#include "replay/cuts.h"
#include "replay/loading.h"

#include <math.h>

#define SHARE_RATIO 0.15 /* of a step: bench/whatif, loader_computes, missed by 11 points */

/* Waits in the window: the recording has others before and behind it. *count: how many there are. */
static double waits_of(const struct replay_plan *plan, uint32_t *count)
{
	const struct replay_graph *graph = plan->graph;
	const struct replay_thread *thread = &graph->threads[graph->main_thread];
	double sum_ns = 0, until_ns = graph->steps[graph->step_count - 1].end_ns;

	for (uint32_t i = 0; i < thread->loads.count; i++)
		if (thread->loads.list[i].start_ns >= 0 && thread->loads.list[i].start_ns < until_ns) {
			sum_ns += thread->loads.list[i].end_ns - thread->loads.list[i].start_ns;
			++*count;
		}
	return sum_ns;
}

/* Removes that share of all waits, or of the time in which the loop makes batches itself. */
static bool shorten_waits(struct replay_plan *plan, double share)
{
	const struct replay_graph *graph = plan->graph;
	const struct replay_thread *thread = &graph->threads[graph->main_thread];
	struct replay_stretches stretches = {0};

	for (uint32_t i = 0; i < graph->item_count; i++)
		if (graph->items[i].kind == REPLAY_BATCH) {
			plan->items[i].own_ns *= 1 - share;
			plan->items[i].is_free = true;
		}
	for (uint32_t i = 0; i < thread->loads.count && !graph->recording.has_workers; i++) {
		const struct replay_stretch *load = &thread->loads.list[i];

		plan_stretches_add(&stretches, plan, load->start_ns + (1 - share) * (load->end_ns - load->start_ns),
		                   load->end_ns);
	}
	replay_plan_remove(plan, graph->main_thread, &stretches);
	return share > 0;
}

static bool cut_to(struct replay_plan *plan, double step_ns)
{
	const struct replay_loading *loading = plan->graph->loading;
	uint32_t count = 0;
	double waits_ns = waits_of(plan, &count), ratio = 1 - step_ns / loading->step_ns;
	double saved_ns = ratio * plan->graph->steps[plan->graph->step_count - 1].end_ns;

	double most_ns = waits_ns -
	                 LOADING_HANDOVER_NS * count; /* data that is there at once saves more than any loader */

	return ratio > 0 && most_ns > 0 && shorten_waits(plan, fmin(saved_ns, most_ns) / waits_ns);
}

/* Where processors are the bound, more threads get a larger share of them than others, which the model does not know. */
bool cut_workers(struct replay_plan *plan)
{
	const struct replay_loading *loading = plan->graph->loading;

	if (!loading)
		return false;
	bool is_busy = loading->loader.processors < loading->processors || loading->enough == loading->loader.workers;
	plan->more_ratio = is_busy ? SHARE_RATIO : 0;
	if (loading->enough > loading->loader.workers)
		cut_to(plan, loading->enough_ns);
	return true;
}

bool cut_handover(struct replay_plan *plan)
{
	const struct replay_loading *loading = plan->graph->loading;

	return loading && loading->loader.workers && cut_to(plan, loading->handed_ns);
}
