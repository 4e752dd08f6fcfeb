/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_blame.h: whose lateness ranks wait for in collectives. Of one collective that is who comes last. But where ranks are in several process
 * groups (tensor and data parallel), the last one may itself have been held up in another group: what it waited there longer than the one that
 * waits now, since both were last in a collective together, is the fault of whom it waited for.
 *
 *     struct rank_blame *blames = rank_blame_find(matches, processes, is_counted);
 *     ...blames[process].caused_ns
 *     free(blames);
 */
#ifndef ANALYSIS_RANKS_RANK_BLAME_H
#define ANALYSIS_RANKS_RANK_BLAME_H

#include "analysis/ranks/collective_matches.h"

struct rank_blame {        /* sums over the other ranks; nobody is to blame for more than what they waited */
	double caused_ns;  /* that they waited because of it */
	double alone_ns;   /* ... that they would not have waited for the next to come, either */
	double most_ns;    /* ... of caused_ns, in the step where it is most */
	int64_t most_step; /* number of that step */
	double waited_ns;  /* itself, because of the others */
};

/* By process. is_counted: by group of the matches, which of them are looked at. */
struct rank_blame *rank_blame_find(const struct collective_matches *matches, uint32_t processes,
                                   const bool *is_counted);

#endif
