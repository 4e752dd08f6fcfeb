/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW with clipping by the global norm of the gradients. */
#ifndef TRAINER_ADAMW_H
#define TRAINER_ADAMW_H

#include "gpt.h"

struct adamw {
	double beta1, beta2, epsilon, weight_decay, clip; /* clip 0: none */
	real *first, *second;                             /* moments, one per parameter */
	struct engine *engine;
};

int adamw_init(struct adamw *adamw, const struct gpt *gpt, struct failure *failure);
void adamw_release(struct adamw *adamw);

/* Euclidean norm of all gradients. */
double adamw_gradient_norm(const struct gpt *gpt);

/* One update; `update` counts from 1. Gradients with a larger norm than `clip` are scaled down to it first. */
void adamw_step(struct adamw *adamw, struct gpt *gpt, long update, double learning_rate, double norm);

#endif
