/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_calls.h: the collectives of torch.distributed in a recording. The program issues each one
 * ("c10d::allreduce_", on the caller's thread), and the backend executes it ("gloo:all_reduce", on another thread).
 *
 * PyTorch does not record which execution belongs to which issue. Each group has its threads, so a later collective of
 * one group may be executed before an earlier one of another. So the n-th issue of a kind and size is matched with the
 * n-th execution of that kind and size in the process. This requires equal numbers of both, and that no execution
 * precedes its issue. Otherwise the match is unknown.
 *
 * Two collectives of the same kind and size may be swapped, but sums and means over all of them are right. (gloo
 * reduces and scatters by an all_reduce.)
 *
 * If older operators were removed again, only calls of the complete time after that are included. The first executions
 * may then belong to removed issues: the smallest number such that no other is executed before its issue. They have no
 * partner, nor have issues at the end that were not executed.
 *
 * Recordings note the process group of an execution in its arguments, by its thread (names: pytorch/names.h). An issue
 * has the group of its execution.
 */
#ifndef ANALYSIS_RANKS_COLLECTIVE_CALLS_H
#define ANALYSIS_RANKS_COLLECTIVE_CALLS_H

#include "model/model.h"

struct collective_call {
	uint32_t process, track;
	uint32_t name;   /* string */
	uint32_t inputs; /* string, 0: not recorded */
	int32_t step;    /* index into model.steps, -1: none */
	int64_t start_ns, end_ns;
	uint32_t kind;    /* issues and executions of one kind have the same number, 0: unknown */
	double elements;  /* of its tensors in this rank; 0: unknown, or none */
	uint32_t partner; /* of an issue the index of its execution, and the other way round; MODEL_NONE: unknown */
	struct collective_group {
		uint32_t name;    /* of its process group: string; in all three 0 is unknown */
		uint32_t members; /* string: its ranks, "[0, 1]" */
		uint32_t ranks;   /* number of ranks */
	} group;
};

struct collective_calls {        /* both sorted by process and start */
	struct storage *storage; /* of the model, which must outlive them */
	struct collective_call *issues, *executions;
	uint32_t issue_count, execution_count;
};

void collective_calls_find(struct collective_calls *calls, const struct model *model);
/* Returns the process group in the arguments of this span; unknown fields are 0. */
struct collective_group collective_group_of(const struct model *model, uint32_t track, uint32_t row);

void collective_calls_release(struct collective_calls *calls);

/* Sets [*first, *end) to the part of a list that belongs to the process. */
void collective_calls_of(const struct collective_call *list, uint32_t count, uint32_t process, uint32_t *first,
                         uint32_t *end);

/* Computes the bytes of all tensors in an INPUTS text. Returns false if they are not all known; `reason` says why; NULL:
 * no sizes were recorded (REASON_NO_SHAPES). */
bool collective_bytes(const char *inputs, double *bytes, const char **reason);

#endif
