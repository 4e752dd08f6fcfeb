/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_nodes.h: the nodes that the backwards of a process worked on, by their sequence numbers.
 */
#ifndef IMPORTERS_KINETO_KINETO_NODES_H
#define IMPORTERS_KINETO_KINETO_NODES_H

#include "importers/kineto/kineto_tokens.h"

/* The nodes of the group. A trace does not say which thread is which of PyTorch's, so numbers of all are as if they were of one: some more
 * forwards count as used than are. Sorts the spans of its threads. kinds: enum track_kind by staged track. */
void kineto_nodes_find(struct kineto_import *import, struct kineto_group *group, const uint8_t *kinds);

#endif
