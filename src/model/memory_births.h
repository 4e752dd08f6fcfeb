/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_births.h: what a program was doing when it allocated: from the spans that were open around it. Private to model/.
 *
 *     struct births births = {.model = model};
 *     struct birth birth = birth_of(&births, &model->memory[i]);
 *     births_release(&births);
 *
 * An operator such as aten::empty only gets memory for the one that called it, so that one counts. Whether an operator is part of an
 * autograd graph shows in the numbers that follow: a node takes the next one.
 */
#ifndef MODEL_MEMORY_BIRTHS_H
#define MODEL_MEMORY_BIRTHS_H

#include "model/model.h"

enum birth_region {
	REGION_NONE,
	REGION_DATA,
	REGION_FORWARD,
	REGION_MODULE, /* forward, in a call of a module */
	REGION_BACKWARD,
	REGION_OPTIMIZER,
	REGION_EVALUATION,
	REGION_OTHER, /* communication, checkpoint */
};

struct birth {
	uint8_t region;          /* enum birth_region */
	bool is_factory;         /* the operator makes a tensor from nothing */
	bool has_node;           /* its result is part of an autograd graph */
	bool has_sequence;       /* gradients were on when it was called */
	bool is_gathered;        /* parameters of all ranks go there */
	bool is_behind_backward; /* for who follows the order of allocations */
	uint32_t op;             /* string: the innermost operator that did not just get memory; 0: none */
	int64_t op_end_ns;       /* of that */
	int64_t region_end_ns; /* of what made the region: the wait for data, the optimizer's call, the phase; INT64_MAX: none */
	int64_t phase_end_ns; /* of the innermost phase; INT64_MAX: none */
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
	uint32_t bare_track, bare_first, bare_end; /* these rows have no number of the forward */
	uint64_t looked_at;                        /* rows, for tests: about as many as there are */
};

struct birth birth_of(struct births *births, const struct memory_event *allocation);
void births_release(struct births *births);

/* Is this span the call of an optimizer? */
bool birth_is_optimizer(struct births *births, const struct span_chunk *chunk, uint32_t index);

#endif
