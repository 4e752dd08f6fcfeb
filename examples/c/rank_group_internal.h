/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher and the ranks share; for rank_*.c only. */
#ifndef TRAINER_RANK_GROUP_INTERNAL_H
#define TRAINER_RANK_GROUP_INTERNAL_H

#include "rank_group.h"

#include <stdatomic.h>
#include <stdint.h>

/* First page of the shared memory. After it: one array of `capacity` values per rank, and one for the result. */
struct ranks_shared {
	_Atomic uint32_t round;   /* barriers passed; ranks sleep on it */
	_Atomic uint32_t arrived; /* ranks at the current barrier */
	_Atomic uint32_t failed;  /* 1 + a rank that is gone, 0 while all are well */
};

#define RANKS_HEADER_BYTES 4096

/* Wakes all ranks that sleep at a barrier. */
void ranks_wake(struct ranks_shared *shared);

#endif
