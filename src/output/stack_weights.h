/* SPDX-License-Identifier: Apache-2.0
 *
 * stack_weights.h: self time of operators by the stack of Python that issued them, for formats that know nothing but weighted stacks.
 */
#ifndef OUTPUT_STACK_WEIGHTS_H
#define OUTPUT_STACK_WEIGHTS_H

#include "output/export_common.h"

struct stack_weight {
	uint32_t stack; /* 0: none */
	uint32_t name;  /* string: the operator, innermost of all */
	int64_t self_ns;
};

struct stack_weights {
	struct stack_weight *weights; /* by stack and name; none is 0 */
	uint32_t count, capacity;
	uint64_t operators;
};

/* Adds the operators of a track that are selected; then finish. */
void stack_weights_add(struct stack_weights *weights, const struct model *model, uint32_t track,
                       const struct selection *selection);
void stack_weights_finish(struct stack_weights *weights);
void stack_weights_release(struct stack_weights *weights);

/* Frames of a stack, outermost first, at most STACK_WEIGHTS_FRAMES; returns how many. */
#define STACK_WEIGHTS_FRAMES 4096u
uint32_t stack_path(const struct model *model, uint32_t stack, uint32_t path[STACK_WEIGHTS_FRAMES]);

#endif
