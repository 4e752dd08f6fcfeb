/* SPDX-License-Identifier: Apache-2.0
 *
 * missing_ranks.h: ranks of the job that are missing from the input: a file was not copied, or the rank ran on another
 * machine. A rank that waits in a collective may wait for one of them.
 */
#ifndef ANALYSIS_RANKS_MISSING_RANKS_H
#define ANALYSIS_RANKS_MISSING_RANKS_H

#include "base/arena.h"
#include "model/model.h"

struct missing_ranks {
	/* 0: all are here, or the size of the job is unknown. If only its least size is known, counts the ranks
	 * missing from that. */
	uint32_t count;
	/* "rank 1 of 4", "ranks 1, 3 to 5 of 8". "3 of 4 ranks" if the present ones do not say which ranks they are.
	 * "rank 2 of at least 4 (there is rank 3)" if the size of the job is unknown. */
	const char *text;
};

struct missing_ranks missing_ranks_find(const struct model *model, struct arena *arena);

#endif
