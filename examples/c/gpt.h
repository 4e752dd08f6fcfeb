/* SPDX-License-Identifier: Apache-2.0 */
/* A small GPT (as GPT-2: learned positions, layer norm first, tied token embedding) and its training pass.
 *
 *     struct gpt gpt;
 *     gpt_init(&gpt, &engine, &config, seed, &failure);
 *     gpt_forward(&gpt, tokens, targets, batch, &loss, &failure);
 *     gpt_backward(&gpt, 1.0, &failure);
 *     ... adamw_step() ... gpt_zero_gradients(&gpt) ...
 *     gpt_release(&gpt);
 *
 * Parameters and gradients are one array each; gpt.tensors says what lies where. Activations are taken from the
 * engine's memory on the way forward and given back on the way back. One thread at a time. */
#ifndef TRAINER_GPT_H
#define TRAINER_GPT_H

#include "engine.h"
#include "real.h"

#include <stdbool.h>
#include <stddef.h>

struct gpt_config {
	int symbols; /* size of the vocabulary */
	int context, width, heads, layers;
};

/* A parameter tensor within gpt.parameters and gpt.gradients. */
struct gpt_tensor {
	char name[40];
	size_t offset;
	int rows, columns; /* columns is 0 for a vector */
	bool decays;       /* weight decay applies: matrices only */
};

/* Pointers to one layer's tensors, into the parameters or into the gradients. */
struct gpt_layer {
	real *norm1_weight, *norm1_bias, *qkv_weight, *qkv_bias, *projection_weight, *projection_bias;
	real *norm2_weight, *norm2_bias, *up_weight, *up_bias, *down_weight, *down_bias;
};

struct gpt_weights {
	real *token_table, *position_table, *norm_weight, *norm_bias;
	struct gpt_layer *layers;
};

/* What a layer keeps for the way back. */
struct gpt_layer_activations {
	real *input, *norm1, *stats1, *qkv, *probabilities, *heads, *middle, *norm2, *stats2, *up, *gelu;
};

struct gpt {
	struct gpt_config config;
	struct engine *engine;
	struct gpt_tensor *tensors;
	int tensor_count;
	size_t parameter_count;
	real *parameters, *gradients;
	struct gpt_weights weights, slopes; /* views of the two arrays */
	struct gpt_layer_activations *activations;
	real *last, *norm, *stats, *logits; /* after the layers */
	const int *tokens, *targets;        /* of the forward pass that is open */
	int batch;                          /* 0: no forward pass is open */
	stepscope_name_t *attention_names, *mlp_names;
	stepscope_name_t embedding_name, head_name;
};

int gpt_init(struct gpt *gpt, struct engine *engine, const struct gpt_config *config, unsigned long seed,
             struct failure *failure);
void gpt_release(struct gpt *gpt);

/* Elements of a tensor. */
size_t gpt_tensor_size(const struct gpt_tensor *tensor);

/* Mean loss over tokens[batch, context] and targets of the same shape. Keeps the activations for gpt_backward(). */
int gpt_forward(struct gpt *gpt, const int *tokens, const int *targets, int batch, double *loss,
                struct failure *failure);

/* Adds the gradient of scale * loss of the open forward pass to gpt.gradients, and gives the activations back. */
int gpt_backward(struct gpt *gpt, double scale, struct failure *failure);

/* The loss alone; keeps nothing. */
int gpt_evaluate(struct gpt *gpt, const int *tokens, const int *targets, int batch, double *loss,
                 struct failure *failure);

void gpt_zero_gradients(struct gpt *gpt);

/* Floating point operations of one forward and backward pass over `tokens` tokens. */
double gpt_flops(const struct gpt *gpt, double tokens);

#endif
