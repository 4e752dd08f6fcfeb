/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_handovers.h: the way of batches between a loop and its workers: the worker that each batch was sent to, and the
 * times in which finished batches were pickled and unpickled. They are recorded in all steps, also without operators.
 *
 *     struct loader_handovers handovers;
 *     loader_handovers_find(&handovers, model);
 *     struct loader_handover_sums sums = loader_handovers_sum(&handovers, process, loader, MODEL_NONE);
 *     loader_handovers_release(&handovers);
 */
#ifndef ANALYSIS_LOADER_LOADER_HANDOVERS_H
#define ANALYSIS_LOADER_LOADER_HANDOVERS_H

#include "model/model.h"

enum loader_handover_kind {
	HANDOVER_DISPATCH,
	HANDOVER_PICKLE,
	HANDOVER_UNPICKLE,
	HANDOVER_KINDS,
};

struct loader_handover {
	uint32_t process; /* the waiting process */
	uint32_t worker;  /* process that pickles; MODEL_NONE: another kind */
	uint64_t loop;    /* loader << 32 | number of the loop over it */
	enum loader_handover_kind kind;
	int64_t batch, worker_number; /* -1: unknown, or no batch was sent */
	int64_t start_ns, dur_ns, bytes;
};

struct loader_handovers {
	struct loader_handover *list;
	uint32_t count;
};

struct loader_handover_sums {
	struct {
		int64_t count, dur_ns;
	} of[HANDOVER_KINDS]; /* dispatches: of batches that were sent */
	int64_t bytes;        /* pickled */
};

void loader_handovers_find(struct loader_handovers *handovers, const struct model *model);
void loader_handovers_release(struct loader_handovers *handovers);

/* Sums up a loader of a waiting process. `worker`: only the part of this worker process, which has no unpickling;
 * MODEL_NONE: of all. */
struct loader_handover_sums loader_handovers_sum(const struct loader_handovers *handovers, const struct model *model,
                                                 uint32_t process, uint32_t loader, uint32_t worker);

#endif
