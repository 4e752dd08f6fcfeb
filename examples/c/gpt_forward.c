/* SPDX-License-Identifier: Apache-2.0 */
/* The model's way forward: tokens to loss. */
#include "gpt_internal.h"
#include "ops.h"

#include <assert.h>

/* Writes a->middle = input + attention(norm(input)). `out` is room for one activation. */
static void attention_block(struct gpt *gpt, int layer, real *out)
{
	const struct gpt_layer *w = &gpt->weights.layers[layer];
	struct gpt_layer_activations *a = &gpt->activations[layer];
	const struct gpt_config *c = &gpt->config;
	int rows = gpt_rows(gpt);
	layernorm_forward(gpt->engine, a->norm1, a->stats1, a->input, w->norm1_weight, w->norm1_bias, rows, c->width);
	matmul_forward(gpt->engine, a->qkv, a->norm1, w->qkv_weight, w->qkv_bias, rows, c->width, 3 * c->width);
	struct attention attention = {.batch = gpt->batch,
	                              .context = c->context,
	                              .heads = c->heads,
	                              .width = c->width,
	                              .qkv = a->qkv,
	                              .probabilities = a->probabilities,
	                              .out = a->heads};
	attention_forward(gpt->engine, &attention);
	matmul_forward(gpt->engine, out, a->heads, w->projection_weight, w->projection_bias, rows, c->width, c->width);
	add_forward(gpt->engine, a->middle, a->input, out, rows, c->width);
}

/* Writes out = middle + mlp(norm(middle)). */
static void mlp_block(struct gpt *gpt, int layer, real *out)
{
	const struct gpt_layer *w = &gpt->weights.layers[layer];
	struct gpt_layer_activations *a = &gpt->activations[layer];
	int rows = gpt_rows(gpt), width = gpt->config.width;
	layernorm_forward(gpt->engine, a->norm2, a->stats2, a->middle, w->norm2_weight, w->norm2_bias, rows, width);
	matmul_forward(gpt->engine, a->up, a->norm2, w->up_weight, w->up_bias, rows, width, 4 * width);
	gelu_forward(gpt->engine, a->gelu, a->up, rows, 4 * width);
	matmul_forward(gpt->engine, out, a->gelu, w->down_weight, w->down_bias, rows, 4 * width, width);
	add_forward(gpt->engine, out, out, a->middle, rows, width);
}

/* The layer's output becomes the input of the next one, or gpt->last. */
static int layer_forward(struct gpt *gpt, int layer, bool keep, struct failure *failure)
{
	if (gpt_layer_take(gpt, layer, failure) != 0)
		return -1;
	real *out = gpt_take(gpt, (size_t)gpt_rows(gpt), (size_t)gpt->config.width, STEPSCOPE_MEMORY_ACTIVATION,
	                     failure);
	if (out == NULL)
		return -1;
	stepscope_range_push_name(gpt->attention_names[layer]);
	attention_block(gpt, layer, out);
	stepscope_range_switch_name(gpt->mlp_names[layer]);
	mlp_block(gpt, layer, out);
	stepscope_range_pop();
	if (layer + 1 < gpt->config.layers)
		gpt->activations[layer + 1].input = out;
	else
		gpt->last = out;
	if (!keep)
		gpt_layer_give(gpt, layer);
	return 0;
}

static int embedding_block(struct gpt *gpt, struct failure *failure)
{
	const struct gpt_config *c = &gpt->config;
	real *out = gpt_take(gpt, (size_t)gpt_rows(gpt), (size_t)c->width, STEPSCOPE_MEMORY_ACTIVATION, failure);
	if (out == NULL)
		return -1;
	gpt->activations[0].input = out;
	stepscope_range_push_name(gpt->embedding_name);
	embedding_forward(gpt->engine, out, gpt->tokens, gpt->weights.token_table, gpt->weights.position_table,
	                  gpt->batch, c->context, c->width);
	stepscope_range_pop();
	return 0;
}

static int head_block(struct gpt *gpt, double *loss, struct failure *failure)
{
	const struct gpt_config *c = &gpt->config;
	int rows = gpt_rows(gpt);
	gpt->norm = gpt_take(gpt, (size_t)rows, (size_t)c->width, STEPSCOPE_MEMORY_ACTIVATION, failure);
	gpt->stats = gpt_take(gpt, (size_t)rows, 2, STEPSCOPE_MEMORY_ACTIVATION, failure);
	gpt->logits = gpt_take(gpt, (size_t)rows, (size_t)c->symbols, STEPSCOPE_MEMORY_ACTIVATION, failure);
	if (gpt->norm == NULL || gpt->stats == NULL || gpt->logits == NULL)
		return -1;
	stepscope_range_push_name(gpt->head_name);
	layernorm_forward(gpt->engine, gpt->norm, gpt->stats, gpt->last, gpt->weights.norm_weight,
	                  gpt->weights.norm_bias, rows, c->width);
	matmul_forward(gpt->engine, gpt->logits, gpt->norm, gpt->weights.token_table, NULL, rows, c->width, c->symbols);
	*loss = cross_entropy_forward(gpt->engine, gpt->logits, gpt->targets, rows, c->symbols);
	stepscope_range_pop();
	return 0;
}

static int run_forward(struct gpt *gpt, const int *tokens, const int *targets, int batch, bool keep, double *loss,
                       struct failure *failure)
{
	assert(gpt->batch == 0);
	gpt->tokens = tokens;
	gpt->targets = targets;
	gpt->batch = batch;
	if (embedding_block(gpt, failure) != 0)
		return -1;
	for (int layer = 0; layer < gpt->config.layers; layer++)
		if (layer_forward(gpt, layer, keep, failure) != 0)
			return -1;
	return head_block(gpt, loss, failure);
}

int gpt_forward(struct gpt *gpt, const int *tokens, const int *targets, int batch, double *loss,
                struct failure *failure)
{
	int status = run_forward(gpt, tokens, targets, batch, true, loss, failure);
	if (status != 0)
		gpt_drop_activations(gpt);
	return status;
}

int gpt_evaluate(struct gpt *gpt, const int *tokens, const int *targets, int batch, double *loss,
                 struct failure *failure)
{
	int status = run_forward(gpt, tokens, targets, batch, false, loss, failure);
	gpt_drop_activations(gpt);
	return status;
}
