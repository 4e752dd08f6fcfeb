/* SPDX-License-Identifier: Apache-2.0
 *
 * training_calls.h: what training.h follows that has no record, or whose records are not looked at: calls of PyTorch's functions that the
 * Python package stands around.
 */
#ifndef AGENTS_TORCH_TRAINING_CALLS_H
#define AGENTS_TORCH_TRAINING_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* While PyTorch calls no callback: what the Python package tells of a call of one of its functions that it stands around. It tells as much as the
 * records that the counting of steps goes by, and where a forward's modules are; operators outside of these calls are not known. */
struct training_call {
	enum {
		TRAINING_RANGE,    /* record_function(): an optimizer's call, a wait for a batch, ... */
		TRAINING_BACKWARD, /* the engine's run over a graph */
		TRAINING_SCALER,   /* update of a gradient scaler */
		TRAINING_MODULE,   /* of a module, in no other one's, or in that of one that trains by itself */
	} kind;
	const char *name; /* of a range */
	bool is_training; /* a backward that accumulates gradients */
	uint64_t module;  /* which one, and its mode, as the argument "torch.module" says */
	uint32_t symbol;  /* of the module's name */
};
/* Would a module's call that begins now in this thread, for which thread_make() was called, be noted? */
bool training_wants_module(void);
/* As training_begin(), it ends with training_end(). False: nothing was begun. */
bool training_call_begin(const struct training_call *call);
/* The Python package stands around all of these. */
void training_sees_calls(void);
/* True while steps can only be counted by records: the program marks none, and no optimizer was seen whose calls tell of themselves. */
bool training_needs_records(void);
/* torch.save begins (STEPSCOPE_TRAINING_SAVE), or the start or end of a loader's workers; it ends with training_end(). */
void training_stretch(uint8_t token);
/* From Python, in a wait of a loader without workers: that a batch comes, before it does; and that none came. */
void training_batch(bool has_come);
/* A step of torch.profiler's begins that has no record; 1 + its number, with TRAINING_HAS_SCHEDULE where its profiler has one. */
#define TRAINING_HAS_SCHEDULE 0x80000000u
void training_profiler_step(uint32_t step);

#endif
