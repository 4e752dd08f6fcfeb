/* SPDX-License-Identifier: Apache-2.0
 *
 * works.h: the works of the devices of a process, and their order on each stream.
 */
#ifndef REPLAY_WORKS_H
#define REPLAY_WORKS_H

#include "replay/graph.h"

/* Adds works and streams to a graph with items. */
void replay_add_works(struct replay_graph *graph, const struct launches *launches);

#endif
