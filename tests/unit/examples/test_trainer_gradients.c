/* SPDX-License-Identifier: Apache-2.0 */
/* The example trainer's gradients against central finite differences, in double precision: each kind of layer alone,
 * and every parameter tensor of a whole model. */
#include "adamw.h"
#include "engine.h"
#include "gpt.h"
#include "ops.h"
#include "random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEP 1e-5
#define TOLERANCE 1e-6

/* Error relative to the size of the two, with a floor where both are nearly zero. */
static double relative_error(double a, double b)
{
	return fabs(a - b) / fmax(1e-4, fabs(a) + fabs(b));
}

static void fill(real *x, int count, double deviation, uint64_t seed)
{
	for (int i = 0; i < count; i++)
		x[i] = deviation * random_normal(&seed);
}

/* ---- layers alone: y = layer(x), loss = sum of y * g ------------------------------------------------------------ */

enum {
	ROWS = 6,
	WIDTH = 8,
	OUT = 24,
	HEADS = 2,
	LARGEST = ROWS * OUT * 2
};

/* A layer with its input and parameters in x, and the gradients of both in d. */
struct layer_case {
	const char *name;
	int inputs, outputs; /* numbers in x and y */
	void (*forward)(struct engine *engine, const real *x, real *y);
	void (*backward)(struct engine *engine, const real *x, const real *g, real *d);
};

/* x: input, weight, bias */
static void matmul_y(struct engine *engine, const real *x, real *y)
{
	const real *weight = x + ROWS * WIDTH, *bias = weight + OUT * WIDTH;
	matmul_forward(engine, y, x, weight, bias, ROWS, WIDTH, OUT);
}

static void matmul_d(struct engine *engine, const real *x, const real *g, real *d)
{
	real *d_weight = d + ROWS * WIDTH, *d_bias = d_weight + OUT * WIDTH;
	matmul_backward_input(engine, d, g, x + ROWS * WIDTH, ROWS, WIDTH, OUT);
	matmul_backward_weight(engine, d_weight, d_bias, g, x, ROWS, WIDTH, OUT);
}

/* x: input, weight, bias */
static void layernorm_y(struct engine *engine, const real *x, real *y)
{
	real stats[2 * ROWS];
	const real *weight = x + ROWS * WIDTH;
	layernorm_forward(engine, y, stats, x, weight, weight + WIDTH, ROWS, WIDTH);
}

static void layernorm_d(struct engine *engine, const real *x, const real *g, real *d)
{
	real stats[2 * ROWS], y[ROWS * WIDTH];
	const real *weight = x + ROWS * WIDTH;
	real *d_weight = d + ROWS * WIDTH;
	layernorm_forward(engine, y, stats, x, weight, weight + WIDTH, ROWS, WIDTH);
	layernorm_backward(engine, d, d_weight, d_weight + WIDTH, g, x, weight, stats, ROWS, WIDTH);
}

static void gelu_y(struct engine *engine, const real *x, real *y)
{
	gelu_forward(engine, y, x, ROWS, WIDTH);
}

static void gelu_d(struct engine *engine, const real *x, const real *g, real *d)
{
	gelu_backward(engine, d, g, x, ROWS, WIDTH);
}

/* x: queries, keys and values of two sequences of ROWS tokens */
static void attention_run(struct engine *engine, const real *x, const real *g, real *y, real *d)
{
	real probabilities[2 * HEADS * ROWS * ROWS], scratch[2 * ROWS * ROWS];
	struct attention attention = {.batch = 2,
	                              .context = ROWS,
	                              .heads = HEADS,
	                              .width = WIDTH,
	                              .qkv = x,
	                              .probabilities = probabilities,
	                              .out = y,
	                              .d_out = g,
	                              .d_qkv = d,
	                              .scratch = scratch};
	attention_forward(engine, &attention);
	if (d != NULL)
		attention_backward(engine, &attention);
}

static void attention_y(struct engine *engine, const real *x, real *y)
{
	attention_run(engine, x, NULL, y, NULL);
}

static void attention_d(struct engine *engine, const real *x, const real *g, real *d)
{
	real y[2 * ROWS * WIDTH];
	attention_run(engine, x, g, y, d);
}

static const int tokens[2 * ROWS] = {1, 0, 3, 3, 2, 1, 4, 4, 0, 2, 1, 3};

/* x: token table of 5, position table */
static void embedding_y(struct engine *engine, const real *x, real *y)
{
	embedding_forward(engine, y, tokens, x, x + 5 * WIDTH, 2, ROWS, WIDTH);
}

static void embedding_d(struct engine *engine, const real *x, const real *g, real *d)
{
	(void)x;
	embedding_backward(engine, d, d + 5 * WIDTH, g, tokens, 2, ROWS, WIDTH);
}

/* y: the loss alone */
static void cross_entropy_y(struct engine *engine, const real *x, real *y)
{
	real logits[2 * ROWS * 5];
	memcpy(logits, x, sizeof(logits));
	y[0] = cross_entropy_forward(engine, logits, tokens, 2 * ROWS, 5);
}

static void cross_entropy_d(struct engine *engine, const real *x, const real *g, real *d)
{
	memcpy(d, x, 2 * ROWS * 5 * sizeof(real));
	cross_entropy_forward(engine, d, tokens, 2 * ROWS, 5);
	cross_entropy_backward(engine, d, tokens, 2 * ROWS, 5, g[0]);
}

static const struct layer_case cases[] = {
	{"matmul", ROWS *WIDTH + OUT *WIDTH + OUT, ROWS *OUT, matmul_y, matmul_d},
	{"layernorm", ROWS *WIDTH + 2 * WIDTH, ROWS *WIDTH, layernorm_y, layernorm_d},
	{"gelu", ROWS *WIDTH, ROWS *WIDTH, gelu_y, gelu_d},
	{"attention", 2 * ROWS * 3 * WIDTH, 2 * ROWS *WIDTH, attention_y, attention_d},
	{"embedding", 5 * WIDTH + ROWS *WIDTH, 2 * ROWS *WIDTH, embedding_y, embedding_d},
	{"cross_entropy", 2 * ROWS * 5, 1, cross_entropy_y, cross_entropy_d},
};

static double case_loss(const struct layer_case *layer, struct engine *engine, const real *x, const real *g)
{
	real y[LARGEST];
	double loss = 0;
	layer->forward(engine, x, y);
	for (int i = 0; i < layer->outputs; i++)
		loss += y[i] * g[i];
	return loss;
}

static void check_layer(struct engine *engine, const struct layer_case *layer)
{
	real x[LARGEST * 2], g[LARGEST], d[LARGEST * 2] = {0};
	double worst = 0;
	assert_true(layer->inputs <= LARGEST * 2 && layer->outputs <= LARGEST);
	fill(x, layer->inputs, 1, 11);
	fill(g, layer->outputs, 1, 12);
	layer->backward(engine, x, g, d);
	for (int i = 0; i < layer->inputs; i++) {
		real kept = x[i];
		x[i] = kept + STEP;
		double above = case_loss(layer, engine, x, g);
		x[i] = kept - STEP;
		double below = case_loss(layer, engine, x, g);
		x[i] = kept;
		worst = fmax(worst, relative_error(d[i], (above - below) / (2 * STEP)));
	}
	print_message("# %-14s worst relative error %.1e\n", layer->name, worst);
	assert_true(worst < TOLERANCE);
}

/* ---- the whole model ----------------------------------------------------------------------------------------------- */

enum {
	SYMBOLS = 7,
	CONTEXT = 5,
	BATCH = 3
};

struct model {
	struct engine engine;
	struct gpt gpt;
	int tokens[BATCH * CONTEXT], targets[BATCH * CONTEXT];
	struct failure failure;
};

/* A fixture, so that a failed check leaves no thread running on a stack that is gone. */
static int model_setup(void **state)
{
	const struct gpt_config config = {SYMBOLS, CONTEXT, 8, 2, 2};
	uint64_t seed = 3;
	struct model *m = calloc(1, sizeof(*m));
	*state = m;
	if (m == NULL || engine_init(&m->engine, 2, &m->failure) != 0 ||
	    gpt_init(&m->gpt, &m->engine, &config, 1, &m->failure) != 0)
		return -1;
	/* Far from the first values, where many gradients nearly vanish. */
	for (size_t i = 0; i < m->gpt.parameter_count; i++)
		m->gpt.parameters[i] += 0.3 * random_normal(&seed);
	for (int i = 0; i < BATCH * CONTEXT; i++) {
		m->tokens[i] = (int)(random_next(&seed) % SYMBOLS);
		m->targets[i] = (int)(random_next(&seed) % SYMBOLS);
	}
	return 0;
}

static int model_teardown(void **state)
{
	struct model *m = *state;
	gpt_release(&m->gpt);
	engine_release(&m->engine);
	free(m);
	return 0;
}

static double model_loss(struct model *m)
{
	double loss;
	assert_int_equal(gpt_evaluate(&m->gpt, m->tokens, m->targets, BATCH, &loss, &m->failure), 0);
	return loss;
}

static void model_backward(struct model *m, double scale)
{
	double loss;
	assert_int_equal(gpt_forward(&m->gpt, m->tokens, m->targets, BATCH, &loss, &m->failure), 0);
	assert_int_equal(gpt_backward(&m->gpt, scale, &m->failure), 0);
}

static void each_kind_of_layer_has_the_right_gradient(void **state)
{
	struct model *m = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_layer(&m->engine, &cases[i]);
}

static double tensor_worst(struct model *m, const struct gpt_tensor *tensor)
{
	double worst = 0;
	for (size_t i = tensor->offset; i < tensor->offset + gpt_tensor_size(tensor); i++) {
		real kept = m->gpt.parameters[i];
		m->gpt.parameters[i] = kept + STEP;
		double above = model_loss(m);
		m->gpt.parameters[i] = kept - STEP;
		double below = model_loss(m);
		m->gpt.parameters[i] = kept;
		worst = fmax(worst, relative_error(m->gpt.gradients[i], (above - below) / (2 * STEP)));
	}
	return worst;
}

static void every_tensor_of_a_model_has_the_right_gradient(void **state)
{
	struct model *m = *state;
	model_backward(m, 1);
	for (int i = 0; i < m->gpt.tensor_count; i++) {
		double worst = tensor_worst(m, &m->gpt.tensors[i]);
		if (worst >= TOLERANCE)
			print_error("%s: worst relative error %.1e\n", m->gpt.tensors[i].name, worst);
		assert_true(worst < TOLERANCE);
	}
}

static void micro_batches_add_up_to_one_batch(void **state)
{
	struct model *m = *state;
	double worst = 0;
	model_backward(m, 1);
	real *whole = malloc(m->gpt.parameter_count * sizeof(real));
	assert_non_null(whole);
	memcpy(whole, m->gpt.gradients, m->gpt.parameter_count * sizeof(real));
	gpt_zero_gradients(&m->gpt);
	for (int row = 0; row < BATCH; row++) {
		double loss;
		assert_int_equal(gpt_forward(&m->gpt, m->tokens + row * CONTEXT, m->targets + row * CONTEXT, 1, &loss,
		                             &m->failure),
		                 0);
		assert_int_equal(gpt_backward(&m->gpt, 1.0 / BATCH, &m->failure), 0);
	}
	for (size_t i = 0; i < m->gpt.parameter_count; i++)
		worst = fmax(worst, relative_error(whole[i], m->gpt.gradients[i]));
	assert_true(worst < 1e-9);
	free(whole);
}

static void a_token_does_not_see_those_after_it(void **state)
{
	struct model *m = *state;
	double before, after;
	assert_int_equal(gpt_forward(&m->gpt, m->tokens, m->targets, 1, &before, &m->failure), 0);
	double first = m->gpt.logits[0], last = m->gpt.logits[(CONTEXT - 1) * SYMBOLS];
	assert_int_equal(gpt_backward(&m->gpt, 1, &m->failure), 0);
	m->tokens[CONTEXT - 1] = (m->tokens[CONTEXT - 1] + 1) % SYMBOLS;
	assert_int_equal(gpt_forward(&m->gpt, m->tokens, m->targets, 1, &after, &m->failure), 0);
	assert_true(m->gpt.logits[0] == first);
	assert_true(m->gpt.logits[(CONTEXT - 1) * SYMBOLS] != last);
}

/* Two updates computed by hand from the paper's formulas, in plain doubles. */
static void adamw_follows_its_formula(void **state)
{
	struct model *m = *state;
	struct adamw adamw;
	double first = 0, second = 0;
	assert_int_equal(adamw_init(&adamw, &m->gpt, &m->failure), 0);
	double weight = m->gpt.parameters[0];
	for (int update = 1; update <= 2; update++) {
		gpt_zero_gradients(&m->gpt);
		m->gpt.gradients[0] = 3 * update;
		m->gpt.gradients[1] = 4 * update;
		double norm = adamw_gradient_norm(&m->gpt), g = 0.6; /* 3/5: clipped to norm 1 */
		assert_true(fabs(norm - 5 * update) < 1e-12);
		adamw_step(&adamw, &m->gpt, update, 0.01, norm);
		first = 0.9 * first + 0.1 * g;
		second = 0.95 * second + 0.05 * g * g;
		double step = first / (1 - pow(0.9, update)) / (sqrt(second / (1 - pow(0.95, update))) + 1e-8);
		weight -= 0.01 * step + 0.01 * 0.1 * weight;
		assert_true(fabs(m->gpt.parameters[0] - weight) < 1e-12);
	}
	adamw_release(&adamw);
}

static void a_pass_gives_back_its_memory(void **state)
{
	struct model *m = *state;
	size_t before = m->engine.memory.used_bytes;
	model_backward(m, 1);
	model_loss(m);
	assert_int_equal(m->engine.memory.used_bytes, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_kind_of_layer_has_the_right_gradient, model_setup, model_teardown),
		cmocka_unit_test_setup_teardown(every_tensor_of_a_model_has_the_right_gradient, model_setup,
	                                        model_teardown),
		cmocka_unit_test_setup_teardown(micro_batches_add_up_to_one_batch, model_setup, model_teardown),
		cmocka_unit_test_setup_teardown(a_token_does_not_see_those_after_it, model_setup, model_teardown),
		cmocka_unit_test_setup_teardown(a_pass_gives_back_its_memory, model_setup, model_teardown),
		cmocka_unit_test_setup_teardown(adamw_follows_its_formula, model_setup, model_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
