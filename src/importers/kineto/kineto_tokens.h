/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_tokens.h: what the spans of a trace say of a training loop, as steps/infer_steps.h wants it: one process's thread that trains, and
 * the work on gradients that other threads do for it.
 */
#ifndef IMPORTERS_KINETO_KINETO_TOKENS_H
#define IMPORTERS_KINETO_KINETO_TOKENS_H

#include "importers/kineto/kineto_import.h"
#include "steps/infer_steps.h"
#include "steps/node_numbers.h"

struct kineto_tokens {
	struct train_record *records;
	size_t count, capacity, compact_at;
	size_t own_count; /* records of the thread that trains; those of other threads are behind them until they are sorted */
	struct train_range *ranges;
	uint32_t range_count, range_capacity;
	struct train_call *hooked;
	uint32_t hooked_count, hooked_capacity;
	uint32_t optimizer_calls;
	uint64_t nodes,
		nodes_made; /* without sequence numbers: of backwards, and those whose operators were found by name */
	bool has_phases;    /* the trace has them */
};

struct kineto_group {           /* the tracks of one process */
	const uint32_t *tracks; /* of the stage */
	uint32_t count;
	struct node_numbers nodes;        /* its backwards worked on; kineto_nodes_find() */
	uint64_t node_count, early_nodes; /* of those with a number; made before all operators of the trace */
};

#define ALL_THREADS UINT64_C(1) /* a trace does not say which thread of PyTorch's a thread is */

static inline uint64_t kineto_tokens_sequence_of(const struct kineto_import *import, const struct staged_span *span)
{
	return span->extra ? import->stage.extras[span->extra - 1].sequence : STEPSCOPE_NO_SEQUENCE;
}

/* Without the thread, which nodes have. */
static inline uint64_t kineto_tokens_number_of(uint64_t sequence)
{
	return sequence & ((UINT64_C(1) << NODE_NUMBER_BITS) - 1);
}

/* Of the process's thread that calls optimizers or marks steps, or else does the most; *training: which one, of the stage. Sorts the
 * spans of its threads. kinds: enum track_kind by staged track; classes: by string, zeros at first and then for all processes of the
 * file. has_frames: calls of Python are ranges, else it is as if they were not there. False: it has no thread with spans. */
bool kineto_tokens_init(struct kineto_tokens *tokens, struct kineto_import *import, const struct kineto_group *group,
                        const uint8_t *kinds, uint8_t *classes, bool has_frames, uint32_t *training);
void kineto_tokens_release(struct kineto_tokens *tokens);

#endif
