/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_arrivals.h: which rank the others wait for. All ranks of a synchronous job show the same step time; they differ
 * in when they arrive at a collective. If executions of collectives were recorded, the slow rank is the one that the
 * others wait for longest in them (as in the table `rank_collectives`). If only the calls on the host were recorded,
 * it is the one that comes last to the last collective of a step.
 *
 *     struct rank_arrivals arrivals;
 *     rank_arrivals_find(&arrivals, &context, times);
 *     if (!arrivals.no_waits)
 *             ...arrivals.list[i].caused_ns
 *     rank_arrivals_release(&arrivals);
 */
#ifndef ANALYSIS_RANKS_RANK_ARRIVALS_H
#define ANALYSIS_RANKS_RANK_ARRIVALS_H

#include "analysis/step_times/step_times.h"

struct rank_arrival {      /* of one rank; means over steps that all ranks completed */
	double late_ns;    /* from the first rank's call of the last collective of a step to its own */
	double waits_ns;   /* from its own call to the last rank's */
	double caused_ns;  /* mean wait of each of the others in collectives because of it (rank_blame.h) */
	double alone_ns;   /* ... of that, their gain if it were no later than the next */
	double then_ns;    /* alone_ns among the others, without the rank that causes most */
	double waited_ns;  /* its own wait in collectives because of others */
	double most_share; /* share of most_step, the step with most, in all waits that it causes; 0: it causes none */
	int64_t most_step; /* number */
};

struct rank_arrivals {
	struct rank_arrival *list; /* like times->spans; processes that are not ranks are unused */
	const char *no_calls;      /* why late_ns and waits_ns are unknown; NULL: they are known */
	const char *no_waits;      /* why caused_ns and alone_ns are unknown; NULL: they are known */
	const char *no_then;       /* why then_ns is unknown; NULL: it is known */
	uint32_t steps;            /* that all ranks completed */
	uint32_t measured; /* of these: with operators in all ranks; for the means caused_ns, alone_ns and then_ns */
};

/* The collectives correct the clocks of several machines, and of traces that do not name their machine
 * (collective_matches.h). */
void rank_arrivals_find(struct rank_arrivals *arrivals, struct analysis_context *context,
                        const struct step_times *times);
void rank_arrivals_release(struct rank_arrivals *arrivals);

#endif
