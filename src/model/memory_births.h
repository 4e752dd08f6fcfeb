/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_births.h: the activity of a program at an allocation, taken from the spans open at that time. Private to
 * model/.
 *
 *     struct births births = {.model = model};
 *     struct birth birth = birth_of(&births, &model->memory[i]);
 *     births_release(&births);
 *
 * An operator such as aten::empty only gets memory for its caller, so the caller counts. The sequence numbers after an
 * operator show if it is part of an autograd graph: each node takes the next number.
 */
#ifndef MODEL_MEMORY_BIRTHS_H
#define MODEL_MEMORY_BIRTHS_H

#include "model/model.h"

enum birth_region {
	REGION_NONE,
	REGION_DATA,
	REGION_FORWARD,
	REGION_MODULE, /* forward, inside a call of a module */
	REGION_BACKWARD,
	REGION_OPTIMIZER,
	REGION_EVALUATION,
	REGION_OTHER, /* communication, checkpoint */
};

struct birth {
	uint8_t region;          /* enum birth_region */
	bool is_factory;         /* the operator creates a tensor without a tensor as input */
	bool has_node;           /* its result is part of an autograd graph */
	bool has_sequence;       /* gradients were enabled when it was called */
	bool is_gathered;        /* FSDP gathers the parameters of all ranks into it */
	bool is_behind_backward; /* after a backward and before the optimizer; set by the caller */
	uint32_t op;             /* string: the innermost operator that does more than get memory; 0: none */
	int64_t op_end_ns;       /* end of that operator */
	int64_t region_end_ns; /* end of what set the region: wait for data, optimizer's call, phase; INT64_MAX: none */
	int64_t phase_end_ns;  /* end of the innermost phase; INT64_MAX: none */
};

struct birth_path { /* the spans around the newest allocation of a track, by depth */
	struct {
		uint32_t row; /* MODEL_NONE: none yet */
		struct birth birth;
	} * list;
	uint32_t capacity;
};

struct births {
	const struct model *model;
	uint8_t *classes; /* by string */
	uint32_t class_count;
	struct birth_path *paths;                  /* by track; NULL: none yet */
	uint32_t bare_track, bare_first, bare_end; /* rows first to end of this track have no forward sequence number */
	uint64_t looked_at;                        /* rows looked at, for tests: about the number of rows */
};

struct birth birth_of(struct births *births, const struct memory_event *allocation);
void births_release(struct births *births);

/* Returns true if the span is a call of an optimizer. */
bool birth_is_optimizer(struct births *births, const struct span_chunk *chunk, uint32_t index);

#endif
