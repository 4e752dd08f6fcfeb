/* SPDX-License-Identifier: Apache-2.0 */
/* Token and position embedding. */
#include "ops.h"

void embedding_forward(const struct engine *engine, real *out, const int *tokens, const real *token_table,
                       const real *position_table, int batch, int context, int width)
{
	size_t rows = (size_t)batch * context;
	engine_op(engine, OP_EMBEDDING, (double)rows * width, 3.0 * rows * width * sizeof(real), SHAPE2(batch, context),
	          SHAPE1(width));
	for (size_t row = 0; row < rows; row++) {
		const real *token = token_table + (size_t)tokens[row] * width;
		const real *position = position_table + row % context * width;
		for (int i = 0; i < width; i++)
			out[row * width + i] = token[i] + position[i];
	}
	stepscope_op_end();
}

void embedding_backward(const struct engine *engine, real *d_token_table, real *d_position_table, const real *d_out,
                        const int *tokens, int batch, int context, int width)
{
	size_t rows = (size_t)batch * context;
	engine_op(engine, OP_EMBEDDING_BACKWARD, 2.0 * rows * width, 5.0 * rows * width * sizeof(real),
	          SHAPE2(batch, context), SHAPE1(width));
	for (size_t row = 0; row < rows; row++) {
		real *token = d_token_table + (size_t)tokens[row] * width;
		real *position = d_position_table + row % context * width;
		for (int i = 0; i < width; i++) {
			token[i] += d_out[row * width + i];
			position[i] += d_out[row * width + i];
		}
	}
	stepscope_op_end();
}
