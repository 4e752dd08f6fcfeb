/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h: the ranks of a job in one replay. The nth collective of each rank is one: it starts when the last rank has
 * come to it. What it then takes is the shortest duration of all ranks, since the others waited in it.
 */
#ifndef REPLAY_RANKS_H
#define REPLAY_RANKS_H

#include "replay/graph.h"

/* Sets the durations of collectives and the offsets of clocks. Returns false if the ranks do not have the same
 * collectives. */
bool replay_ranks_join(struct replay_graph *graphs, uint32_t count);

#endif
