/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW, tensor by tensor. Weight decay for matrices only, as usual. */
#include "adamw.h"

#include <math.h>
#include <string.h>

int adamw_init(struct adamw *adamw, const struct gpt *gpt, struct failure *failure)
{
	size_t bytes = gpt->parameter_count * sizeof(real);
	*adamw = (struct adamw){.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1, .clip = 1.0};
	adamw->engine = gpt->engine;
	adamw->first = memory_take_zeroed(&gpt->engine->memory, bytes, STEPSCOPE_MEMORY_OPTIMIZER);
	adamw->second = memory_take_zeroed(&gpt->engine->memory, bytes, STEPSCOPE_MEMORY_OPTIMIZER);
	if (adamw->first == NULL || adamw->second == NULL)
		return failure_memory(failure, bytes);
	return 0;
}

void adamw_release(struct adamw *adamw)
{
	if (adamw->engine == NULL)
		return;
	memory_give(&adamw->engine->memory, adamw->first);
	memory_give(&adamw->engine->memory, adamw->second);
	memset(adamw, 0, sizeof(*adamw));
}

double adamw_gradient_norm(const struct gpt *gpt)
{
	size_t count = gpt->parameter_count;
	double sum = 0;
	engine_op(gpt->engine, OP_GRADIENT_NORM, 2.0 * count, (double)count * sizeof(real), SHAPE1((int64_t)count),
	          SHAPE_NONE);
	for (size_t i = 0; i < count; i++)
		sum += (double)gpt->gradients[i] * (double)gpt->gradients[i];
	stepscope_op_end();
	return sqrt(sum);
}

static void tensor_step(struct adamw *adamw, struct gpt *gpt, const struct gpt_tensor *tensor, const real *factors,
                        double learning_rate)
{
	size_t count = gpt_tensor_size(tensor);
	real *weight = gpt->parameters + tensor->offset;
	const real *gradient = gpt->gradients + tensor->offset;
	real *first = adamw->first + tensor->offset, *second = adamw->second + tensor->offset;
	real scale = factors[0], correct1 = factors[1], correct2 = factors[2];
	real beta1 = (real)adamw->beta1, beta2 = (real)adamw->beta2, epsilon = (real)adamw->epsilon;
	real rate = (real)learning_rate, decay = tensor->decays ? (real)(learning_rate * adamw->weight_decay) : 0;
	for (size_t i = 0; i < count; i++) {
		real g = gradient[i] * scale;
		first[i] = beta1 * first[i] + (1 - beta1) * g;
		second[i] = beta2 * second[i] + (1 - beta2) * g * g;
		real step = first[i] * correct1 / (REAL_SQRT(second[i] * correct2) + epsilon);
		weight[i] -= rate * step + decay * weight[i];
	}
}

void adamw_step(struct adamw *adamw, struct gpt *gpt, long update, double learning_rate, double norm)
{
	double scale = adamw->clip > 0 && norm > adamw->clip ? adamw->clip / norm : 1;
	const real factors[] = {
		(real)scale,
		(real)(1 / (1 - pow(adamw->beta1, (double)update))),
		(real)(1 / (1 - pow(adamw->beta2, (double)update))),
	};
	for (int i = 0; i < gpt->tensor_count; i++) {
		const struct gpt_tensor *tensor = &gpt->tensors[i];
		double count = (double)gpt_tensor_size(tensor);
		engine_op(gpt->engine, OP_ADAMW, 14 * count, 7 * count * sizeof(real),
		          tensor->columns > 0 ? SHAPE2(tensor->rows, tensor->columns) : SHAPE1(tensor->rows),
		          SHAPE_NONE);
		tensor_step(adamw, gpt, tensor, factors, learning_rate);
		stepscope_op_end();
	}
}
