/* SPDX-License-Identifier: Apache-2.0
 *
 * node_numbers.h: finds the forwards that a backward worked on, by autograd's sequence numbers. A node of the graph has
 * the number of the operator that made it. A thread's numbers grow, so a forward has the numbers from its first one up
 * to the next forward's first one. All numbers between the lowest and the highest of one backward count: operators
 * computed among those of a forward are part of it.
 *
 *     node_numbers_note(&numbers, &last, call, word);   // each node of each backward, per thread in order of time
 *     node_numbers_settle(&numbers);
 *     forward->is_unused = !node_numbers_have(&numbers, thread, first, end);
 */
#ifndef STEPS_NODE_NUMBERS_H
#define STEPS_NODE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#define NODE_NUMBER_BITS 48
#define NO_NODE_RANGE UINT32_MAX

struct node_range {      /* a run of node numbers that one backward worked on */
	uint64_t thread; /* PyTorch's number of the thread that made the nodes */
	uint64_t lowest, highest;
	uint32_t call;
};

/* A zeroed struct is empty. */
struct node_numbers {
	struct node_range *list;
	uint32_t count, capacity;
};

/* Notes a node. word: the node's number below its thread's number; nodes without a thread's number are ignored. *last:
 * the previous range of the thread that works on the nodes, NO_NODE_RANGE at first. Another `call` is another backward;
 * within one backward, numbers only go down. */
void node_numbers_note(struct node_numbers *numbers, uint32_t *last, uint32_t call, uint64_t word);
void node_numbers_settle(struct node_numbers *numbers);
/* Returns true if a backward worked on a node with a number in [first, end), or on nodes around such a number. Also
 * returns true if numbers are unknown or incomplete. */
bool node_numbers_have(const struct node_numbers *numbers, uint64_t thread, uint64_t first, uint64_t end);
void node_numbers_release(struct node_numbers *numbers);

#endif
