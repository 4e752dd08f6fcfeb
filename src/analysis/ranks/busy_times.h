/* SPDX-License-Identifier: Apache-2.0
 *
 * busy_times.h: when a thread ran operators and when it ran none, to see what happened meanwhile on other threads. Not
 * all operators count:
 *
 * - Operators that issue a collective ("c10d::...") do not count.
 * - Some operators run Python: the engine's around each node of a backward, with its hooks, and nodes that the program
 *   or FSDP wrote in Python. Only the operators nested in them count.
 * - A wait for a collective does not count, nor does anything nested in it. Such a wait may be nested itself: DTensor
 *   waits inside the operator that needs the result.
 *
 *     struct busy_times busy = {0};
 *     busy_times_of(&busy, model, track);
 *     int64_t idle_ns = end_ns - start_ns - busy_times_in(&busy, start_ns, end_ns);
 *     busy_times_release(&busy);
 */
#ifndef ANALYSIS_RANKS_BUSY_TIMES_H
#define ANALYSIS_RANKS_BUSY_TIMES_H

#include "model/model.h"

struct busy_time {
	int64_t start_ns, end_ns;
};

struct busy_times { /* in order, disjoint */
	struct busy_time *list;
	uint32_t count, capacity;
	uint32_t track;         /* 1 + the track; 0: none yet */
	int64_t waits_until_ns; /* the end of the last operator that waits */
	uint8_t *counts;        /* by string */
	uint32_t counts_capacity;
};

/* Does nothing if it already has the times of that track. */
void busy_times_of(struct busy_times *busy, const struct model *model, uint32_t track);
void busy_times_release(struct busy_times *busy);

/* Returns the index of the first time that ends after the instant; busy->count: there is none. */
uint32_t busy_times_behind(const struct busy_times *busy, int64_t time_ns);
int64_t busy_times_in(const struct busy_times *busy, int64_t start_ns, int64_t end_ns);

#endif
