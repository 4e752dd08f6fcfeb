/* SPDX-License-Identifier: Apache-2.0
 *
 * stack_weights.h: self time of operators by the Python stack that issued them, for formats that have only weighted
 * stacks.
 */
#ifndef OUTPUT_EXPORT_STACK_WEIGHTS_H
#define OUTPUT_EXPORT_STACK_WEIGHTS_H

#include "output/export/export_common.h"

struct stack_weight {
	uint32_t stack;  /* 0: there is no stack */
	uint32_t name;   /* string: the operator, as innermost frame; 0: it is a sample */
	int64_t self_ns; /* or in weights->unit */
};

enum stack_unit {
	STACK_NANOSECONDS,
	STACK_BYTES,
	STACK_COUNT
};

struct stack_weights {
	struct stack_weight *weights; /* by stack and name, several if a sum overflows; no weight is 0 */
	uint32_t count, capacity;
	uint64_t operators; /* number of operators, or samples */
	enum stack_unit unit;
	uint32_t measure;    /* string: the quantity that the samples count */
	uint64_t other_unit; /* number of samples left out because they count another quantity than the first sample */
};

/* Returns STATUS_INPUT for another program's file with neither operators nor samples, such as a memory snapshot or
 * telemetry. */
enum status stack_weights_check(const struct model *model, struct error *err) MUST_CHECK;
/* Adds the selected operators of a track, or its samples if it has no operators. Call stack_weights_finish() after the
 * last track. */
void stack_weights_add(struct stack_weights *weights, const struct model *model, uint32_t track,
                       const struct selection *selection);
void stack_weights_finish(struct stack_weights *weights);
void stack_weights_release(struct stack_weights *weights);

/* Stores the frames of a stack, outermost first, at most STACK_WEIGHTS_FRAMES. Returns their number. */
#define STACK_WEIGHTS_FRAMES 4096u
uint32_t stack_path(const struct model *model, uint32_t stack, uint32_t path[STACK_WEIGHTS_FRAMES]);

#endif
