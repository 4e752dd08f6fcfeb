/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_calls.h: the collectives of torch.distributed that a recording shows: where the program issues each ("c10d::allreduce_", on
 * the caller's thread), and where the backend executes it ("gloo:all_reduce", on a thread of its own). The n-th issue of a process is its
 * n-th execution, in order of their starts, when there are as many of both; names need not agree (gloo reduces and scatters by an
 * all_reduce).
 */
#ifndef ANALYSIS_COLLECTIVE_CALLS_H
#define ANALYSIS_COLLECTIVE_CALLS_H

#include "model/model.h"

struct collective_call {
	uint32_t process, track;
	uint32_t name;   /* string */
	uint32_t inputs; /* string, 0: not recorded */
	int32_t step;    /* index into model.steps, -1: none */
	int64_t start_ns, end_ns;
};

struct collective_calls { /* both by process and start */
	struct collective_call *issues, *executions;
	uint32_t issue_count, execution_count;
};

void collective_calls_find(struct collective_calls *calls, const struct model *model);
void collective_calls_release(struct collective_calls *calls);

/* The part of a list that is of the process: [*first, *end). */
void collective_calls_of(const struct collective_call *list, uint32_t count, uint32_t process, uint32_t *first,
                         uint32_t *end);

/* Bytes of the tensors in an INPUTS text; false: `reason` says why they are not known. */
bool collective_bytes(const char *inputs, double *bytes, const char **reason);

#endif
