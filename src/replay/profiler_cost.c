/* SPDX-License-Identifier: Apache-2.0
 *
 * profiler_cost.c: see profiler_cost.h.
 */
#include "replay/profiler_cost.h"

#include "base/statistics.h"
#include "base/storage.h"
#include "replay/row_points.h"

#include <math.h>

#define USUAL_UNIT_NS 1400.0 /* of a thread on which it cannot be measured */
#define MOST_UNIT_NS 2500.0  /* the largest of all measured ones: beyond it, rows are apart for another reason */
#define ENOUGH_PAIRS 20u
#define MOST_PAIRS 65536u /* more do not change the percentile */
#define UNIT_SHARE 0.1
#define ROW_UNITS 1.4      /* a row of an operator, if a device was recorded too */
#define ROW_UNITS_CPU 2.35 /* a row of an operator, if nothing else was recorded */
#define CALL_NS 270.0      /* a call of the runtime or driver, with or without a row */
#define TRITON_NS 20e3     /* a launch of a Triton kernel by compiled code */
#define NODE_NS 350.0      /* a node of a graph, on the device */
#define GRAPH_CALL_NS 10e3 /* a launch of a graph, and per node */
#define GRAPH_NODE_NS 10.0
#define LEAST_PART 0.2 /* of a stretch that stays */
#define LEAST_GRAPH 0.5

struct pairs {
	double *values;
	size_t count, capacity;
};

static void add_pair(struct storage *storage, struct pairs *pairs, double value)
{
	STORAGE_GROW(storage, pairs->values, pairs->count, pairs->capacity, 1024);
	pairs->values[pairs->count++] = value;
}

static double low_of(struct pairs *pairs)
{
	return quantile_within(pairs->values, pairs->count, UNIT_SHARE);
}

/* Returns true if an item of the thread starts in [from, until). next: where the last search ended. */
static bool has_item(const struct replay_graph *graph, const struct replay_thread *thread, uint32_t *next,
                     double from_ns, double until_ns)
{
	while (*next < thread->item_count && graph->items[thread->items[*next]].start_ns < from_ns)
		++*next;
	for (uint32_t k = *next; k < thread->item_count && graph->items[thread->items[k]].start_ns < until_ns; k++)
		if (graph->items[thread->items[k]].kind != REPLAY_MARK)
			return true;
	return false;
}

static double measure_unit(const struct replay_graph *graph, uint32_t thread)
{
	struct storage *storage = graph->model->storage;
	struct pairs begins = {0}, ends = {0};
	struct row_points points;
	struct row_point before, point;
	double unit_ns = USUAL_UNIT_NS;
	uint32_t next = 0;
	bool has_before = false;

	row_points_init(&points, graph, &graph->threads[thread]);
	for (; row_points_peek(&points, &point) && (begins.count < MOST_PAIRS || ends.count < MOST_PAIRS);
	     row_points_take(&points), before = point, has_before = true)
		if (has_before && before.is_end == point.is_end &&
		    !has_item(graph, &graph->threads[thread], &next, before.time_ns, point.time_ns))
			add_pair(storage, point.is_end ? &ends : &begins, point.time_ns - before.time_ns);
	row_points_release(&points);
	if (begins.count > ENOUGH_PAIRS && ends.count > ENOUGH_PAIRS) {
		double measured_ns = low_of(&begins) + low_of(&ends);

		unit_ns = measured_ns <= MOST_UNIT_NS ? measured_ns : USUAL_UNIT_NS;
	}
	storage_release(storage, begins.values);
	storage_release(storage, ends.values);
	return unit_ns;
}

void profiler_cost_measure(struct replay_graph *graph)
{
	for (uint32_t t = 0; t < graph->thread_count; t++)
		graph->threads[t].unit_ns = graph->is_recorded ? graph->recording.row_ns : measure_unit(graph, t);
}

void profiler_cost_remove(struct replay_plan *plan, double factor)
{
	const struct replay_graph *graph = plan->graph;
	double row_units = graph->is_recorded ? 1 : graph->has_device ? ROW_UNITS : ROW_UNITS_CPU;

	for (uint32_t i = 0; i < graph->item_count; i++) {
		const struct replay_item *item = &graph->items[i];
		struct plan_item *planned = &plan->items[i];
		double cost_ns = row_units * graph->threads[item->thread].unit_ns * (double)planned->rows +
		                 TRITON_NS * (double)planned->triton + CALL_NS * (double)planned->hidden;

		planned->gap_ns = fmax(planned->gap_ns - factor * cost_ns, LEAST_PART * planned->gap_ns);
		if (item->row != MODEL_NONE && item->kind != REPLAY_BATCH && !planned->is_gone)
			planned->own_ns = fmax(planned->own_ns - factor * CALL_NS, LEAST_PART * planned->own_ns);
		if (item->work == REPLAY_NONE || graph->works[item->work].rows < 2)
			continue;
		double rows = graph->works[item->work].rows;
		float *dur_ns = &plan->works[item->work].dur_ns;
		*dur_ns = fmax(LEAST_GRAPH * *dur_ns, *dur_ns - factor * NODE_NS * rows);
		planned->own_ns = fmin(planned->own_ns, GRAPH_CALL_NS + GRAPH_NODE_NS * rows);
	}
}
