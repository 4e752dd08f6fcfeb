/* SPDX-License-Identifier: Apache-2.0
 *
 * free_time.c: see free_time.h.
 */
#include "replay/free_time.h"

#include "base/memory.h"
#include "base/statistics.h"
#include "replay/gaps.h"
#include "replay/places.h"

#include <math.h>
#include <stdlib.h>

#define MOST_VALUES 131072u /* of which a median is taken; of more, each nth */
#define LONG_NS 50e3        /* of host time that is more than launching; and LONG_TIMES the usual stretch */
#define LONG_TIMES 5
#define USUAL_NS 6000     /* where there is none */
#define IRREGULAR_NS 20e3 /* above the median of the place; and shares of that and of a step */
#define IRREGULAR_RATIO 0.2
#define IRREGULAR_STEP_RATIO 0.005

static double median_of_any(const double *values, uint32_t count)
{
	double *some = memory_resize(NULL, count + 1, sizeof(*some)), median = USUAL_NS;
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i += 1 + count / MOST_VALUES)
		if (values[i] > 0)
			some[found++] = values[i];
	if (found)
		median = quantile_within(some, found, 0.5);
	free(some);
	return median;
}

static void find(struct free_time *time, const struct replay_graph *graph)
{
	double *operators_ns = gaps_in_operators(graph);

	time->free_ns = gaps_in_loads(graph);
	for (uint32_t i = 0; i < graph->item_count; i++)
		time->free_ns[i] = fmax(0, graph->items[i].gap_ns - time->free_ns[i] - operators_ns[i]);
	free(operators_ns);
	time->usual_ns = median_of_any(time->free_ns, graph->item_count);
	time->long_ns = fmax(LONG_NS, LONG_TIMES * time->usual_ns);
}

const struct free_time *free_time_of(const struct replay_graph *graph)
{
	if (!graph->free_time->free_ns)
		find(graph->free_time, graph);
	return graph->free_time;
}

void free_time_release(struct free_time *time)
{
	if (time)
		free(time->free_ns);
	free(time);
}

double free_time_long(const struct replay_graph *graph, uint32_t item)
{
	const struct free_time *time = free_time_of(graph);
	const struct replay_places *places = graph->places;
	double free_ns = time->free_ns[item];

	if (places->is_known && item > 0) {
		if (places->of_items[item] == REPLAY_NONE)
			return 0;
		free_ns = fmin(free_ns, places->places[places->of_items[item]].gap_ns);
	}
	return free_ns > time->long_ns ? free_ns - time->usual_ns : 0;
}

double free_time_limit(const struct replay_graph *graph, double median_ns)
{
	double step_ns = graph->steps[graph->step_count - 1].end_ns / graph->step_count;

	return median_ns + fmax(IRREGULAR_NS, fmax(IRREGULAR_RATIO * median_ns, IRREGULAR_STEP_RATIO * step_ns));
}

double free_time_irregular(const struct replay_graph *graph, uint32_t item)
{
	const struct replay_places *places = graph->places;

	if (!places->is_known || !item || places->of_items[item] == REPLAY_NONE)
		return 0;
	double median_ns = places->places[places->of_items[item]].gap_ns;
	return graph->items[item].gap_ns > free_time_limit(graph, median_ns) ? graph->items[item].gap_ns - median_ns
	                                                                     : 0;
}
