/* SPDX-License-Identifier: Apache-2.0 */
/* The model's parameters: layout, first values, views. Does not compute; see gpt_forward.c and gpt_backward.c. */
#include "gpt.h"

#include "gpt_internal.h"
#include "random.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS_PER_LAYER 12
#define TENSORS_OUTSIDE 4

size_t gpt_tensor_size(const struct gpt_tensor *tensor)
{
	return (size_t)tensor->rows * (tensor->columns > 0 ? tensor->columns : 1);
}

__attribute__((format(printf, 4, 5))) static void tensor_add(struct gpt *gpt, int rows, int columns, const char *format,
                                                             ...)
{
	struct gpt_tensor *tensor = &gpt->tensors[gpt->tensor_count++];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(tensor->name, sizeof(tensor->name), format, arguments);
	va_end(arguments);
	tensor->offset = gpt->parameter_count;
	tensor->rows = rows;
	tensor->columns = columns;
	tensor->decays = columns > 0;
	gpt->parameter_count += gpt_tensor_size(tensor);
}

/* The order here is the order of views_bind(). */
static void tensors_lay_out(struct gpt *gpt)
{
	const struct gpt_config *c = &gpt->config;
	tensor_add(gpt, c->symbols, c->width, "token_table");
	tensor_add(gpt, c->context, c->width, "position_table");
	for (int layer = 0; layer < c->layers; layer++) {
		tensor_add(gpt, c->width, 0, "layer.%d.norm1.weight", layer);
		tensor_add(gpt, c->width, 0, "layer.%d.norm1.bias", layer);
		tensor_add(gpt, 3 * c->width, c->width, "layer.%d.qkv.weight", layer);
		tensor_add(gpt, 3 * c->width, 0, "layer.%d.qkv.bias", layer);
		tensor_add(gpt, c->width, c->width, "layer.%d.projection.weight", layer);
		tensor_add(gpt, c->width, 0, "layer.%d.projection.bias", layer);
		tensor_add(gpt, c->width, 0, "layer.%d.norm2.weight", layer);
		tensor_add(gpt, c->width, 0, "layer.%d.norm2.bias", layer);
		tensor_add(gpt, 4 * c->width, c->width, "layer.%d.up.weight", layer);
		tensor_add(gpt, 4 * c->width, 0, "layer.%d.up.bias", layer);
		tensor_add(gpt, c->width, 4 * c->width, "layer.%d.down.weight", layer);
		tensor_add(gpt, c->width, 0, "layer.%d.down.bias", layer);
	}
	tensor_add(gpt, c->width, 0, "norm.weight");
	tensor_add(gpt, c->width, 0, "norm.bias");
}

static void views_bind(const struct gpt *gpt, struct gpt_weights *weights, real *base)
{
	const struct gpt_tensor *tensor = gpt->tensors;
	weights->token_table = base + tensor++->offset;
	weights->position_table = base + tensor++->offset;
	for (int layer = 0; layer < gpt->config.layers; layer++) {
		struct gpt_layer *l = &weights->layers[layer];
		real **const members[TENSORS_PER_LAYER] = {
			&l->norm1_weight,      &l->norm1_bias,      &l->qkv_weight,   &l->qkv_bias,
			&l->projection_weight, &l->projection_bias, &l->norm2_weight, &l->norm2_bias,
			&l->up_weight,         &l->up_bias,         &l->down_weight,  &l->down_bias,
		};
		for (int i = 0; i < TENSORS_PER_LAYER; i++)
			*members[i] = base + tensor++->offset;
	}
	weights->norm_weight = base + tensor++->offset;
	weights->norm_bias = base + tensor++->offset;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);
	return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* GPT-2's rule: small normal numbers, smaller where a layer adds to the residual stream; norms scale by one. */
static void parameters_fill(struct gpt *gpt, unsigned long seed)
{
	double residual = 0.02 / sqrt(2.0 * gpt->config.layers);
	for (int i = 0; i < gpt->tensor_count; i++) {
		const struct gpt_tensor *tensor = &gpt->tensors[i];
		uint64_t state = random_stream(seed, 1, (uint64_t)i);
		bool adds = ends_with(tensor->name, "projection.weight") || ends_with(tensor->name, "down.weight");
		bool one = tensor->columns == 0 && ends_with(tensor->name, "weight");
		for (size_t k = 0; k < gpt_tensor_size(tensor); k++) {
			double value = one ? 1 : 0;
			if (tensor->columns > 0)
				value = random_normal(&state) * (adds ? residual : 0.02);
			gpt->parameters[tensor->offset + k] = (real)value;
		}
	}
}

static void names_intern(struct gpt *gpt)
{
	char name[48];
	for (int layer = 0; layer < gpt->config.layers; layer++) {
		snprintf(name, sizeof(name), "layer.%d.attention", layer);
		gpt->attention_names[layer] = stepscope_name(STEPSCOPE_KIND_RANGE, name);
		snprintf(name, sizeof(name), "layer.%d.mlp", layer);
		gpt->mlp_names[layer] = stepscope_name(STEPSCOPE_KIND_RANGE, name);
	}
	gpt->embedding_name = stepscope_name(STEPSCOPE_KIND_RANGE, "embedding");
	gpt->head_name = stepscope_name(STEPSCOPE_KIND_RANGE, "head");
}

static bool tables_allocate(struct gpt *gpt)
{
	size_t layers = (size_t)gpt->config.layers;
	gpt->tensors = calloc(TENSORS_OUTSIDE + layers * TENSORS_PER_LAYER, sizeof(*gpt->tensors));
	gpt->weights.layers = calloc(layers, sizeof(*gpt->weights.layers));
	gpt->slopes.layers = calloc(layers, sizeof(*gpt->slopes.layers));
	gpt->activations = calloc(layers, sizeof(*gpt->activations));
	gpt->attention_names = calloc(layers, sizeof(*gpt->attention_names));
	gpt->mlp_names = calloc(layers, sizeof(*gpt->mlp_names));
	return gpt->tensors && gpt->weights.layers && gpt->slopes.layers && gpt->activations && gpt->attention_names &&
	       gpt->mlp_names;
}

int gpt_init(struct gpt *gpt, struct engine *engine, const struct gpt_config *config, unsigned long seed,
             struct failure *failure)
{
	memset(gpt, 0, sizeof(*gpt));
	gpt->config = *config;
	gpt->engine = engine;
	if (!tables_allocate(gpt))
		return failure_memory(failure, sizeof(*gpt->tensors) * TENSORS_PER_LAYER * (size_t)config->layers);
	tensors_lay_out(gpt);
	size_t bytes = gpt->parameter_count * sizeof(real);
	gpt->parameters = memory_take(&engine->memory, bytes, STEPSCOPE_MEMORY_PARAMETER);
	gpt->gradients = memory_take_zeroed(&engine->memory, bytes, STEPSCOPE_MEMORY_GRADIENT);
	if (gpt->parameters == NULL || gpt->gradients == NULL)
		return failure_memory(failure, bytes);
	views_bind(gpt, &gpt->weights, gpt->parameters);
	views_bind(gpt, &gpt->slopes, gpt->gradients);
	parameters_fill(gpt, seed);
	names_intern(gpt);
	return 0;
}

void gpt_release(struct gpt *gpt)
{
	if (gpt->engine == NULL)
		return;
	if (gpt->activations != NULL)
		gpt_drop_activations(gpt);
	memory_give(&gpt->engine->memory, gpt->parameters);
	memory_give(&gpt->engine->memory, gpt->gradients);
	free(gpt->tensors);
	free(gpt->weights.layers);
	free(gpt->slopes.layers);
	free(gpt->activations);
	free(gpt->attention_names);
	free(gpt->mlp_names);
	memset(gpt, 0, sizeof(*gpt));
}

void gpt_zero_gradients(struct gpt *gpt)
{
	size_t bytes = gpt->parameter_count * sizeof(real);
	engine_op(gpt->engine, OP_ZERO, 0, (double)bytes, SHAPE1((int64_t)gpt->parameter_count), SHAPE_NONE);
	memset(gpt->gradients, 0, bytes);
	stepscope_op_end();
}

double gpt_flops(const struct gpt *gpt, double tokens)
{
	const struct gpt_config *c = &gpt->config;
	double matrices = 12.0 * c->layers * c->width * c->width + (double)c->symbols * c->width;
	double attention = 2.0 * c->layers * c->context * c->width;
	return 6.0 * tokens * (matrices + attention);
}
