/* SPDX-License-Identifier: Apache-2.0 */
/* Linear layers on OpenBLAS. Row-major throughout; weights are stored [outputs, inputs]. */
#include "ops.h"

#include <string.h>

static double matmul_bytes(int rows, int inputs, int outputs)
{
	return ((double)rows * inputs + (double)inputs * outputs + (double)rows * outputs) * sizeof(real);
}

static double matmul_flops(int rows, int inputs, int outputs)
{
	return 2.0 * rows * inputs * outputs;
}

void matmul_forward(const struct engine *engine, real *out, const real *in, const real *weight, const real *bias,
                    int rows, int inputs, int outputs)
{
	engine_op(engine, OP_MATMUL, matmul_flops(rows, inputs, outputs), matmul_bytes(rows, inputs, outputs),
	          SHAPE2(rows, inputs), SHAPE2(outputs, inputs));
	if (bias != NULL)
		for (int row = 0; row < rows; row++)
			memcpy(out + (size_t)row * outputs, bias, (size_t)outputs * sizeof(real));
	REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, rows, outputs, inputs, 1, in, inputs, weight, inputs,
	          bias != NULL ? 1 : 0, out, outputs);
	stepscope_op_end();
}

void matmul_backward_input(const struct engine *engine, real *d_in, const real *d_out, const real *weight, int rows,
                           int inputs, int outputs)
{
	engine_op(engine, OP_MATMUL_BACKWARD_INPUT, matmul_flops(rows, inputs, outputs),
	          matmul_bytes(rows, inputs, outputs), SHAPE2(rows, outputs), SHAPE2(outputs, inputs));
	REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, inputs, outputs, 1, d_out, outputs, weight, inputs,
	          0, d_in, inputs);
	stepscope_op_end();
}

void matmul_backward_weight(const struct engine *engine, real *d_weight, real *d_bias, const real *d_out,
                            const real *in, int rows, int inputs, int outputs)
{
	engine_op(engine, OP_MATMUL_BACKWARD_WEIGHT, matmul_flops(rows, inputs, outputs),
	          matmul_bytes(rows, inputs, outputs), SHAPE2(rows, outputs), SHAPE2(rows, inputs));
	REAL_GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, outputs, inputs, rows, 1, d_out, outputs, in, inputs, 1,
	          d_weight, inputs);
	if (d_bias != NULL)
		for (int row = 0; row < rows; row++)
			for (int i = 0; i < outputs; i++)
				d_bias[i] += d_out[(size_t)row * outputs + i];
	stepscope_op_end();
}
