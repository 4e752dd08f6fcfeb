/* SPDX-License-Identifier: Apache-2.0
 *
 * gaps.h: how much of the gap before each item lies in waits for batches, or in operators of its thread.
 */
#ifndef REPLAY_GAPS_H
#define REPLAY_GAPS_H

#include "replay/graph.h"

/* Both return ns by item; the caller frees the array. */
double *gaps_in_loads(const struct replay_graph *graph);
double *gaps_in_operators(const struct replay_graph *graph);

#endif
