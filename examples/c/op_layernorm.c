/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation of rows, with learned scale and shift. */
#include "ops.h"

#include <math.h>

void layernorm_forward(const struct engine *engine, real *out, real *stats, const real *in, const real *weight,
                       const real *bias, int rows, int width)
{
	engine_op(engine, OP_LAYERNORM, 8.0 * rows * width, 2.0 * rows * width * sizeof(real), SHAPE2(rows, width),
	          SHAPE1(width));
	for (int row = 0; row < rows; row++) {
		const real *x = in + (size_t)row * width;
		real *y = out + (size_t)row * width;
		real mean = 0, variance = 0;
		for (int i = 0; i < width; i++)
			mean += x[i];
		mean /= (real)width;
		for (int i = 0; i < width; i++)
			variance += (x[i] - mean) * (x[i] - mean);
		real inverse = 1 / REAL_SQRT(variance / (real)width + (real)1e-5);
		for (int i = 0; i < width; i++)
			y[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
		stats[2 * row] = mean;
		stats[2 * row + 1] = inverse;
	}
	stepscope_op_end();
}

void layernorm_backward(const struct engine *engine, real *d_in, real *d_weight, real *d_bias, const real *d_out,
                        const real *in, const real *weight, const real *stats, int rows, int width)
{
	engine_op(engine, OP_LAYERNORM_BACKWARD, 16.0 * rows * width, 4.0 * rows * width * sizeof(real),
	          SHAPE2(rows, width), SHAPE1(width));
	for (int row = 0; row < rows; row++) {
		const real *x = in + (size_t)row * width, *dy = d_out + (size_t)row * width;
		real *dx = d_in + (size_t)row * width;
		real mean = stats[2 * row], inverse = stats[2 * row + 1];
		real sum = 0, sum_normal = 0; /* of the gradient before scaling, and of it times the normalised input */
		for (int i = 0; i < width; i++) {
			real normal = (x[i] - mean) * inverse;
			sum += dy[i] * weight[i];
			sum_normal += dy[i] * weight[i] * normal;
			d_weight[i] += dy[i] * normal;
			d_bias[i] += dy[i];
		}
		sum /= (real)width;
		sum_normal /= (real)width;
		for (int i = 0; i < width; i++) {
			real normal = (x[i] - mean) * inverse;
			dx[i] += (dy[i] * weight[i] - sum - normal * sum_normal) * inverse;
		}
	}
	stepscope_op_end();
}
