/* SPDX-License-Identifier: Apache-2.0
 *
 * usual.h: usual values of a window: the lag of a work after its launch and after the work before it, the duration of
 * each call, and the depth of the launch queue.
 */
#ifndef REPLAY_USUAL_H
#define REPLAY_USUAL_H

#include "model/number_map.h"
#include "replay/graph.h"

struct usual_times {
	struct number_map names; /* by string: index into calls_ns */
	double *calls_ns;
	uint32_t count, capacity;
};

/* Fills launch_ns, stream_ns, and depth of the graph, and the calls. */
void usual_find(struct usual_times *usual, struct replay_graph *graph);
void usual_release(struct usual_times *usual);
/* Returns the duration of a call that did not wait for room in the queue. */
double usual_call_ns(const struct usual_times *usual, uint32_t name);

#endif
