/* SPDX-License-Identifier: Apache-2.0
 *
 * missing_ranks.h: ranks that the job has, and that are not here: the file of one was not copied, or it ran on another
 * machine. Whoever waits in a collective may wait for one of them.
 */
#ifndef ANALYSIS_RANKS_MISSING_RANKS_H
#define ANALYSIS_RANKS_MISSING_RANKS_H

#include "base/arena.h"
#include "model/model.h"

struct missing_ranks {
	uint32_t count; /* 0: all are here, or nobody says how many there are; where only a part is sure to be there, of that */
	const char *
		text; /* "rank 1 of 4", "ranks 1, 3 to 5 of 8"; "3 of 4 ranks" where those that are here do not say which they are;
		         "rank 2 of at least 4 (there is rank 3)" where nobody says how many there are */
};

struct missing_ranks missing_ranks_find(const struct model *model, struct arena *arena);

#endif
