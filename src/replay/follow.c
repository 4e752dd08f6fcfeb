/* SPDX-License-Identifier: Apache-2.0
 *
 * follow.c: which item each item follows on the host, and what lies between the two. As a rule that is the item before
 * on its thread. It is what another thread ended last, if its own thread was in no operator for half of the time since
 * then. So the thread of a backward and the thread that called it follow each other in both directions, without names or
 * flows.
 */
#include "replay/follow.h"

#include "base/memory.h"
#include "replay/row_points.h"

#include <math.h>
#include <stdlib.h>

#define OPERATORS_LOOKED_AT 64u /* for how long a thread was in operators */
#define SAME_TIME_NS 1000.0
#define AROUND_NS 500.0 /* an operator around a call ends at most that much before it */

struct follow_thread {
	struct row_points points;
	uint32_t last;     /* its newest item, REPLAY_NONE: none */
	uint32_t operator; /* the first operator that ended after the newest item */
	uint32_t at;       /* the last operator that began before the newest item */
};

struct follow {
	struct replay_graph *graph;
	struct follow_thread *threads;
	uint32_t newest;      /* the item that ended last, of all threads */
	uint64_t correlation; /* of the newest call */
};

/* Returns the time that the thread was in operators between both instants. */
static double time_in_operators(const struct replay_thread *thread, struct follow_thread *state, double from_ns,
                                double until_ns)
{
	double sum_ns = 0;

	while (state->operator<thread->operator_count && thread->operators[state->operator].end_ns <= from_ns)
		state->operator++;
	for (uint32_t i = state->operator, n = 0; i < thread->operator_count && n < OPERATORS_LOOKED_AT; i++, n++) {
		const struct replay_operator *outermost = &thread->operators[i];

		if (outermost->start_ns >= until_ns)
			break;
		sum_ns += fmin(outermost->end_ns, until_ns) - fmax(outermost->start_ns, from_ns);
	}
	return sum_ns;
}

static uint32_t followed_by(struct follow *follow, const struct replay_item *item)
{
	const struct replay_graph *graph = follow->graph;
	struct follow_thread *state = &follow->threads[item->thread];
	const struct replay_item *newest = follow->newest == REPLAY_NONE ? NULL : &graph->items[follow->newest];

	if (!newest || newest->thread == item->thread || state->last == REPLAY_NONE)
		return newest && state->last == REPLAY_NONE ? follow->newest : state->last;
	double from_ns = graph->items[state->last].end_ns;
	if (newest->end_ns <= from_ns && item->kind != REPLAY_MARK)
		return state->last;
	double busy_ns = time_in_operators(&graph->threads[item->thread], state, from_ns, item->start_ns);
	bool is_idle = busy_ns < 0.5 * (item->start_ns - from_ns);
	return is_idle || newest->end_ns - from_ns < SAME_TIME_NS ? follow->newest : state->last;
}

static void find_around(const struct replay_thread *thread, struct follow_thread *state, struct replay_item *item)
{
	while (state->at + 1 < thread->operator_count && thread->operators[state->at + 1].start_ns <= item->start_ns)
		state->at++;
	if (item->row != MODEL_NONE && state->at < thread->operator_count &&
	    thread->operators[state->at].start_ns <= item->start_ns &&
	    thread->operators[state->at].end_ns >= item->end_ns - AROUND_NS)
		item->around = state->at;
}

/* Rows of operators and of Triton launches between the item that it follows and itself. */
static void count_rows(struct follow_thread *state, const struct replay_graph *graph, struct replay_item *item)
{
	uint32_t triton = 0;

	if (item->follows == REPLAY_NONE)
		return;
	row_points_until(&state->points, graph->items[item->follows].end_ns, &triton);
	triton = 0;
	item->rows = (float)row_points_until(&state->points, item->start_ns, &triton) / 2;
	item->triton = (float)triton;
	item->rows = item->rows > item->triton ? item->rows - item->triton : 0;
}

/* Numbers of calls go up by one, also for calls that have no row. */
static void count_hidden(struct follow *follow, struct replay_item *item)
{
	const struct replay_graph *graph = follow->graph;
	uint32_t i;

	if (item->row == MODEL_NONE || item->kind == REPLAY_BATCH)
		return;
	const struct span_chunk *chunk = track_chunk(graph->model->tracks[item->track], item->row, &i);
	uint64_t correlation = span_correlation(chunk, i);
	if (!correlation)
		return;
	if (follow->correlation && correlation > follow->correlation + 1)
		item->hidden = (float)(correlation - follow->correlation - 1);
	follow->correlation = correlation + item->nested;
}

void replay_follow(struct replay_graph *graph)
{
	struct follow follow = {.graph = graph, .newest = REPLAY_NONE};

	follow.threads = memory_resize(NULL, graph->thread_count, sizeof(*follow.threads));
	for (uint32_t i = 0; i < graph->thread_count; i++) {
		follow.threads[i] = (struct follow_thread){.last = REPLAY_NONE};
		row_points_init(&follow.threads[i].points, graph, &graph->threads[i]);
	}
	for (uint32_t i = 0; i < graph->item_count; i++) {
		struct replay_item *item = &graph->items[i];
		struct follow_thread *state = &follow.threads[item->thread];

		item->follows = followed_by(&follow, item);
		if (item->follows != REPLAY_NONE)
			item->gap_ns = item->start_ns - graph->items[item->follows].end_ns;
		count_rows(state, graph, item);
		find_around(&graph->threads[item->thread], state, item);
		count_hidden(&follow, item);
		state->last = i;
		if (follow.newest == REPLAY_NONE || item->end_ns >= graph->items[follow.newest].end_ns)
			follow.newest = i;
	}
	for (uint32_t i = 0; i < graph->thread_count; i++)
		row_points_release(&follow.threads[i].points);
	free(follow.threads);
}
