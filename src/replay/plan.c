/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: see plan.h.
 */
#include "replay/plan.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "replay/places.h"
#include "replay/row_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void replay_plan_reset(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;

	for (uint32_t i = 0; i < graph->item_count; i++) {
		const struct replay_item *item = &graph->items[i];

		plan->items[i] = (struct plan_item){.gap_ns = item->gap_ns,
		                                    .own_ns = item->own_ns,
		                                    .after_ns = item->after_ns,
		                                    .rows = item->rows,
		                                    .triton = item->triton,
		                                    .hidden = item->hidden};
	}
	for (uint32_t i = 0; i < graph->work_count; i++)
		plan->works[i] = (struct plan_work){.dur_ns = graph->works[i].dur_ns,
		                                    .launch_ns = graph->works[i].launch_ns,
		                                    .stream_ns = graph->works[i].stream_ns};
	for (uint32_t t = 0; t < graph->thread_count; t++)
		plan->removed[t].count = 0;
	plan->is_alone = plan->shows_late = false;
	plan->more_ratio = 0;
}

void replay_plan_init(struct replay_plan *plan, const struct replay_graph *graph)
{
	struct storage *storage = graph->model->storage;

	*plan = (struct replay_plan){.graph = graph};
	plan->items = storage_resize(storage, NULL, graph->item_count + 1, sizeof(*plan->items));
	plan->works = storage_resize(storage, NULL, graph->work_count + 1, sizeof(*plan->works));
	plan->works_ns = storage_resize(storage, NULL, graph->work_count + 1, sizeof(*plan->works_ns));
	plan->batches_ns = storage_resize(storage, NULL, graph->item_count + 1, sizeof(*plan->batches_ns));
	plan->removed = memory_resize(NULL, graph->thread_count + 1, sizeof(*plan->removed));
	memset(plan->removed, 0, (graph->thread_count + 1) * sizeof(*plan->removed));
	replay_plan_reset(plan);
}

static void plan_stretches_release(struct replay_stretches *stretches, const struct replay_plan *plan)
{
	storage_release(plan->graph->model->storage, stretches->list);
	*stretches = (struct replay_stretches){0};
}

void replay_plan_release(struct replay_plan *plan)
{
	storage_release(plan->graph->model->storage, plan->items);
	storage_release(plan->graph->model->storage, plan->works);
	storage_release(plan->graph->model->storage, plan->works_ns);
	storage_release(plan->graph->model->storage, plan->batches_ns);
	for (uint32_t t = 0; t < plan->graph->thread_count; t++)
		plan_stretches_release(&plan->removed[t], plan);
	free(plan->removed);
	*plan = (struct replay_plan){0};
}

void replay_plan_usual(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;

	for (uint32_t i = 0; i < graph->item_count; i++) {
		const struct replay_item *item = &graph->items[i];
		const struct replay_work *work = item->work == REPLAY_NONE ? NULL : &graph->works[item->work];

		if (work && work->is_from_end)
			plan->works[item->work].launch_ns = graph->launch_ns;
		if (work)
			plan->works[item->work].stream_ns = graph->stream_ns;
		if (item->kind != REPLAY_BATCH && !item->is_allocation &&
		    (item->has_target || item->is_full || (work && work->is_blocking)))
			plan->items[i].after_ns = fmin(item->after_ns, 10e3);
	}
}

double *replay_step_gaps(const struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	double *gaps_ns = memory_resize(NULL, graph->step_count, sizeof(*gaps_ns));

	for (uint32_t s = 0; s < graph->step_count; s++)
		gaps_ns[s] = 0;
	for (uint32_t i = 1; i < graph->item_count; i++)
		if (graph->items[i].thread == graph->main_thread)
			gaps_ns[graph->items[i].step] += plan->items[i].gap_ns;
	return gaps_ns;
}

/* ---- stretches ---- */

void plan_stretches_add(struct replay_stretches *stretches, const struct replay_plan *plan, double start_ns,
                        double end_ns)
{
	if (end_ns <= start_ns)
		return;
	STORAGE_GROW(plan->graph->model->storage, stretches->list, stretches->count, stretches->capacity, 64);
	stretches->list[stretches->count++] = (struct replay_stretch){start_ns, end_ns};
}

static int compare_starts(const void *left, const void *right)
{
	const struct replay_stretch *a = left, *b = right;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static void merge_stretches(struct replay_stretches *stretches, struct storage *storage)
{
	uint32_t kept = 0;

	merge_sort_in(storage, stretches->list, stretches->count, sizeof(*stretches->list), compare_starts);
	for (uint32_t i = 1; i < stretches->count; i++) {
		struct replay_stretch *last = &stretches->list[kept];

		if (stretches->list[i].start_ns <= last->end_ns)
			last->end_ns = fmax(last->end_ns, stretches->list[i].end_ns);
		else
			stretches->list[++kept] = stretches->list[i];
	}
	stretches->count = stretches->count ? kept + 1 : 0;
}

/* Leaves out of the stretches what is gone already, and adds the rest to it. Both are in order, without overlaps. */
static void take_new(struct replay_plan *plan, uint32_t thread, struct replay_stretches *stretches)
{
	struct replay_stretches *removed = &plan->removed[thread], rest = {0};
	uint32_t at = 0, count = stretches->count;

	for (uint32_t i = 0; i < count; i++) {
		double from_ns = stretches->list[i].start_ns, until_ns = stretches->list[i].end_ns;

		while (at < removed->count && removed->list[at].end_ns <= from_ns)
			at++;
		for (uint32_t k = at; k < removed->count && removed->list[k].start_ns < until_ns; k++) {
			plan_stretches_add(&rest, plan, from_ns, fmin(until_ns, removed->list[k].start_ns));
			from_ns = fmax(from_ns, removed->list[k].end_ns);
		}
		plan_stretches_add(&rest, plan, from_ns, until_ns);
	}
	for (uint32_t i = 0; i < count; i++)
		plan_stretches_add(removed, plan, stretches->list[i].start_ns, stretches->list[i].end_ns);
	merge_stretches(removed, plan->graph->model->storage);
	plan_stretches_release(stretches, plan);
	*stretches = rest;
}

/* Takes the part of the stretches that lies in the gap before the item. at: the first stretch that ends behind the
 * begin of the gap. */
static void shorten_gap(struct replay_plan *plan, uint32_t i, const struct replay_stretches *stretches, uint32_t at,
                        struct row_points *points)
{
	const struct replay_item *item = &plan->graph->items[i];
	struct plan_item *planned = &plan->items[i];
	double from_ns = plan->graph->items[item->follows].end_ns;

	for (; at < stretches->count && stretches->list[at].start_ns < item->start_ns; at++) {
		double start_ns = fmax(from_ns, stretches->list[at].start_ns);
		double end_ns = fmin(item->start_ns, stretches->list[at].end_ns);
		uint32_t triton = 0;

		if (end_ns <= start_ns)
			continue;
		planned->gap_ns = fmax(0, planned->gap_ns - (end_ns - start_ns));
		row_points_until(points, start_ns - 1, &triton);
		planned->rows = fmaxf(0, planned->rows - (float)row_points_until(points, end_ns, &triton) / 2);
	}
}

bool replay_plan_remove(struct replay_plan *plan, uint32_t thread, struct replay_stretches *stretches)
{
	const struct replay_graph *graph = plan->graph;
	struct row_points points;
	uint32_t in = 0,
		 gap = 0; /* first stretches that end behind the item's start, and behind the begin of its gap */

	if (!stretches->count)
		return false;
	merge_stretches(stretches, graph->model->storage);
	take_new(plan, thread, stretches);
	row_points_init(&points, graph, &graph->threads[thread]);
	for (uint32_t k = 0; k < graph->threads[thread].item_count; k++) {
		uint32_t i = graph->threads[thread].items[k];
		const struct replay_item *item = &graph->items[i];

		while (in < stretches->count && stretches->list[in].end_ns < item->start_ns)
			in++;
		if (in < stretches->count && item->kind != REPLAY_MARK &&
		    item->start_ns >= stretches->list[in].start_ns - 1 &&
		    item->end_ns <= stretches->list[in].end_ns + 1)
			plan->items[i].is_gone = true;
		if (item->follows == REPLAY_NONE)
			continue;
		double from_ns = graph->items[item->follows].end_ns;
		while (gap > 0 && stretches->list[gap - 1].end_ns > from_ns)
			gap--;
		while (gap < stretches->count && stretches->list[gap].end_ns <= from_ns)
			gap++;
		shorten_gap(plan, i, stretches, gap, &points);
	}
	row_points_release(&points);
	plan_stretches_release(stretches, plan);
	return true;
}

/* ---- steps without operators ---- */

void replay_plan_carry(struct replay_plan *plan, const float *gaps_ns)
{
	const struct replay_graph *graph = plan->graph;
	const struct replay_places *places = graph->places;
	double *sums = memory_resize(NULL, 2 * (size_t)places->place_count + 1, sizeof(*sums));

	memset(sums, 0, 2 * (size_t)places->place_count * sizeof(*sums));
	for (uint32_t i = 1; i < graph->item_count; i++)
		if (places->of_items[i] != REPLAY_NONE && graph->steps[graph->items[i].step].has_operators) {
			double *sum = &sums[2 * places->of_items[i]];

			sum[0] += (double)gaps_ns[i] - plan->items[i].gap_ns;
			sum[1] += gaps_ns[i];
		}
	for (uint32_t i = 1; i < graph->item_count; i++)
		if (places->of_items[i] != REPLAY_NONE && !graph->steps[graph->items[i].step].has_operators) {
			const double *sum = &sums[2 * places->of_items[i]];

			if (sum[1] > 0)
				plan->items[i].gap_ns -= gaps_ns[i] * (sum[0] / sum[1]);
		}
	free(sums);
}
