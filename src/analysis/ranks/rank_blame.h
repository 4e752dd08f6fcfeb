/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_blame.h: which rank causes the waits in collectives by being late. In one collective it is the rank that
 * arrives last. But if ranks are in several process groups (tensor and data parallel), the last one may itself have
 * been held up in another group. So the waits of both are compared since they last shared a collective. If the last
 * one waited longer than the one that waits now, the ranks that it waited for cause the difference.
 *
 *     struct rank_blame *blames = rank_blame_find(matches, processes, is_counted);
 *     ...blames[process].caused_ns
 *     free(blames);
 */
#ifndef ANALYSIS_RANKS_RANK_BLAME_H
#define ANALYSIS_RANKS_RANK_BLAME_H

#include "analysis/ranks/collective_matches.h"

struct rank_blame {        /* sums over the other ranks; no rank is blamed for more than their waits */
	double caused_ns;  /* their waits because of it */
	double alone_ns;   /* ... of that, waits that end only with it: the next to come had arrived */
	double most_ns;    /* ... of caused_ns, in the step with the most */
	int64_t most_step; /* number of that step */
	double waited_ns;  /* its own waits because of others */
};

/* Returns the blames by process; the caller frees them. is_counted: by group of the matches, whether it counts. */
struct rank_blame *rank_blame_find(const struct collective_matches *matches, uint32_t processes,
                                   const bool *is_counted);

#endif
