/* SPDX-License-Identifier: Apache-2.0 */
/* What a run tells: facts about the model to stepscope, progress to people. Does not influence training. */
#include "monotonic.h"
#include "trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define PRINT_EVERY 10

__attribute__((format(printf, 2, 3))) static void fact(const char *key, const char *format, ...)
{
	char value[128];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	stepscope_metadata(key, value);
}

static bool is_talking(const struct trainer *t)
{
	return !t->settings->quiet && t->ranks->rank == 0;
}

static double tokens_per_step(const struct trainer *t)
{
	return (double)t->settings->rows * (double)t->settings->context * (double)t->settings->accumulate;
}

void trainer_describe(const struct trainer *t)
{
	const struct settings *s = t->settings;
	const struct gpt_config *c = &t->gpt.config;
	stepscope_thread_name("train");
	fact("model.name", "gpt");
	fact("model.parameters", "%zu", t->gpt.parameter_count);
	fact("model.layers", "%d", c->layers);
	fact("model.dim", "%d", c->width);
	fact("model.heads", "%d", c->heads);
	fact("model.context", "%d", c->context);
	fact("model.vocabulary", "%d", c->symbols);
	fact("model.dtype", "%s", sizeof(real) == 4 ? "float32" : "float64");
	fact("train.micro_batch", "%ld", s->rows);
	fact("train.accumulate", "%ld", s->accumulate);
	fact("train.tokens_per_step", "%.0f", tokens_per_step(t));
	fact("train.flops_per_step", "%.0f", gpt_flops(&t->gpt, tokens_per_step(t)));
	fact("train.seed", "%ld", s->seed);
	fact("train.optimizer", "adamw");
	fact("data.bytes", "%" PRId64, t->corpus.bytes);
	if (is_talking(t))
		printf("gpt: %.2f M parameters, %d layers, width %d, %d symbols; %d files, %" PRId64
		       " bytes of text; %.0f tokens per step on %d rank%s\n",
		       (double)t->gpt.parameter_count / 1e6, c->layers, c->width, c->symbols, t->corpus.count,
		       t->corpus.bytes, tokens_per_step(t), t->ranks->size, t->ranks->size > 1 ? "s" : "");
}

void trainer_report_step(struct trainer *t, const struct stamp *stamp)
{
	if (!isfinite(stamp->loss) && !t->has_warned && t->ranks->rank == 0) {
		fprintf(stderr, "gpt: warning: the loss is not a number at step %ld\n", stamp->step);
		t->has_warned = true;
	}
	if (!is_talking(t) || (t->step % PRINT_EVERY != 0 && t->step != t->settings->steps))
		return;
	double seconds = (double)(stamp->end_ns - t->printed_ns) / 1e9;
	double steps = (double)(t->step - t->printed_step);
	printf("step %5ld/%ld  loss %.4f  gradient norm %.3f  learning rate %.5f  %.0f ms/step  %.0f tokens/s\n",
	       t->step, t->settings->steps, stamp->loss, stamp->gradient_norm, t->learning_rate, seconds / steps * 1e3,
	       steps * tokens_per_step(t) * t->ranks->size / seconds);
	fflush(stdout);
	t->printed_ns = monotonic_ns();
	t->printed_step = t->step;
}

void trainer_report_validation(const struct trainer *t, double loss)
{
	if (is_talking(t))
		printf("step %5ld/%ld  validation loss %.4f\n", t->step + 1, t->settings->steps, loss);
}
