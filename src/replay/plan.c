/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: see plan.h.
 */
#include "replay/plan.h"

#include "base/merge_sort.h"
#include "base/storage.h"
#include "replay/row_points.h"

#include <math.h>

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
	plan->is_alone = plan->shows_late = false;
}

void replay_plan_init(struct replay_plan *plan, const struct replay_graph *graph)
{
	struct storage *storage = graph->model->storage;

	*plan = (struct replay_plan){.graph = graph};
	plan->items = storage_resize(storage, NULL, graph->item_count + 1, sizeof(*plan->items));
	plan->works = storage_resize(storage, NULL, graph->work_count + 1, sizeof(*plan->works));
	plan->works_ns = storage_resize(storage, NULL, graph->work_count + 1, sizeof(*plan->works_ns));
	plan->batches_ns = storage_resize(storage, NULL, graph->item_count + 1, sizeof(*plan->batches_ns));
	replay_plan_reset(plan);
}

void replay_plan_release(struct replay_plan *plan)
{
	storage_release(plan->graph->model->storage, plan->items);
	storage_release(plan->graph->model->storage, plan->works);
	storage_release(plan->graph->model->storage, plan->works_ns);
	storage_release(plan->graph->model->storage, plan->batches_ns);
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

/* ---- stretches ---- */

void plan_stretches_add(struct plan_stretches *stretches, const struct replay_plan *plan, double start_ns,
                        double end_ns)
{
	if (end_ns <= start_ns)
		return;
	STORAGE_GROW(plan->graph->model->storage, stretches->stretches, stretches->count, stretches->capacity, 64);
	stretches->stretches[stretches->count++] = (struct replay_stretch){start_ns, end_ns};
}

void plan_stretches_release(struct plan_stretches *stretches, const struct replay_plan *plan)
{
	storage_release(plan->graph->model->storage, stretches->stretches);
	*stretches = (struct plan_stretches){0};
}

static int compare_starts(const void *left, const void *right)
{
	const struct replay_stretch *a = left, *b = right;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static void merge_stretches(struct plan_stretches *stretches, struct storage *storage)
{
	uint32_t kept = 0;

	merge_sort_in(storage, stretches->stretches, stretches->count, sizeof(*stretches->stretches), compare_starts);
	for (uint32_t i = 1; i < stretches->count; i++) {
		struct replay_stretch *last = &stretches->stretches[kept];

		if (stretches->stretches[i].start_ns <= last->end_ns)
			last->end_ns = fmax(last->end_ns, stretches->stretches[i].end_ns);
		else
			stretches->stretches[++kept] = stretches->stretches[i];
	}
	stretches->count = stretches->count ? kept + 1 : 0;
}

/* Takes the part of the stretches that lies in the gap before the item. at: the first stretch that ends behind the
 * begin of the gap. */
static void shorten_gap(struct replay_plan *plan, uint32_t i, const struct plan_stretches *stretches, uint32_t at,
                        struct row_points *points)
{
	const struct replay_item *item = &plan->graph->items[i];
	struct plan_item *planned = &plan->items[i];
	double from_ns = plan->graph->items[item->follows].end_ns;

	for (; at < stretches->count && stretches->stretches[at].start_ns < item->start_ns; at++) {
		double start_ns = fmax(from_ns, stretches->stretches[at].start_ns);
		double end_ns = fmin(item->start_ns, stretches->stretches[at].end_ns);
		uint32_t triton = 0;

		if (end_ns <= start_ns)
			continue;
		planned->gap_ns = fmax(0, planned->gap_ns - (end_ns - start_ns));
		row_points_until(points, start_ns - 1, &triton);
		planned->rows = fmaxf(0, planned->rows - (float)row_points_until(points, end_ns, &triton) / 2);
	}
}

bool replay_plan_remove(struct replay_plan *plan, uint32_t thread, struct plan_stretches *stretches)
{
	const struct replay_graph *graph = plan->graph;
	struct row_points points;
	uint32_t in = 0,
		 gap = 0; /* first stretches that end behind the item's start, and behind the begin of its gap */

	if (!stretches->count)
		return false;
	merge_stretches(stretches, graph->model->storage);
	row_points_init(&points, graph, &graph->threads[thread]);
	for (uint32_t k = 0; k < graph->threads[thread].item_count; k++) {
		uint32_t i = graph->threads[thread].items[k];
		const struct replay_item *item = &graph->items[i];

		while (in < stretches->count && stretches->stretches[in].end_ns < item->start_ns)
			in++;
		if (in < stretches->count && item->kind != REPLAY_MARK &&
		    item->start_ns >= stretches->stretches[in].start_ns - 1 &&
		    item->end_ns <= stretches->stretches[in].end_ns + 1)
			plan->items[i].is_gone = true;
		if (item->follows == REPLAY_NONE)
			continue;
		double from_ns = graph->items[item->follows].end_ns;
		while (gap > 0 && stretches->stretches[gap - 1].end_ns > from_ns)
			gap--;
		while (gap < stretches->count && stretches->stretches[gap].end_ns <= from_ns)
			gap++;
		shorten_gap(plan, i, stretches, gap, &points);
	}
	row_points_release(&points);
	return true;
}
