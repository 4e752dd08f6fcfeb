/* SPDX-License-Identifier: Apache-2.0
 *
 * run_captured.c: decides for which processes the run speaks. It uses facts alone; run_captured_find.c finds them.
 */
#include "run/run_captured.h"

#include <stdlib.h>

static int run_captured_compare_ranks(const void *left, const void *right)
{
	const struct captured_process *a = left, *b = right;

	if (a->rank != b->rank)
		return (uint32_t)a->rank < (uint32_t)b->rank ? -1 : 1; /* unknown ranks (-1) come last */
	return (a->order > b->order) - (a->order < b->order);
}

/* Expects trainers of one rank next to each other. */
static void run_captured_settle_ranks(struct run_captured *captured)
{
	struct captured_process *trainers = captured->trainers;
	int end;

	for (int first = 0; first < captured->trainer_count; first = end) {
		int count = 0;

		for (end = first; end < captured->trainer_count && trainers[end].rank == trainers[first].rank; end++)
			count += trainers[end].is_spoken_for;
		for (int i = first; i < end; i++)
			trainers[i].is_rank_shared = trainers[i].rank >= 0 && count > 1;
	}
}

void run_captured_settle(struct run_captured *captured)
{
	struct captured_process *trainers = captured->trainers;

	if (captured->trainer_count)
		qsort(trainers, (size_t)captured->trainer_count, sizeof(*trainers), run_captured_compare_ranks);
	captured->outcome = CAPTURED_UNKNOWN;
	for (int i = 0; i < captured->trainer_count; i++) {
		if (trainers[i].outcome > captured->outcome)
			captured->outcome = trainers[i].outcome;
	}
	captured->spoken_count = 0;
	captured->unwritten = captured->unwritten_workers;
	for (int i = 0; i < captured->trainer_count; i++) {
		trainers[i].is_spoken_for = trainers[i].outcome == captured->outcome;
		captured->spoken_count += trainers[i].is_spoken_for;
		captured->unwritten += trainers[i].unwritten_reason && !trainers[i].is_spoken_for;
	}
	run_captured_settle_ranks(captured);
}

bool run_captured_is_empty(const struct run_captured *captured)
{
	return !captured->trainer_count && !captured->workers;
}

void run_captured_release(struct run_captured *captured)
{
	for (int i = 0; i < captured->trainer_count; i++)
		free(captured->trainers[i].told);
	free(captured->trainers);
	*captured = (struct run_captured){0};
}
