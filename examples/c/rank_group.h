/* SPDX-License-Identifier: Apache-2.0 */
/* Data parallel training with processes: a launcher that forks them, and sums over shared memory. A rank that dies
 * makes the others fail with a message instead of waiting for ever.
 *
 *     int role = ranks_start(&ranks, 4, &failure);       forks; RANK, WORLD_SIZE, ... are set in the children
 *     if (role == RANKS_LAUNCHER)
 *         return ranks_wait(&ranks, &failure);
 *     ranks_join(&ranks, count, &failure);               in every rank, with the same number
 *     ranks_average(&ranks, &engine, values, count, &failure);  in every rank, as often as in the others
 */
#ifndef TRAINER_RANK_GROUP_H
#define TRAINER_RANK_GROUP_H

#include "engine.h"
#include "real.h"

#include <stddef.h>
#include <sys/types.h>

struct ranks_shared;

struct ranks {
	int rank, size; /* 0 of 1 when not started */
	int descriptor; /* of the shared memory, -1 when none */
	struct ranks_shared *shared;
	size_t mapped_bytes, capacity;
	pid_t *children; /* in the launcher only; 0 once gone */
};

enum {
	RANKS_RANK = 0,
	RANKS_LAUNCHER = 1
};

/* Returns RANKS_RANK in each of the `size` children, RANKS_LAUNCHER in the caller, -1 for a failure. A size of 1 forks
 * nothing and returns RANKS_RANK. Call it before any thread is started. */
int ranks_start(struct ranks *ranks, int size, struct failure *failure);

/* Waits for all children, passing on SIGINT and SIGTERM. 0 when all of them succeeded; otherwise -1, and the failure
 * names the first one that did not. */
int ranks_wait(struct ranks *ranks, struct failure *failure);

/* Prepares averaging of at most `capacity` values. */
int ranks_join(struct ranks *ranks, size_t capacity, struct failure *failure);

/* Replaces the values by their mean over all ranks, the same bits in each of them. Fails when a rank is gone. */
int ranks_average(struct ranks *ranks, const struct engine *engine, real *values, size_t count,
                  struct failure *failure);

void ranks_release(struct ranks *ranks);

#endif
