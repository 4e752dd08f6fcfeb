/* SPDX-License-Identifier: Apache-2.0 */
/* Cross entropy of the next token, with the softmax in place of the logits. */
#include "ops.h"

#include <math.h>

static void softmax_row(real *x, int count)
{
	real largest = x[0], sum = 0;
	for (int i = 1; i < count; i++)
		if (x[i] > largest)
			largest = x[i];
	for (int i = 0; i < count; i++) {
		x[i] = REAL_EXP(x[i] - largest);
		sum += x[i];
	}
	for (int i = 0; i < count; i++)
		x[i] /= sum;
}

double cross_entropy_forward(const struct engine *engine, real *logits, const int *targets, int rows, int symbols)
{
	double loss = 0;
	engine_op(engine, OP_CROSS_ENTROPY, 5.0 * rows * symbols, 2.0 * rows * symbols * sizeof(real),
	          SHAPE2(rows, symbols), SHAPE1(rows));
	for (int row = 0; row < rows; row++) {
		real *x = logits + (size_t)row * symbols;
		softmax_row(x, symbols);
		loss -= log((double)x[targets[row]] + 1e-30);
	}
	stepscope_op_end();
	return loss / rows;
}

void cross_entropy_backward(const struct engine *engine, real *probabilities, const int *targets, int rows, int symbols,
                            double scale)
{
	engine_op(engine, OP_CROSS_ENTROPY_BACKWARD, 1.0 * rows * symbols, 2.0 * rows * symbols * sizeof(real),
	          SHAPE2(rows, symbols), SHAPE1(rows));
	real factor = (real)(scale / rows);
	for (int row = 0; row < rows; row++) {
		real *x = probabilities + (size_t)row * symbols;
		x[targets[row]] -= 1;
		for (int i = 0; i < symbols; i++)
			x[i] *= factor;
	}
	stepscope_op_end();
}
