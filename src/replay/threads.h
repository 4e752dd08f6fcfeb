/* SPDX-License-Identifier: Apache-2.0
 *
 * threads.h: the host threads of a graph, from one pass over their rows: outermost operators, and stretches of which the
 * meaning is known. Private to replay/.
 */
#ifndef REPLAY_THREADS_H
#define REPLAY_THREADS_H

#include "replay/graph.h"

#define BEHIND_WINDOW_NS 50.0 /* a call that starts less before the end of the last step lies behind it */

static inline double replay_since_origin(const struct replay_graph *graph, int64_t time_ns)
{
	return (double)(time_ns - graph->origin_ns);
}

static inline bool replay_is_in_window(const struct replay_graph *graph, double start_ns)
{
	return start_ns >= 0 && start_ns < graph->steps[graph->step_count - 1].end_ns - BEHIND_WINDOW_NS;
}

/* Classes of `rows` of a graph. */
uint8_t replay_classify_row(const char *name);
/* Returns true for rows that wait for a batch, or make it meanwhile. */
bool replay_is_load(struct replay_graph *graph, const struct span_chunk *chunk, uint32_t i);

/* Adds the threads of the graph's process. The steps are there. */
void replay_add_threads(struct replay_graph *graph, const struct launches *launches);
/* Adds the waits of the window to those that are marked. The threads are there. */
void replay_add_waits(struct replay_graph *graph, const struct replay_window *window);

#endif
