/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts_ranks.c: the cuts of collectives, of differences between ranks, and of a rate that falls. See cuts.h.
 */
#include "base/memory.h"
#include "base/statistics.h"
#include "replay/cuts.h"
#include "replay/cuts_recorded.h"
#include "replay/places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FALLS_RATIO 1.02 /* a step that much slower than the fastest */
#define FASTEST_PART 6u  /* the fastest run of that part of the steps */
#define LEAST_FASTEST 3u
#define LEAST_STEPS 4u
#define LEAST_PART 2u       /* steps of each part that is compared */
#define FALL_DEVIATIONS 3.0 /* a linear fall has 3.5, steps that only scatter about 2 */
#define SLOW_DATA_RATIO 1.3 /* waits of a rank for data, against the median of the ranks */
#define SLOW_DATA_NS 100e3

/* ---- collectives ---- */

static bool is_of_collective(const struct replay_graph *graph, uint32_t name)
{
	return !strncmp(model_text(graph->model, name), "c10d::", 6) ||
	       !strcmp(model_text(graph->model, name), "record_param_comms");
}

bool cut_comm(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	bool is_any = false;

	for (uint32_t t = 0; t < graph->thread_count; t++) {
		struct replay_stretches stretches = {0};

		for (uint32_t i = 0; i < graph->threads[t].operator_count; i++)
			if (is_of_collective(graph, graph->threads[t].operators[i].name))
				plan_stretches_add(&stretches, plan, graph->threads[t].operators[i].start_ns,
				                   graph->threads[t].operators[i].end_ns);
		is_any |= replay_plan_remove(plan, t, &stretches);
	}
	for (uint32_t i = 0; i < graph->work_count; i++)
		if (graph->works[i].collective != REPLAY_NONE)
			plan->items[graph->works[i].item].is_gone = is_any = true;
	if (graph->recording.has_meetings)
		cut_recorded_waits(plan);
	plan->is_alone = is_any || graph->recording.has_meetings;
	return plan->is_alone;
}

/* ---- ranks ---- */

bool replay_ranks_are_alike(const struct replay_plan *plans, uint32_t count)
{
	const struct replay_graph *first = plans[0].graph;

	for (uint32_t rank = 1; rank < count; rank++) {
		const struct replay_graph *graph = plans[rank].graph;

		if (graph->item_count != first->item_count)
			return false;
		for (uint32_t i = 0; i < first->item_count; i++)
			if (graph->items[i].kind != first->items[i].kind ||
			    graph->items[i].name != first->items[i].name)
				return false;
	}
	return true;
}

/* Ranks whose loader is slow. Waits that go round the ranks are data, not a slow rank. */
static bool *slow_loaders(const struct replay_plan *plans, uint32_t count)
{
	bool *slow = memory_resize(NULL, count, sizeof(*slow));
	double *waits_ns = memory_resize(NULL, 2 * count, sizeof(*waits_ns)), median_ns;

	for (uint32_t rank = 0; rank < count; rank++) {
		waits_ns[rank] = 0;
		for (uint32_t i = 0; i < plans[rank].graph->item_count; i++)
			if (plans[rank].graph->items[i].kind == REPLAY_BATCH)
				waits_ns[rank] += plans[rank].items[i].own_ns;
		waits_ns[count + rank] = waits_ns[rank];
	}
	median_ns = quantile_within(waits_ns + count, count, 0.5);
	for (uint32_t rank = 0; rank < count; rank++)
		slow[rank] = waits_ns[rank] > SLOW_DATA_RATIO * median_ns + SLOW_DATA_NS;
	free(waits_ns);
	return slow;
}

static void level_item(struct replay_plan *plans, uint32_t count, uint32_t i, const bool *slow, double *values)
{
	double median_ns;

	for (uint32_t rank = 0; rank < count; rank++)
		values[rank] = plans[rank].items[i].gap_ns;
	median_ns = quantile_within(values, count, 0.5);
	for (uint32_t rank = 0; rank < count; rank++)
		plans[rank].items[i].gap_ns = fmin(plans[rank].items[i].gap_ns, median_ns);
	for (uint32_t rank = 0; rank < count; rank++)
		values[rank] = plans[rank].items[i].own_ns;
	median_ns = quantile_within(values, count, 0.5);
	for (uint32_t rank = 0; rank < count; rank++) {
		bool is_batch = plans[rank].graph->items[i].kind == REPLAY_BATCH;

		if (plans[rank].items[i].own_ns <= median_ns || (is_batch && !slow[rank]))
			continue;
		plans[rank].items[i].own_ns = median_ns;
		plans[rank].items[i].is_free |= is_batch;
	}
}

static void level_work(struct replay_plan *plans, uint32_t count, uint32_t i, double *values)
{
	uint32_t with = 0;

	for (uint32_t rank = 0; rank < count; rank++)
		if (plans[rank].graph->items[i].work != REPLAY_NONE)
			values[with++] = plans[rank].works[plans[rank].graph->items[i].work].dur_ns;
	if (with < count)
		return;
	double median_ns = quantile_within(values, count, 0.5);
	for (uint32_t rank = 0; rank < count; rank++) {
		float *dur_ns = &plans[rank].works[plans[rank].graph->items[i].work].dur_ns;

		*dur_ns = fmin(*dur_ns, median_ns);
	}
}

bool cut_rank(struct replay_plan *plans, uint32_t count)
{
	if (is_recorded_on_processors(plans[0].graph))
		return cut_recorded_rank(plans, count);
	if (count < 2 || !replay_ranks_are_alike(plans, count))
		return false;
	bool *slow = slow_loaders(plans, count);
	double *values = memory_resize(NULL, count, sizeof(*values));
	for (uint32_t i = 0; i < plans[0].graph->item_count; i++) {
		level_item(plans, count, i, slow, values);
		level_work(plans, count, i, values);
	}
	free(values);
	free(slow);
	return true;
}

/* ---- a falling rate ---- */

/* The time of a usual item that follows the clock: a kernel, or an operator where no device works. */
static double clocked_ns(const struct replay_graph *graph, uint32_t i)
{
	const struct replay_item *item = &graph->items[i];

	if (replay_is_extra(graph->places, i) || !i)
		return 0;
	if (graph->has_device)
		return item->work != REPLAY_NONE && graph->works[item->work].kind == SPAN_KERNEL &&
		                       graph->works[item->work].collective == REPLAY_NONE
		               ? graph->works[item->work].dur_ns
		               : 0;
	return item->kind == REPLAY_OTHER ? item->own_ns : 0;
}

/* Returns the mean of the fastest run of steps. */
static double fastest_run(const double *values, uint32_t count)
{
	uint32_t size = count / FASTEST_PART > LEAST_FASTEST ? count / FASTEST_PART : LEAST_FASTEST;
	double least = INFINITY;

	for (uint32_t first = 0; first + size <= count; first++) {
		double sum = 0;

		for (uint32_t i = first; i < first + size; i++)
			sum += values[i];
		least = fmin(least, sum / size);
	}
	return least;
}

/* Returns true if two parts of the run differ by far more than the steps in each of them: the rate falls or rises, it does
 * not only scatter. */
static bool falls(const double *values, uint32_t count)
{
	double sums[2] = {0, 0}, squares[2] = {0, 0}, most = 0;

	for (uint32_t i = 0; i < count; i++) {
		sums[1] += values[i];
		squares[1] += values[i] * values[i];
	}
	for (uint32_t i = 0; i + LEAST_PART <= count; i++) {
		double n = i, m = count - i;

		if (i >= LEAST_PART) {
			double within = squares[0] - sums[0] * sums[0] / n + squares[1] - sums[1] * sums[1] / m;
			double difference = fabs(sums[0] / n - sums[1] / m);

			most = fmax(most, difference / sqrt(fmax(within, 1) / (count - 2)));
		}
		sums[0] += values[i];
		squares[0] += values[i] * values[i];
		sums[1] -= values[i];
		squares[1] -= values[i] * values[i];
	}
	return most >= FALL_DEVIATIONS;
}

static bool scale_items(struct replay_plan *plan, const double *factors)
{
	const struct replay_graph *graph = plan->graph;
	bool is_any = false;

	for (uint32_t i = 1; i < graph->item_count; i++) {
		const struct replay_item *item = &graph->items[i];
		double factor = factors[item->step];

		if (factor <= FALLS_RATIO || clocked_ns(graph, i) <= 0)
			continue;
		if (graph->has_device)
			plan->works[item->work].dur_ns /= factor;
		else
			plan->items[i].own_ns /= factor;
		is_any = true;
	}
	return is_any;
}

bool cut_growth(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;

	if (is_recorded_on_processors(graph))
		return cut_recorded_growth(plan);
	double *sums = memory_resize(NULL, graph->step_count, sizeof(*sums));
	bool is_any = false;

	for (uint32_t s = 0; s < graph->step_count; s++)
		sums[s] = 0;
	for (uint32_t i = 0; i < graph->item_count; i++)
		sums[graph->items[i].step] += clocked_ns(graph, i);
	if (graph->step_count >= LEAST_STEPS && graph->places->alike * 2 >= graph->step_count &&
	    falls(sums, graph->step_count)) {
		double fastest = fastest_run(sums, graph->step_count);

		for (uint32_t s = 0; s < graph->step_count; s++)
			sums[s] = fastest > 0 ? fmax(1, sums[s] / fastest) : 1;
		is_any = scale_items(plan, sums);
	}
	free(sums);
	return is_any;
}
