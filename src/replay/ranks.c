/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.c: see ranks.h. Collectives end at the same time on all ranks, so the ends tell how far clocks are apart.
 */
#include "replay/ranks.h"

#include "base/memory.h"
#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>

/* Returns the works that are collectives, in their order. The caller frees them. */
static struct replay_work **collectives_of(struct replay_graph *graph)
{
	struct replay_work **found = memory_resize(NULL, graph->collectives + 1, sizeof(struct replay_work *));

	for (uint32_t i = 0; i < graph->work_count; i++)
		if (graph->works[i].collective != REPLAY_NONE)
			found[graph->works[i].collective] = &graph->works[i];
	return found;
}

/* In ns of each graph's own time line: the origin of the first rank is 0 for all. */
static double offset_of(const struct replay_graph *graph, struct replay_work *const *mine,
                        const struct replay_graph *first, struct replay_work *const *theirs)
{
	double *differences = memory_resize(NULL, graph->collectives + 1, sizeof(*differences));
	double origins_ns = (double)(graph->origin_ns - first->origin_ns), offset_ns = -origins_ns;

	for (uint32_t i = 0; i < graph->collectives; i++)
		differences[i] = mine[i]->end_ns - theirs[i]->end_ns;
	if (graph->collectives)
		offset_ns = quantile_within(differences, graph->collectives, 0.5);
	free(differences);
	return offset_ns;
}

static void share_durations(struct replay_work **const *works, uint32_t ranks, uint32_t collectives)
{
	for (uint32_t i = 0; i < collectives; i++) {
		double least_ns = INFINITY;

		for (uint32_t rank = 0; rank < ranks; rank++)
			least_ns = fmin(least_ns, works[rank][i]->dur_ns);
		for (uint32_t rank = 0; rank < ranks; rank++)
			works[rank][i]->dur_ns = least_ns;
	}
}

/* ---- meetings on the host ---- */

/* The time at which the rank is ready to meet the others; NAN: the item is no meeting. */
static double ready_of(const struct replay_graph *graph, const struct replay_item *item)
{
	return item->kind == REPLAY_MEET ? item->start_ns - graph->offset_ns - item->own_ns : NAN;
}

/* Sets how long after the last rank was ready each one goes on. */
static void join_meetings(struct replay_graph *graphs, uint32_t count)
{
	double *latest_ns = memory_resize(NULL, graphs[0].step_count + 1, sizeof(*latest_ns));

	for (uint32_t s = 0; s < graphs[0].step_count; s++)
		latest_ns[s] = -INFINITY;
	for (uint32_t rank = 0; rank < count; rank++)
		for (uint32_t i = 0; i < graphs[rank].item_count; i++)
			if (graphs[rank].items[i].kind == REPLAY_MEET) {
				double *latest = &latest_ns[graphs[rank].items[i].step];

				*latest = fmax(*latest, ready_of(&graphs[rank], &graphs[rank].items[i]));
			}
	for (uint32_t rank = 0; rank < count; rank++)
		for (uint32_t i = 0; i < graphs[rank].item_count; i++) {
			struct replay_item *item = &graphs[rank].items[i];

			if (item->kind == REPLAY_MEET)
				item->after_ns = item->start_ns - graphs[rank].offset_ns - latest_ns[item->step];
		}
	free(latest_ns);
}

static bool meet_alike(const struct replay_graph *graphs, uint32_t count)
{
	for (uint32_t rank = 1; rank < count; rank++)
		if (graphs[rank].recording.has_meetings != graphs[0].recording.has_meetings ||
		    (graphs[0].recording.has_meetings && graphs[rank].step_count != graphs[0].step_count))
			return false;
	return true;
}

/* ---- the whole ---- */

bool replay_ranks_join(struct replay_graph *graphs, uint32_t count)
{
	struct replay_work ***works;

	if (!meet_alike(graphs, count))
		return false;
	for (uint32_t rank = 1; rank < count; rank++)
		if (graphs[rank].collectives != graphs[0].collectives)
			return false;
	works = memory_resize(NULL, count, sizeof(*works));
	for (uint32_t rank = 0; rank < count; rank++)
		works[rank] = collectives_of(&graphs[rank]);
	for (uint32_t rank = 1; rank < count; rank++)
		graphs[rank].offset_ns = offset_of(&graphs[rank], works[rank], &graphs[0], works[0]);
	share_durations(works, count, graphs[0].collectives);
	if (graphs[0].recording.has_meetings)
		join_meetings(graphs, count);
	for (uint32_t rank = 0; rank < count; rank++)
		free(works[rank]);
	free(works);
	return true;
}
