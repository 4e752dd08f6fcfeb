/* SPDX-License-Identifier: Apache-2.0
 *
 * host_stretches.h: long stretches of the steps' thread in our own recordings: in no operator, no wait for a batch or for
 * other ranks, no call of an optimizer, and in no known cause (enum replay_cause). A program that is not of PyTorch marks phases and ranges:
 * its stretches are those outside of these. They are known in the steps with operators.
 *
 * Stretches between the same two events (by name) are one place. A place counts if its median stretch is long, so time
 * that the thread waited for a processor at a place where it usually does nothing is not host work.
 */
#ifndef REPLAY_HOST_STRETCHES_H
#define REPLAY_HOST_STRETCHES_H

#include "replay/graph.h"

#define HOST_STRETCH_CAUSE UINT32_MAX /* a garbage collection or a compilation, in place of a name */

struct host_stretch {
	double start_ns, end_ns;
	/* strings: names of the events before and after it; 0: begin or end of the step */
	uint32_t before, after;
	uint32_t row; /* of the event behind it, on `track`; MODEL_NONE: end of the step */
	uint32_t track;
	bool is_between; /* between two steps */
};

struct host_stretches {
	struct host_stretch *list; /* in order */
	uint32_t count, capacity;
	bool is_found;
};

/* Finds the stretches of a graph once; the graph keeps them. */
const struct host_stretches *host_stretches_of(const struct replay_graph *graph);
/* Compares two stretches by their place, for sorting; 0: they are at one place. */
int host_stretches_compare_places(const void *left, const void *right);
void host_stretches_release(const struct replay_graph *graph, struct host_stretches *stretches); /* accepts NULL */

#endif
