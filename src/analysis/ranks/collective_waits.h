/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_waits.h: how long ranks wait in collectives for the last one to come. A rank may be in several at once, such as the buckets of
 * gradients of one backward: what it waits then counts once, in the one whose last rank came first.
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
	int64_t alone_ns; /* ... that it would not have waited for the last but one, either */
};

struct collective_waits {
	struct collective_wait *list; /* by run of the matches */
	uint32_t *order;              /* groups of the matches as their last ranks came */
};

void collective_waits_find(struct collective_waits *waits, const struct collective_matches *matches,
                           uint32_t processes);
void collective_waits_release(struct collective_waits *waits);

#endif
