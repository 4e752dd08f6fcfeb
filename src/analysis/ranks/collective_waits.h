/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_waits.h: how long ranks wait in collectives for the last one to arrive. A rank may be in several
 * collectives at once, such as the buckets of gradients of one backward. Then its wait counts once, in the collective
 * whose last rank arrived first.
 *
 *     struct collective_waits waits;
 *     collective_waits_find(&waits, &matches, processes);
 *     ...waits.list[run].wait_ns
 *     collective_waits_release(&waits);
 */
#ifndef ANALYSIS_RANKS_COLLECTIVE_WAITS_H
#define ANALYSIS_RANKS_COLLECTIVE_WAITS_H

#include "analysis/ranks/collective_matches.h"

struct collective_wait {
	int64_t wait_ns;
	int64_t alone_ns; /* ... of that, after the last but one had arrived */
};

struct collective_waits {
	struct collective_wait *list; /* by run of the matches */
	uint32_t *order;              /* groups of the matches in the order in which their last ranks arrived */
};

void collective_waits_find(struct collective_waits *waits, const struct collective_matches *matches,
                           uint32_t processes);
void collective_waits_release(struct collective_waits *waits);

#endif
