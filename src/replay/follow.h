/* SPDX-License-Identifier: Apache-2.0
 *
 * follow.h: the item that each item follows on the host.
 */
#ifndef REPLAY_FOLLOW_H
#define REPLAY_FOLLOW_H

#include "replay/graph.h"

/* Sets what each item follows, the host time between both, and the rows in it. */
void replay_follow(struct replay_graph *graph);

#endif
