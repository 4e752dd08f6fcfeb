/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts_host.c: the cuts of host time between calls: of each step, between steps, and of some steps. See cuts.h.
 */
#include "base/memory.h"
#include "base/statistics.h"
#include "replay/cuts.h"
#include "replay/places.h"

#include <math.h>
#include <stdlib.h>

#define LONG_NS 50e3 /* of host time that is more than launching; and LONG_TIMES the usual stretch */
#define LONG_TIMES 5
#define USUAL_NS 6000 /* where there is none */
#define IRREGULAR_NS 20e3 /* above the median of the place; and shares of that and of a step */
#define IRREGULAR_RATIO 0.2
#define IRREGULAR_STEP_RATIO 0.005

/* ---- free time ---- */

static double median_of_any(const double *values, uint32_t count)
{
	double *some = memory_resize(NULL, count + 1, sizeof(*some)), median = USUAL_NS;
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++)
		if (values[i] > 0)
			some[found++] = values[i];
	sort_doubles(some, found);
	if (found)
		median = quantile(some, found, 0.5);
	free(some);
	return median;
}

void free_time_find(struct free_time *time, const struct replay_graph *graph)
{
	double *operators_ns = gaps_in_operators(graph);

	time->free_ns = gaps_in_loads(graph);
	for (uint32_t i = 0; i < graph->item_count; i++)
		time->free_ns[i] = fmax(0, graph->items[i].gap_ns - time->free_ns[i] - operators_ns[i]);
	free(operators_ns);
	time->usual_ns = median_of_any(time->free_ns, graph->item_count);
	time->long_ns = fmax(LONG_NS, LONG_TIMES * time->usual_ns);
}

void free_time_release(struct free_time *time)
{
	free(time->free_ns);
	*time = (struct free_time){0};
}

double free_time_long(const struct free_time *time, const struct replay_graph *graph, uint32_t item)
{
	const struct replay_places *places = graph->places;
	double free_ns = time->free_ns[item];

	if (places->is_known && item > 0) {
		if (places->of_items[item] == REPLAY_NONE)
			return 0;
		free_ns = fmin(free_ns, places->places[places->of_items[item]].gap_ns);
	}
	return free_ns > time->long_ns ? free_ns - time->usual_ns : 0;
}

/* ---- in each step, and between steps ---- */

static bool is_between_steps(const struct replay_item *item)
{
	return item->kind == REPLAY_MARK && !item->is_end;
}

static bool cut_long(struct replay_plan *plan, bool is_between)
{
	const struct replay_graph *graph = plan->graph;
	struct free_time time;
	bool is_any = false;

	free_time_find(&time, graph);
	for (uint32_t i = 0; i < graph->item_count; i++) {
		double long_ns = free_time_long(&time, graph, i);

		if (long_ns <= 0 || graph->items[i].follows == REPLAY_NONE ||
		    is_between_steps(&graph->items[i]) != is_between)
			continue;
		plan->items[i].gap_ns = fmax(0, plan->items[i].gap_ns - long_ns);
		is_any = true;
	}
	free_time_release(&time);
	return is_any;
}

bool cut_host(struct replay_plan *plan)
{
	return cut_long(plan, false);
}

bool cut_between(struct replay_plan *plan)
{
	return cut_long(plan, true);
}

/* ---- in some steps ---- */

static double irregular_limit(const struct replay_graph *graph, double median_ns)
{
	double step_ns = graph->steps[graph->step_count - 1].end_ns / graph->step_count;

	return median_ns + fmax(IRREGULAR_NS, fmax(IRREGULAR_RATIO * median_ns, IRREGULAR_STEP_RATIO * step_ns));
}

double irregular_gap(const struct replay_graph *graph, uint32_t item)
{
	const struct replay_places *places = graph->places;

	if (!places->is_known || !item || places->of_items[item] == REPLAY_NONE)
		return 0;
	double median_ns = places->places[places->of_items[item]].gap_ns;
	return graph->items[item].gap_ns > irregular_limit(graph, median_ns) ? graph->items[item].gap_ns - median_ns : 0;
}

/* A call or wait that takes longer than at its place in other steps. */
static bool shorten_call(struct replay_plan *plan, uint32_t i)
{
	const struct replay_graph *graph = plan->graph;
	const struct replay_item *item = &graph->items[i];
	double median_ns = graph->places->places[graph->places->of_items[i]].own_ns;

	if ((item->kind != REPLAY_BATCH && item->kind != REPLAY_OTHER) ||
	    item->end_ns - item->start_ns <= irregular_limit(graph, median_ns))
		return false;
	plan->items[i].own_ns = median_ns;
	return plan->items[i].is_free = true;
}

bool cut_periodic(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	bool is_any = false;

	if (!graph->places->is_known)
		return false;
	for (uint32_t i = 1; i < graph->item_count; i++) {
		struct plan_item *planned = &plan->items[i];

		if (replay_is_extra(graph->places, i)) {
			planned->is_gone |= graph->items[i].kind != REPLAY_MARK;
			planned->gap_ns = 0;
			planned->rows = 0;
			is_any = true;
			continue;
		}
		double excess_ns = irregular_gap(graph, i);
		planned->gap_ns -= fmin(excess_ns, fmax(0, planned->gap_ns));
		is_any |= excess_ns > 0;
		is_any |= shorten_call(plan, i);
	}
	return is_any;
}
