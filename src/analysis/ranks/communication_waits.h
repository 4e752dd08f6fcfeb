/* SPDX-License-Identifier: Apache-2.0
 *
 * communication_waits.h: where a thread that carries steps waits for a collective. PyTorch does not record most of
 * these waits (DDP's at the end of a backward, Work.wait()), so one definition serves all tables:
 *
 * - For a stretch of time the thread runs no operator, or only one that is such a wait.
 * - Meanwhile a collective of its process is executed, on another thread or on itself (send and recv, which last until
 *   wait() is over).
 * - Both end together: the thread goes on after the execution's end, or earlier by at most a tenth of the stretch, or
 *   by at most 6 ms and half of the stretch.
 * - The wait is the time that both have in common. If one execution has several such stretches, the longest is the
 *   wait.
 *
 * PyTorch reports the end late, on a busy machine by a turn of the scheduler. Overlapping waits are joined. If
 * executions are not recorded (a backend other than gloo, steps without operators), waits are unknown.
 *
 *     struct communication_waits waits;
 *     communication_waits_find(&waits, model, calls);
 *     ...
 *     communication_waits_release(&waits);
 */
#ifndef ANALYSIS_RANKS_COMMUNICATION_WAITS_H
#define ANALYSIS_RANKS_COMMUNICATION_WAITS_H

#include "analysis/ranks/collective_calls.h"

struct communication_wait {
	uint32_t track;
	int64_t start_ns, end_ns;
};

struct communication_waits {
	struct communication_wait *list; /* by track and start, disjoint */
	uint32_t count, capacity;
	bool *is_unknown; /* by process: it issued collectives, but none of their executions was seen */
};

void communication_waits_find(struct communication_waits *waits, const struct model *model,
                              const struct collective_calls *calls);
void communication_waits_release(struct communication_waits *waits);

/* Sets [*first, *end) to the part of the list that belongs to the track. */
void communication_waits_of(const struct communication_waits *waits, uint32_t track, uint32_t *first, uint32_t *end);

#endif
