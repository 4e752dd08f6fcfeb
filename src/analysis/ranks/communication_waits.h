/* SPDX-License-Identifier: Apache-2.0
 *
 * communication_waits.h: where a thread that carries steps waits for a collective. PyTorch has no record of most of these waits (DDP's at the
 * end of a backward, Work.wait()), so one definition serves all tables:
 *
 *     A stretch in which the thread runs no operator (or one that is such a wait), while a collective of its process is executed, on another thread or (send and
 *     recv, which last until wait() is over) on itself, and which ends with that execution: the thread goes on behind the execution's
 *     end, or (PyTorch tells of that end late, on a busy machine by a turn of the scheduler's) before it by at most a tenth of the stretch, or
 *     6 ms and half of it. The wait is what both have in common; of
 *     several such stretches of one execution it is the longest.
 *
 * Overlapping waits are one. Where executions are not recorded (another backend than gloo, steps without operators) nothing is known.
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
	struct communication_wait *list; /* by track and start, apart from each other */
	uint32_t count, capacity;
	bool *is_unknown; /* by process: it issued collectives, and none was seen to be executed */
};

void communication_waits_find(struct communication_waits *waits, const struct model *model,
                              const struct collective_calls *calls);
void communication_waits_release(struct communication_waits *waits);

/* The part of the list that is of the track: [*first, *end). */
void communication_waits_of(const struct communication_waits *waits, uint32_t track, uint32_t *first, uint32_t *end);

#endif
