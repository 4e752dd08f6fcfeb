/* SPDX-License-Identifier: Apache-2.0 */
/* What every operation of the model needs beside its tensors: memory, worker threads, and the names under which
 * stepscope records operations (interned once, so that recording one costs no look-up). */
#ifndef TRAINER_ENGINE_H
#define TRAINER_ENGINE_H

#include "failure.h"
#include "memory_pool.h"
#include "team.h"

#include <stdint.h>
#include <stepscope/stepscope.h>

enum op {
	OP_EMBEDDING,
	OP_EMBEDDING_BACKWARD,
	OP_MATMUL,
	OP_MATMUL_BACKWARD_INPUT,
	OP_MATMUL_BACKWARD_WEIGHT,
	OP_ATTENTION,
	OP_ATTENTION_BACKWARD,
	OP_SOFTMAX,
	OP_SOFTMAX_BACKWARD,
	OP_LAYERNORM,
	OP_LAYERNORM_BACKWARD,
	OP_GELU,
	OP_GELU_BACKWARD,
	OP_ADD,
	OP_CROSS_ENTROPY,
	OP_CROSS_ENTROPY_BACKWARD,
	OP_GRADIENT_NORM,
	OP_ADAMW,
	OP_ZERO,
	OP_ALL_REDUCE,
	OP_COUNT
};

struct engine {
	struct memory_pool memory;
	struct team team;
	stepscope_name_t names[OP_COUNT];
};

/* A tensor's shape, for the record only. */
struct shape {
	int rank;
	int64_t size[3];
};

#define SHAPE_NONE ((struct shape){0})
#define SHAPE1(a) ((struct shape){.rank = 1, .size = {(a)}})
#define SHAPE2(a, b) ((struct shape){.rank = 2, .size = {(a), (b)}})
#define SHAPE3(a, b, c) ((struct shape){.rank = 3, .size = {(a), (b), (c)}})

int engine_init(struct engine *engine, int workers, struct failure *failure);
void engine_release(struct engine *engine);

/* Begins an op with its facts; does nothing while nothing is recorded. End it with stepscope_op_end(). Any thread. */
void engine_op(const struct engine *engine, enum op op, double flops, double bytes, struct shape first,
               struct shape second);

#endif
