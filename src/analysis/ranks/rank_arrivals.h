/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_arrivals.h: which rank the others wait for. All ranks of a synchronous job show the same step time; what differs is when each comes to
 * a collective. Where executions of collectives were recorded, who is slow is who the others wait for longest in them (as in the table
 * `rank_collectives`); where only the calls on the host were, who comes last to the last one of a step.
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
	double late_ns;    /* it calls the last collective of a step behind the first rank */
	double waits_ns;   /* before the last rank */
	double caused_ns;  /* each of the others, in the mean, waits in collectives because of it (rank_blame.h) */
	double alone_ns;   /* ... what they would gain were it no later than the next */
	double then_ns;    /* the same among the others, without the one that causes most */
	double waited_ns;  /* it waits in collectives because of others */
	double most_share; /* of what it causes, what it causes in most_step, where that is most; 0: it causes nothing */
	int64_t most_step; /* number */
};

struct rank_arrivals {
	struct rank_arrival *list; /* like times->spans, those that are no ranks unused */
	const char *no_calls;      /* why late_ns and waits_ns are not known; NULL: they are */
	const char *no_waits;      /* why caused_ns and alone_ns are not known; NULL: they are */
	const char *no_then;       /* why then_ns is not known; NULL: it is */
	uint32_t steps;            /* that all ranks completed */
	uint32_t measured; /* of these: with operators in all ranks; caused_ns, alone_ns and then_ns are means over them */
};

/* Clocks of several machines, and of traces that do not say where they are from, are put right by the collectives
 * (collective_matches.h). */
void rank_arrivals_find(struct rank_arrivals *arrivals, struct analysis_context *context,
                        const struct step_times *times);
void rank_arrivals_release(struct rank_arrivals *arrivals);

#endif
