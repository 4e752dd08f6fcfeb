/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts_host.c: the cuts of host time between calls: of each step, between steps, and of some steps. See cuts.h.
 */
#include "base/memory.h"
#include "base/statistics.h"
#include "model/device_names.h"
#include "replay/cuts.h"
#include "replay/cuts_recorded.h"
#include "replay/free_time.h"
#include "replay/gaps.h"
#include "replay/places.h"

#include <math.h>
#include <stdlib.h>

#define ONCE_RATIO 0.8 /* of what the usual step does not have, in one step: it comes once */

/* ---- in each step, and between steps ---- */

static bool is_between_steps(const struct replay_item *item)
{
	return item->kind == REPLAY_MARK && !item->is_end;
}

/* A wait for the copy right before it, not for a value. */
static bool waits_for_copy(const struct replay_graph *graph, const struct replay_item *wait)
{
	uint32_t copy = wait->follows == REPLAY_NONE ? REPLAY_NONE : graph->items[wait->follows].work;

	return copy != REPLAY_NONE && graph->works[copy].copy == COPY_TO_DEVICE;
}

/* The device has nothing to do in a stretch behind a wait for it: the wait is the cause, if launches of the step follow. */
static bool is_behind_wait(const struct replay_graph *graph, const struct replay_item *item)
{
	const struct replay_item *before = &graph->items[item->follows];

	return item->kind != REPLAY_MARK && before->has_target && before->kind != REPLAY_BATCH &&
	       !before->is_allocation && !waits_for_copy(graph, before);
}

/* Sets long_ns[item] of each rank. */
static double **find_long(const struct replay_plan *plans, uint32_t count, bool is_between)
{
	double **long_ns = memory_resize(NULL, count, sizeof(double *));

	for (uint32_t rank = 0; rank < count; rank++) {
		const struct replay_graph *graph = plans[rank].graph;
		long_ns[rank] = memory_resize(NULL, graph->item_count + 1, sizeof(double));
		for (uint32_t i = 0; i < graph->item_count; i++)
			long_ns[rank][i] = graph->items[i].follows != REPLAY_NONE &&
			                                   is_between_steps(&graph->items[i]) == is_between &&
			                                   !is_behind_wait(graph, &graph->items[i])
			                           ? free_time_long(graph, i)
			                           : 0;
	}
	return long_ns;
}

/* A stretch that one rank alone has makes it a slow rank: it is of that cut. */
static void limit_to_median(double *const *long_ns, const struct replay_plan *plans, uint32_t count)
{
	double *values = memory_resize(NULL, count, sizeof(*values));

	for (uint32_t i = 0; i < plans[0].graph->item_count; i++) {
		for (uint32_t rank = 0; rank < count; rank++)
			values[rank] = long_ns[rank][i];
		double median_ns = quantile_within(values, count, 0.5);
		for (uint32_t rank = 0; rank < count; rank++)
			long_ns[rank][i] = fmin(long_ns[rank][i], median_ns);
	}
	free(values);
}

static bool cut_long(struct replay_plan *plans, uint32_t count, bool is_between)
{
	if (is_recorded_on_processors(plans[0].graph))
		return cut_recorded_host(plans, count, is_between);
	double **long_ns = find_long(plans, count, is_between);
	bool is_any = false;

	if (count > 1 && replay_ranks_are_alike(plans, count))
		limit_to_median(long_ns, plans, count);
	for (uint32_t rank = 0; rank < count; rank++) {
		for (uint32_t i = 0; i < plans[rank].graph->item_count; i++)
			if (long_ns[rank][i] > 0) {
				struct plan_item *planned = &plans[rank].items[i];

				planned->gap_ns = fmax(0, planned->gap_ns - long_ns[rank][i]);
				is_any = true;
			}
		free(long_ns[rank]);
	}
	free(long_ns);
	return is_any;
}

bool cut_host(struct replay_plan *plans, uint32_t count)
{
	return cut_long(plans, count, false);
}

bool cut_between(struct replay_plan *plans, uint32_t count)
{
	return cut_long(plans, count, true);
}

bool cut_no_phase(struct replay_plan *plan)
{
	return is_recorded_on_processors(plan->graph) && cut_recorded_no_phase(plan);
}

/* ---- in some steps ---- */

/* A call or wait that takes longer than at its place in other steps. */
static bool shorten_call(struct replay_plan *plan, uint32_t i)
{
	const struct replay_graph *graph = plan->graph;
	const struct replay_item *item = &graph->items[i];
	double median_ns = graph->places->places[graph->places->of_items[i]].own_ns;

	bool is_call = item->kind == REPLAY_OTHER && graph->has_device;
	if ((item->kind != REPLAY_BATCH && !is_call) ||
	    item->end_ns - item->start_ns <= free_time_limit(graph, median_ns))
		return false;
	plan->items[i].own_ns = median_ns;
	return plan->items[i].is_free = true;
}

/* Removes from the item what the usual step does not have. */
static bool remove_irregular(struct replay_plan *plan, uint32_t i)
{
	const struct replay_graph *graph = plan->graph;
	struct plan_item *planned = &plan->items[i];

	if (replay_is_extra(graph->places, i)) {
		planned->is_gone |= graph->items[i].kind != REPLAY_MARK;
		planned->gap_ns = 0;
		planned->rows = 0;
		return true;
	}
	double excess_ns = free_time_irregular(graph, i);
	planned->gap_ns -= fmin(excess_ns, fmax(0, planned->gap_ns));
	return shorten_call(plan, i) || excess_ns > 0;
}

/* The host time and calls of each step that the usual step does not have. The caller frees it. */
static double *irregular_steps(const struct replay_graph *graph)
{
	double *steps_ns = memory_resize(NULL, graph->step_count, sizeof(*steps_ns));

	for (uint32_t s = 0; s < graph->step_count; s++)
		steps_ns[s] = 0;
	for (uint32_t i = 1; i < graph->item_count; i++) {
		const struct replay_item *item = &graph->items[i];
		bool is_extra = replay_is_extra(graph->places, i);

		steps_ns[item->step] += is_extra ? item->gap_ns + item->end_ns - item->start_ns
		                                 : free_time_irregular(graph, i);
	}
	return steps_ns;
}

/* Returns the step that has nearly all of what the usual step does not have; REPLAY_NONE: several have. */
static uint32_t only_step(const struct replay_graph *graph)
{
	double *steps_ns = irregular_steps(graph), sum_ns = 0;
	uint32_t most = 0;

	for (uint32_t s = 0; s < graph->step_count; s++) {
		sum_ns += steps_ns[s];
		most = steps_ns[s] > steps_ns[most] ? s : most;
	}
	bool is_only = sum_ns > 0 && steps_ns[most] >= ONCE_RATIO * sum_ns;
	free(steps_ns);
	return is_only ? most : REPLAY_NONE;
}

static bool cut_irregular(struct replay_plan *plan, bool is_once)
{
	const struct replay_graph *graph = plan->graph;
	bool is_any = false;

	if (!graph->places->is_known || is_recorded_on_processors(graph) ||
	    (only_step(graph) != REPLAY_NONE) != is_once)
		return false;
	for (uint32_t i = 1; i < graph->item_count; i++)
		is_any |= remove_irregular(plan, i);
	return is_any;
}

bool cut_periodic(struct replay_plan *plan)
{
	if (is_recorded_on_processors(plan->graph))
		return cut_recorded_periodic(plan);
	return cut_irregular(plan, false);
}

bool cut_once(struct replay_plan *plan)
{
	return cut_irregular(plan, true);
}
