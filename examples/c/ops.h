/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the model, forward and backward, each one recorded with its shapes and work. Tensors are dense and
 * row-major. Gradients of parameters are added to (so that micro-batches accumulate), gradients of activations are
 * written, except where a comment says otherwise. Nothing here allocates or fails. */
#ifndef TRAINER_OPS_H
#define TRAINER_OPS_H

#include "engine.h"
#include "real.h"

/* out[rows, outputs] = in[rows, inputs] * weight[outputs, inputs]^T + bias; bias may be NULL. */
void matmul_forward(const struct engine *engine, real *out, const real *in, const real *weight, const real *bias,
                    int rows, int inputs, int outputs);
void matmul_backward_input(const struct engine *engine, real *d_in, const real *d_out, const real *weight, int rows,
                           int inputs, int outputs);
void matmul_backward_weight(const struct engine *engine, real *d_weight, real *d_bias, const real *d_out,
                            const real *in, int rows, int inputs, int outputs);

/* Normalises every row; stats[rows, 2] keeps mean and 1/deviation for the way back. */
void layernorm_forward(const struct engine *engine, real *out, real *stats, const real *in, const real *weight,
                       const real *bias, int rows, int width);
/* Adds to d_in. */
void layernorm_backward(const struct engine *engine, real *d_in, real *d_weight, real *d_bias, const real *d_out,
                        const real *in, const real *weight, const real *stats, int rows, int width);

/* Tanh form of GELU. */
void gelu_forward(const struct engine *engine, real *out, const real *in, int rows, int width);
/* d_out may be d_in. */
void gelu_backward(const struct engine *engine, real *d_in, const real *d_out, const real *in, int rows, int width);

/* out = a + b; out may be a. */
void add_forward(const struct engine *engine, real *out, const real *a, const real *b, int rows, int width);

/* out[row] = token_table[token of row] + position_table[row % context]. */
void embedding_forward(const struct engine *engine, real *out, const int *tokens, const real *token_table,
                       const real *position_table, int batch, int context, int width);
void embedding_backward(const struct engine *engine, real *d_token_table, real *d_position_table, const real *d_out,
                        const int *tokens, int batch, int context, int width);

/* Replaces logits[rows, symbols] by probabilities and returns the mean of -log(probability of the target). */
double cross_entropy_forward(const struct engine *engine, real *logits, const int *targets, int rows, int symbols);
/* Replaces probabilities by the gradient of scale * mean loss with respect to the logits. */
void cross_entropy_backward(const struct engine *engine, real *probabilities, const int *targets, int rows, int symbols,
                            double scale);

/* Causal attention over batch * heads independent heads, shared among the workers of the engine. */
struct attention {
	int batch, context, heads, width;
	const real *qkv;     /* [batch, context, 3 * width]: queries, keys, values */
	real *probabilities; /* [batch, heads, context, context]: kept for the way back */
	real *out;           /* [batch, context, width]; unused on the way back */
	const real *d_out;   /* the rest only on the way back */
	real *d_qkv;
	real *scratch; /* [workers, context, context] */
};
void attention_forward(struct engine *engine, struct attention *attention);
void attention_backward(struct engine *engine, struct attention *attention);

#endif
