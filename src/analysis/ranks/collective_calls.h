/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_calls.h: the collectives of torch.distributed that a recording shows: where the program issues each ("c10d::allreduce_", on
 * the caller's thread), and where the backend executes it ("gloo:all_reduce", on a thread of its own).
 *
 * Which issue is which execution PyTorch does not say. Groups have threads of their own, so a later collective of one may be executed
 * before an earlier one of another. So the n-th issue of a kind and size is the n-th execution of that kind and size in the process, when
 * there are as many of both and none is executed before it is issued; else it is not known. Within a kind and size two may be taken for each
 * other: sums and means over all of them are right all the same. (gloo reduces and scatters by an all_reduce.)
 *
 * Where older operators were removed again these are the calls of the time of which all is left. The first executions then are of issues that
 * were removed: as many as it takes for none of the others to be executed before it is issued. These, and at the end issues that were not
 * executed, have no partner.
 *
 * Which process group an execution is of recordings say by its thread (arguments, named as in pytorch/names.h); an issue is of that of its
 * execution.
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
	double elements;  /* of its tensors in this rank; 0: not known, or none */
	uint32_t partner; /* of an issue the index of its execution, and the other way round; MODEL_NONE: not known */
	struct collective_group {
		uint32_t name;    /* of its process group: string, 0: not known; so are the others */
		uint32_t members; /* string: its ranks, "[0, 1]" */
		uint32_t ranks;   /* how many */
	} group;
};

struct collective_calls {        /* both by process and start */
	struct storage *storage; /* of the model, which must outlive them */
	struct collective_call *issues, *executions;
	uint32_t issue_count, execution_count;
};

void collective_calls_find(struct collective_calls *calls, const struct model *model);
/* The process group that arguments of this span tell of; what they do not tell is 0. */
struct collective_group collective_group_of(const struct model *model, uint32_t track, uint32_t row);

void collective_calls_release(struct collective_calls *calls);

/* The part of a list that is of the process: [*first, *end). */
void collective_calls_of(const struct collective_call *list, uint32_t count, uint32_t process, uint32_t *first,
                         uint32_t *end);

/* Bytes of the tensors in an INPUTS text. If it returns false, `reason` says why the sum is unknown; NULL: the input has no sizes
 * (REASON_NO_SHAPES). */
bool collective_bytes(const char *inputs, double *bytes, const char **reason);

#endif
