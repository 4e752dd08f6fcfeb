/* SPDX-License-Identifier: Apache-2.0 */
/* Names of operations and their facts for stepscope. Computes nothing itself. */
#include "engine.h"

#include "real.h"

#include <string.h>

static const char *const op_names[OP_COUNT] = {
	[OP_EMBEDDING] = "embedding",
	[OP_EMBEDDING_BACKWARD] = "embedding_backward",
	[OP_MATMUL] = "matmul",
	[OP_MATMUL_BACKWARD_INPUT] = "matmul_backward_input",
	[OP_MATMUL_BACKWARD_WEIGHT] = "matmul_backward_weight",
	[OP_ATTENTION] = "attention",
	[OP_ATTENTION_BACKWARD] = "attention_backward",
	[OP_SOFTMAX] = "softmax",
	[OP_SOFTMAX_BACKWARD] = "softmax_backward",
	[OP_LAYERNORM] = "layernorm",
	[OP_LAYERNORM_BACKWARD] = "layernorm_backward",
	[OP_GELU] = "gelu",
	[OP_GELU_BACKWARD] = "gelu_backward",
	[OP_ADD] = "add",
	[OP_CROSS_ENTROPY] = "cross_entropy",
	[OP_CROSS_ENTROPY_BACKWARD] = "cross_entropy_backward",
	[OP_GRADIENT_NORM] = "gradient_norm",
	[OP_ADAMW] = "adamw",
	[OP_ZERO] = "zero",
	[OP_ALL_REDUCE] = "all_reduce",
};

int engine_init(struct engine *engine, int workers, struct failure *failure)
{
	memset(engine, 0, sizeof(*engine));
	memory_pool_init(&engine->memory);
	for (int op = 0; op < OP_COUNT; op++)
		engine->names[op] = stepscope_name(STEPSCOPE_KIND_OP, op_names[op]);
	return team_init(&engine->team, workers, failure);
}

void engine_release(struct engine *engine)
{
	team_release(&engine->team);
	memory_pool_release(&engine->memory);
}

static void info_add(struct stepscope_op_info *info, struct shape shape)
{
	if (shape.rank == 0)
		return;
	int input = info->input_count++;
	info->rank[input] = shape.rank;
	for (int i = 0; i < shape.rank; i++)
		info->shape[input][i] = shape.size[i];
}

void engine_op(const struct engine *engine, enum op op, double flops, double bytes, struct shape first,
               struct shape second)
{
	if (!stepscope_is_recording())
		return;
	struct stepscope_op_info info = {.dtype = REAL_DTYPE, .flops = flops, .bytes = bytes};
	info_add(&info, first);
	info_add(&info, second);
	stepscope_op_begin_info(engine->names[op], &info);
}
