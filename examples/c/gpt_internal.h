/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the gpt_*.c files only: where activations come from and go to. */
#ifndef TRAINER_GPT_INTERNAL_H
#define TRAINER_GPT_INTERNAL_H

#include "gpt.h"

/* Takes what the layer writes, except its input, which is already there. */
int gpt_layer_take(struct gpt *gpt, int layer, struct failure *failure);
void gpt_layer_give(struct gpt *gpt, int layer);

/* Takes elements for activations or temporaries; NULL and a failure when there is no memory. */
real *gpt_take(struct gpt *gpt, size_t rows, size_t columns, enum stepscope_memory category, struct failure *failure);
void gpt_give(struct gpt *gpt, real *address);

/* Gives back everything an unfinished pass still holds. */
void gpt_drop_activations(struct gpt *gpt);

static inline int gpt_rows(const struct gpt *gpt)
{
	return gpt->batch * gpt->config.context;
}

#endif
