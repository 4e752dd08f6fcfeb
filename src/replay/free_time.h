/* SPDX-License-Identifier: Apache-2.0
 *
 * free_time.h: host time outside of operators and waits for batches, before each item.
 */
#ifndef REPLAY_FREE_TIME_H
#define REPLAY_FREE_TIME_H

#include "replay/graph.h"

struct free_time {
	double *free_ns; /* by item */
	double usual_ns; /* median of those that have any */
	double long_ns;  /* a longer stretch is more than launching */
};

/* Finds the free time of a graph once; the graph keeps it. */
const struct free_time *free_time_of(const struct replay_graph *graph);
void free_time_release(struct free_time *time); /* accepts NULL */

/* Returns the part of the gap before the item that is host work of its own: a long stretch that comes in each step. */
double free_time_long(const struct replay_graph *graph, uint32_t item);
/* Returns the part of the gap before the item that the usual step does not have; 0: it is usual. */
double free_time_irregular(const struct replay_graph *graph, uint32_t item);
/* Returns the limit above which a duration at a place with this median is irregular. */
double free_time_limit(const struct replay_graph *graph, double median_ns);

#endif
