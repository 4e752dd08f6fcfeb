/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the activations: taken layer by layer on the way forward, given back on the way back. */
#include "gpt_internal.h"

#include <string.h>

real *gpt_take(struct gpt *gpt, size_t rows, size_t columns, enum stepscope_memory category, struct failure *failure)
{
	size_t bytes = rows * columns * sizeof(real);
	real *address = memory_take(&gpt->engine->memory, bytes, category);
	if (address == NULL)
		failure_memory(failure, bytes);
	return address;
}

void gpt_give(struct gpt *gpt, real *address)
{
	memory_give(&gpt->engine->memory, address);
}

int gpt_layer_take(struct gpt *gpt, int layer, struct failure *failure)
{
	struct gpt_layer_activations *a = &gpt->activations[layer];
	size_t rows = (size_t)gpt_rows(gpt), width = (size_t)gpt->config.width;
	const struct {
		real **member;
		size_t columns;
	} wanted[] = {
		{&a->norm1, width},   {&a->stats1, 2},
		{&a->qkv, 3 * width}, {&a->probabilities, (size_t)gpt->config.heads * gpt->config.context},
		{&a->heads, width},   {&a->middle, width},
		{&a->norm2, width},   {&a->stats2, 2},
		{&a->up, 4 * width},  {&a->gelu, 4 * width},
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		*wanted[i].member = gpt_take(gpt, rows, wanted[i].columns, STEPSCOPE_MEMORY_ACTIVATION, failure);
		if (*wanted[i].member == NULL)
			return -1;
	}
	return 0;
}

void gpt_layer_give(struct gpt *gpt, int layer)
{
	struct gpt_layer_activations *a = &gpt->activations[layer];
	real *const held[] = {a->input,  a->norm1, a->stats1, a->qkv, a->probabilities, a->heads,
	                      a->middle, a->norm2, a->stats2, a->up,  a->gelu};
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		gpt_give(gpt, held[i]);
	memset(a, 0, sizeof(*a));
}

void gpt_drop_activations(struct gpt *gpt)
{
	for (int layer = 0; layer < gpt->config.layers; layer++)
		gpt_layer_give(gpt, layer);
	gpt_give(gpt, gpt->last);
	gpt_give(gpt, gpt->norm);
	gpt_give(gpt, gpt->stats);
	gpt_give(gpt, gpt->logits);
	gpt->last = gpt->norm = gpt->stats = gpt->logits = NULL;
	gpt->batch = 0;
}
