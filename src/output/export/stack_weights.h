/* SPDX-License-Identifier: Apache-2.0
 *
 * stack_weights.h: self time of operators by the stack of Python that issued them, for formats that know nothing but weighted stacks.
 */
#ifndef OUTPUT_EXPORT_STACK_WEIGHTS_H
#define OUTPUT_EXPORT_STACK_WEIGHTS_H

#include "output/export/export_common.h"

struct stack_weight {
	uint32_t stack;  /* 0: none */
	uint32_t name;   /* string: the operator, innermost of all; 0: none, it is of samples */
	int64_t self_ns; /* or what weights->unit says */
};

enum stack_unit {
	STACK_NANOSECONDS,
	STACK_BYTES,
	STACK_COUNT
};

struct stack_weights {
	struct stack_weight *weights; /* by stack and name, more than one where a sum does not fit; none is 0 */
	uint32_t count, capacity;
	uint64_t operators; /* or samples */
	enum stack_unit unit;
	uint32_t measure;    /* string: what the samples count */
	uint64_t other_unit; /* samples that are not added: they count something else than the first */
};

/* STATUS_INPUT: another program's file that has neither operators nor samples, as snapshots of memory and telemetry are. */
enum status stack_weights_check(const struct model *model, struct error *err) MUST_CHECK;
/* Adds the operators of a track that are selected, or where it has none its samples; then finish. */
void stack_weights_add(struct stack_weights *weights, const struct model *model, uint32_t track,
                       const struct selection *selection);
void stack_weights_finish(struct stack_weights *weights);
void stack_weights_release(struct stack_weights *weights);

/* Frames of a stack, outermost first, at most STACK_WEIGHTS_FRAMES; returns how many. */
#define STACK_WEIGHTS_FRAMES 4096u
uint32_t stack_path(const struct model *model, uint32_t stack, uint32_t path[STACK_WEIGHTS_FRAMES]);

#endif
