/* SPDX-License-Identifier: Apache-2.0
 *
 * bind.h: the lags of all edges.
 */
#ifndef REPLAY_BIND_H
#define REPLAY_BIND_H

#include "replay/graph.h"

/* Sets the lags, targets and dependencies of items and works, and the usual values of the graph. */
void replay_bind(struct replay_graph *graph);

#endif
