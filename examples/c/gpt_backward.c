/* SPDX-License-Identifier: Apache-2.0 */
/* The model's way back: from the loss to the gradients, last layer first. The residual stream's gradient is one array
 * that every block adds to. */
#include "gpt_internal.h"
#include "ops.h"

#include <assert.h>

/* Arrays that live for one backward pass and are written again by every layer. */
struct backward {
	real *stream;          /* gradient of the residual stream */
	real *narrow;          /* [rows, width] */
	real *wide;            /* [rows, 4 * width] */
	real *attention_input; /* [rows, 3 * width] */
	real *scratch;         /* for attention */
};

static void backward_release(struct gpt *gpt, struct backward *b)
{
	gpt_give(gpt, b->stream);
	gpt_give(gpt, b->narrow);
	gpt_give(gpt, b->wide);
	gpt_give(gpt, b->attention_input);
	gpt_give(gpt, b->scratch);
}

static int backward_init(struct gpt *gpt, struct backward *b, struct failure *failure)
{
	size_t rows = (size_t)gpt_rows(gpt), width = (size_t)gpt->config.width;
	size_t context = (size_t)gpt->config.context, workers = (size_t)gpt->engine->team.count;
	b->stream = memory_take_zeroed(&gpt->engine->memory, rows * width * sizeof(real), STEPSCOPE_MEMORY_TEMPORARY);
	b->narrow = gpt_take(gpt, rows, width, STEPSCOPE_MEMORY_TEMPORARY, failure);
	b->wide = gpt_take(gpt, rows, 4 * width, STEPSCOPE_MEMORY_TEMPORARY, failure);
	b->attention_input = gpt_take(gpt, rows, 3 * width, STEPSCOPE_MEMORY_TEMPORARY, failure);
	b->scratch = gpt_take(gpt, workers * context, context, STEPSCOPE_MEMORY_TEMPORARY, failure);
	if (b->stream == NULL)
		return failure_memory(failure, rows * width * sizeof(real));
	return b->narrow && b->wide && b->attention_input && b->scratch ? 0 : -1;
}

static void head_backward(struct gpt *gpt, struct backward *b, double scale)
{
	const struct gpt_config *c = &gpt->config;
	struct gpt_weights *d = &gpt->slopes;
	int rows = gpt_rows(gpt);
	stepscope_range_push_name(gpt->head_name);
	cross_entropy_backward(gpt->engine, gpt->logits, gpt->targets, rows, c->symbols, scale);
	matmul_backward_input(gpt->engine, b->narrow, gpt->logits, gpt->weights.token_table, rows, c->width,
	                      c->symbols);
	matmul_backward_weight(gpt->engine, d->token_table, NULL, gpt->logits, gpt->norm, rows, c->width, c->symbols);
	layernorm_backward(gpt->engine, b->stream, d->norm_weight, d->norm_bias, b->narrow, gpt->last,
	                   gpt->weights.norm_weight, gpt->stats, rows, c->width);
	stepscope_range_pop();
}

static void mlp_backward(struct gpt *gpt, struct backward *b, int layer)
{
	const struct gpt_layer *w = &gpt->weights.layers[layer], *d = &gpt->slopes.layers[layer];
	const struct gpt_layer_activations *a = &gpt->activations[layer];
	int rows = gpt_rows(gpt), width = gpt->config.width;
	matmul_backward_input(gpt->engine, b->wide, b->stream, w->down_weight, rows, 4 * width, width);
	matmul_backward_weight(gpt->engine, d->down_weight, d->down_bias, b->stream, a->gelu, rows, 4 * width, width);
	gelu_backward(gpt->engine, b->wide, b->wide, a->up, rows, 4 * width);
	matmul_backward_input(gpt->engine, b->narrow, b->wide, w->up_weight, rows, width, 4 * width);
	matmul_backward_weight(gpt->engine, d->up_weight, d->up_bias, b->wide, a->norm2, rows, width, 4 * width);
	layernorm_backward(gpt->engine, b->stream, d->norm2_weight, d->norm2_bias, b->narrow, a->middle,
	                   w->norm2_weight, a->stats2, rows, width);
}

static void attention_block_backward(struct gpt *gpt, struct backward *b, int layer)
{
	const struct gpt_layer *w = &gpt->weights.layers[layer], *d = &gpt->slopes.layers[layer];
	const struct gpt_layer_activations *a = &gpt->activations[layer];
	const struct gpt_config *c = &gpt->config;
	int rows = gpt_rows(gpt), width = c->width;
	matmul_backward_input(gpt->engine, b->narrow, b->stream, w->projection_weight, rows, width, width);
	matmul_backward_weight(gpt->engine, d->projection_weight, d->projection_bias, b->stream, a->heads, rows, width,
	                       width);
	struct attention attention = {.batch = gpt->batch,
	                              .context = c->context,
	                              .heads = c->heads,
	                              .width = width,
	                              .qkv = a->qkv,
	                              .probabilities = a->probabilities,
	                              .d_out = b->narrow,
	                              .d_qkv = b->attention_input,
	                              .scratch = b->scratch};
	attention_backward(gpt->engine, &attention);
	matmul_backward_input(gpt->engine, b->narrow, b->attention_input, w->qkv_weight, rows, width, 3 * width);
	matmul_backward_weight(gpt->engine, d->qkv_weight, d->qkv_bias, b->attention_input, a->norm1, rows, width,
	                       3 * width);
	layernorm_backward(gpt->engine, b->stream, d->norm1_weight, d->norm1_bias, b->narrow, a->input, w->norm1_weight,
	                   a->stats1, rows, width);
}

int gpt_backward(struct gpt *gpt, double scale, struct failure *failure)
{
	assert(gpt->batch > 0);
	struct backward b = {0};
	int status = backward_init(gpt, &b, failure);
	if (status == 0) {
		head_backward(gpt, &b, scale);
		for (int layer = gpt->config.layers - 1; layer >= 0; layer--) {
			stepscope_range_push_name(gpt->mlp_names[layer]);
			mlp_backward(gpt, &b, layer);
			stepscope_range_switch_name(gpt->attention_names[layer]);
			attention_block_backward(gpt, &b, layer);
			stepscope_range_pop();
			gpt_layer_give(gpt, layer);
		}
		stepscope_range_push_name(gpt->embedding_name);
		embedding_backward(gpt->engine, gpt->slopes.token_table, gpt->slopes.position_table, b.stream,
		                   gpt->tokens, gpt->batch, gpt->config.context, gpt->config.width);
		stepscope_range_pop();
	}
	backward_release(gpt, &b);
	gpt_drop_activations(gpt);
	return status;
}
