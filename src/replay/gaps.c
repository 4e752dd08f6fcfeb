/* SPDX-License-Identifier: Apache-2.0
 *
 * gaps.c: how much of the gap before each item lies in waits for batches, or in operators of its thread.
 */
#include "replay/gaps.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

/* Stretches of one thread, of either kind, by number. */
struct covers {
	const struct replay_thread *thread;
	bool are_loads;
	uint32_t at; /* the first one that ends behind the begin of the newest gap */
};

static uint32_t cover_count(const struct covers *covers)
{
	return covers->are_loads ? covers->thread->loads.count : covers->thread->operator_count;
}

static struct replay_stretch cover_at(const struct covers *covers, uint32_t i)
{
	if (covers->are_loads)
		return covers->thread->loads.list[i];
	return (struct replay_stretch){covers->thread->operators[i].start_ns, covers->thread->operators[i].end_ns};
}

static double covered(struct covers *covers, double from_ns, double until_ns)
{
	double sum_ns = 0;

	while (covers->at > 0 && cover_at(covers, covers->at - 1).end_ns > from_ns)
		covers->at--;
	while (covers->at < cover_count(covers) && cover_at(covers, covers->at).end_ns <= from_ns)
		covers->at++;
	for (uint32_t i = covers->at; i < cover_count(covers) && cover_at(covers, i).start_ns < until_ns; i++)
		sum_ns += fmax(0, fmin(until_ns, cover_at(covers, i).end_ns) -
		                          fmax(from_ns, cover_at(covers, i).start_ns));
	return sum_ns;
}

static double *gaps_in(const struct replay_graph *graph, bool are_loads)
{
	double *found_ns = memory_resize(NULL, graph->item_count + 1, sizeof(*found_ns));
	struct covers *covers = memory_resize(NULL, graph->thread_count, sizeof(*covers));

	for (uint32_t t = 0; t < graph->thread_count; t++)
		covers[t] = (struct covers){&graph->threads[t], are_loads, 0};
	for (uint32_t i = 0; i < graph->item_count; i++) {
		const struct replay_item *item = &graph->items[i];

		found_ns[i] = item->follows == REPLAY_NONE || item->gap_ns <= 0
		                      ? 0
		                      : covered(&covers[item->thread], graph->items[item->follows].end_ns,
		                                item->start_ns);
	}
	free(covers);
	return found_ns;
}

double *gaps_in_loads(const struct replay_graph *graph)
{
	return gaps_in(graph, true);
}

double *gaps_in_operators(const struct replay_graph *graph)
{
	return gaps_in(graph, false);
}
