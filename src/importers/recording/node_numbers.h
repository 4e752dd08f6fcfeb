/* SPDX-License-Identifier: Apache-2.0
 *
 * node_numbers.h: which forwards backwards have worked on, by the numbers that autograd gives operators: a node of a graph has the number of
 * the operator that made it. A thread's numbers grow, so a forward has those from its first one to the next forward's first one.
 * Between the lowest and the highest number that one backward worked on all count: what is computed among the operators of a forward is a
 * part of it.
 *
 *     node_numbers_note(&numbers, &last, call, word);   // each node of each backward, per thread in order of time
 *     node_numbers_settle(&numbers);
 *     forward->is_unused = !node_numbers_have(&numbers, thread, first, end);
 */
#ifndef IMPORTERS_RECORDING_NODE_NUMBERS_H
#define IMPORTERS_RECORDING_NODE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#define NODE_NUMBER_BITS 48
#define NO_NODE_RANGE UINT32_MAX

struct node_range {      /* numbers of nodes that a backward worked on, one after the other */
	uint64_t thread; /* PyTorch's number of the one that made them */
	uint64_t lowest, highest;
	uint32_t call;
};

/* All zero is an empty one. */
struct node_numbers {
	struct node_range *list;
	uint32_t count, capacity;
};

/* word: of the node, below the number of the thread that made it; what has none, is none. *last: the range before on the thread that works on
 * the nodes, NO_NODE_RANGE at first. A call of another number is another backward; in one numbers do not go above those before. */
void node_numbers_note(struct node_numbers *numbers, uint32_t *last, uint32_t call, uint64_t word);
void node_numbers_settle(struct node_numbers *numbers);
/* Has a backward worked on a node with a number from `first` up to, but not with, `end`, or among such ones? Also where no numbers are known,
 * or not all of them. */
bool node_numbers_have(const struct node_numbers *numbers, uint64_t thread, uint64_t first, uint64_t end);
void node_numbers_release(struct node_numbers *numbers);

#endif
