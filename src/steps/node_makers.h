/* SPDX-License-Identifier: Apache-2.0
 *
 * node_makers.h: which operators made the nodes of a backward, in traces without sequence numbers (PyTorch built without Kineto), where
 * only names tell: `MmBackward0` is the node of `aten::mm`. The engine works on nodes in the order in which they were made, from the
 * last to the first, so the operator of each is looked for before that of the node before it.
 *
 *     node_makers_add(&makers, "aten::mm", start_ns, record);         // every operator that is in no node
 *     size_t made = node_makers_take(&makers, "... MmBackward0", end_ns);    // every node: the record, or NO_NODE_MAKER
 *
 * Operators that no node was found for are forgotten when one comes behind a backward. These traces have whole microseconds, so that what
 * the engine calls for a node, and what that calls last, may begin behind it: such are not taken. More than 262144 at a time are forgotten, too.
 */
#ifndef STEPS_NODE_MAKERS_H
#define STEPS_NODE_MAKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_NODE_MAKER SIZE_MAX

struct node_maker {
	uint64_t name;
	size_t record; /* the caller's: of the outermost operator around it */
};

struct node_makers {
	struct node_maker *list;
	size_t count, capacity;
	bool is_behind_node;
	int64_t node_end_ns; /* then: of the last one */
};

/* Does what begins then lie in the last node? Not asked of what the engine itself begins. */
bool node_makers_is_in_node(const struct node_makers *makers, int64_t start_ns);
void node_makers_add(struct node_makers *makers, const char *name, int64_t start_ns, size_t record);
size_t node_makers_take(struct node_makers *makers, const char *node, int64_t end_ns);
/* Records got other numbers: all that are known, less by so many. */
void node_makers_move(struct node_makers *makers, size_t less);
void node_makers_forget(struct node_makers *makers);
void node_makers_release(struct node_makers *makers);

#endif
