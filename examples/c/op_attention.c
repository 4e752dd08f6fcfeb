/* SPDX-License-Identifier: Apache-2.0 */
/* Causal multi-head attention, one head of one sequence per work item. Every head writes only its own columns, so the
 * workers need no locks and the result does not depend on their number. The full square of scores is computed and its
 * upper half cleared: simple, and at these sizes BLAS is faster on squares than code that skips half of them. */
#include "ops.h"

#include <math.h>
#include <stepscope/stepscope.h>

/* Where one head's data lies. */
struct head {
	size_t column;       /* first element of its queries within qkv; keys are `width` further, values 2 * width */
	size_t out;          /* first element within out */
	real *probabilities; /* [context, context] */
	int size, in_stride, out_stride;
};

static struct head head_of(const struct attention *a, int item)
{
	int sequence = item / a->heads, index = item % a->heads;
	int size = a->width / a->heads;
	return (struct head){
		.column = (size_t)sequence * a->context * 3 * a->width + (size_t)index * size,
		.out = (size_t)sequence * a->context * a->width + (size_t)index * size,
		.probabilities = a->probabilities + (size_t)item * a->context * a->context,
		.size = size,
		.in_stride = 3 * a->width,
		.out_stride = a->width,
	};
}

static void softmax_causal(real *scores, int context)
{
	for (int row = 0; row < context; row++) {
		real *x = scores + (size_t)row * context;
		real largest = x[0], sum = 0;
		for (int i = 1; i <= row; i++)
			if (x[i] > largest)
				largest = x[i];
		for (int i = 0; i <= row; i++) {
			x[i] = REAL_EXP(x[i] - largest);
			sum += x[i];
		}
		for (int i = 0; i <= row; i++)
			x[i] /= sum;
		for (int i = row + 1; i < context; i++)
			x[i] = 0;
	}
}

/* In place: gradient with respect to probabilities -> with respect to scores. */
static void softmax_causal_backward(real *d, const real *probabilities, int context)
{
	for (int row = 0; row < context; row++) {
		real *dx = d + (size_t)row * context;
		const real *p = probabilities + (size_t)row * context;
		real sum = 0;
		for (int i = 0; i <= row; i++)
			sum += dx[i] * p[i];
		for (int i = 0; i <= row; i++)
			dx[i] = p[i] * (dx[i] - sum);
		for (int i = row + 1; i < context; i++)
			dx[i] = 0;
	}
}

struct attention_job {
	const struct engine *engine;
	struct attention *attention;
};

/* One head's matrix product, recorded. */
static void head_matmul(const struct engine *engine, CBLAS_TRANSPOSE first_transposed,
                        CBLAS_TRANSPOSE second_transposed, int rows, int columns, int inner, real scale,
                        const real *first, int first_stride, const real *second, int second_stride, real *out,
                        int out_stride)
{
	engine_op(engine, OP_MATMUL, 2.0 * rows * columns * inner,
	          ((double)rows * inner + (double)inner * columns + (double)rows * columns) * sizeof(real),
	          SHAPE2(rows, inner), SHAPE2(inner, columns));
	REAL_GEMM(CblasRowMajor, first_transposed, second_transposed, rows, columns, inner, scale, first, first_stride,
	          second, second_stride, 0, out, out_stride);
	stepscope_op_end();
}

static void head_forward(void *argument, int item, int worker)
{
	const struct attention_job *job = argument;
	const struct attention *a = job->attention;
	struct head h = head_of(a, item);
	int n = a->context;
	const real *q = a->qkv + h.column, *k = q + a->width, *v = k + a->width;
	(void)worker;
	head_matmul(job->engine, CblasNoTrans, CblasTrans, n, n, h.size, 1 / REAL_SQRT((real)h.size), q, h.in_stride, k,
	            h.in_stride, h.probabilities, n);
	engine_op(job->engine, OP_SOFTMAX, 2.5 * n * n, 2.0 * n * n * sizeof(real), SHAPE2(n, n), SHAPE_NONE);
	softmax_causal(h.probabilities, n);
	stepscope_op_end();
	head_matmul(job->engine, CblasNoTrans, CblasNoTrans, n, h.size, n, 1, h.probabilities, n, v, h.in_stride,
	            a->out + h.out, h.out_stride);
}

static void head_backward(void *argument, int item, int worker)
{
	const struct attention_job *job = argument;
	const struct engine *engine = job->engine;
	const struct attention *a = job->attention;
	struct head h = head_of(a, item);
	int n = a->context;
	const real *q = a->qkv + h.column, *k = q + a->width, *v = k + a->width;
	real *dq = a->d_qkv + h.column, *dk = dq + a->width, *dv = dk + a->width;
	const real *d_out = a->d_out + h.out;
	real *d_scores = a->scratch + (size_t)worker * n * n;
	real scale = 1 / REAL_SQRT((real)h.size);

	head_matmul(engine, CblasTrans, CblasNoTrans, n, h.size, n, 1, h.probabilities, n, d_out, h.out_stride, dv,
	            h.in_stride);
	head_matmul(engine, CblasNoTrans, CblasTrans, n, n, h.size, 1, d_out, h.out_stride, v, h.in_stride, d_scores,
	            n);
	engine_op(engine, OP_SOFTMAX_BACKWARD, 2.0 * n * n, 3.0 * n * n * sizeof(real), SHAPE2(n, n), SHAPE_NONE);
	softmax_causal_backward(d_scores, h.probabilities, n);
	stepscope_op_end();
	head_matmul(engine, CblasNoTrans, CblasNoTrans, n, h.size, n, scale, d_scores, n, k, h.in_stride, dq,
	            h.in_stride);
	head_matmul(engine, CblasTrans, CblasNoTrans, n, h.size, n, scale, d_scores, n, q, h.in_stride, dk,
	            h.in_stride);
}

/* No work is given for the whole: its matrix products carry it. */
void attention_forward(struct engine *engine, struct attention *attention)
{
	struct attention_job job = {engine, attention};
	engine_op(engine, OP_ATTENTION, 0, 0, SHAPE3(attention->batch, attention->context, 3 * attention->width),
	          SHAPE1(attention->heads));
	team_run(&engine->team, "attention.heads", head_forward, &job, attention->batch * attention->heads);
	stepscope_op_end();
}

void attention_backward(struct engine *engine, struct attention *attention)
{
	struct attention_job job = {engine, attention};
	engine_op(engine, OP_ATTENTION_BACKWARD, 0, 0, SHAPE3(attention->batch, attention->context, attention->width),
	          SHAPE1(attention->heads));
	team_run(&engine->team, "attention.heads_backward", head_backward, &job, attention->batch * attention->heads);
	stepscope_op_end();
}
