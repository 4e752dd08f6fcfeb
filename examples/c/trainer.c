/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop, marked for stepscope as a user would do it: steps, micro-batches, phases, metrics. Operations,
 * layers and memory are marked where they happen. Faults are injected here, in the loader and in the team. */
#include "trainer.h"

#include "monotonic.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WARMUP_STEPS 20
#define VALIDATION_BATCHES 4

static int data_init(struct trainer *t, struct failure *failure)
{
	const struct settings *s = t->settings;
	char text[] = TRAINER_DATA;
	char *const usual[] = {text};
	char *const *paths = s->data_count > 0 ? s->data : usual;
	return corpus_init(&t->corpus, paths, s->data_count > 0 ? s->data_count : 1, (int)s->context, failure);
}

static int model_init(struct trainer *t, struct failure *failure)
{
	const struct settings *s = t->settings;
	const struct gpt_config config = {.symbols = t->corpus.symbols,
	                                  .context = (int)s->context,
	                                  .width = (int)s->width,
	                                  .heads = (int)s->heads,
	                                  .layers = (int)s->layers};
	if (gpt_init(&t->gpt, &t->engine, &config, (unsigned long)s->seed, failure) != 0)
		return -1;
	if (adamw_init(&t->adamw, &t->gpt, failure) != 0)
		return -1;
	if (s->resume != NULL && checkpoint_load(s->resume, &t->gpt, &t->adamw, &t->step, failure) != 0)
		return -1;
	if (t->step >= s->steps)
		return failure_set(failure, "checkpoint '%s' has %ld steps done; ask for more with --steps", s->resume,
		                   t->step);
	return ranks_join(t->ranks, t->gpt.parameter_count, failure);
}

static int loading_init(struct trainer *t, struct failure *failure)
{
	const struct settings *s = t->settings;
	bool is_slow = s->faults.slow_loader_rank < 0 || s->faults.slow_loader_rank == t->ranks->rank;
	const struct loader_options options = {.rows = (int)s->rows,
	                                       .threads = (int)s->loader_threads,
	                                       .capacity = (int)s->queue,
	                                       .seed = random_stream((uint64_t)s->seed, 3, (uint64_t)t->ranks->rank),
	                                       .first = t->step * s->accumulate,
	                                       .slow_ms = is_slow ? (int)s->faults.slow_loader_ms : 0,
	                                       .slow_every = (int)s->faults.slow_loader_every};
	if (batch_init(&t->validation, &t->corpus, (int)s->rows, &t->engine.memory, failure) != 0)
		return -1;
	return loader_init(&t->loader, &options, &t->corpus, &t->engine.memory, failure);
}

int trainer_init(struct trainer *t, const struct settings *settings, struct ranks *ranks, struct failure *failure)
{
	memset(t, 0, sizeof(*t));
	t->settings = settings;
	t->ranks = ranks;
	if (engine_init(&t->engine, (int)settings->workers, failure) != 0 || data_init(t, failure) != 0 ||
	    model_init(t, failure) != 0)
		return -1;
	if (stamps_init(&t->stamps, settings->steps - t->step, failure) != 0)
		return -1;
	if (checkpoint_init(&t->checkpoint, ranks->rank == 0 ? settings->out : NULL, &t->gpt, failure) != 0)
		return -1;
	/* A team runs twice per layer and micro-batch; the slow worker loses its share in each. */
	long loops = 2 * settings->layers * settings->accumulate;
	t->engine.team.slow_ns = settings->faults.slow_thread_ms * 1000000 / loops;
	return loading_init(t, failure);
}

int trainer_release(struct trainer *t, struct failure *failure)
{
	loader_release(&t->loader);
	int status = checkpoint_release(&t->checkpoint, failure);
	batch_release(&t->validation, &t->engine.memory);
	adamw_release(&t->adamw);
	gpt_release(&t->gpt);
	corpus_release(&t->corpus);
	stamps_release(&t->stamps);
	engine_release(&t->engine);
	return status;
}

/* Grows for the first steps, then falls with the square root; independent of --steps, so that runs can go on. */
static double learning_rate_at(const struct trainer *t, long step)
{
	double progress = (double)(step + 1) / WARMUP_STEPS;
	return t->settings->learning_rate * (progress < 1 ? progress : 1 / sqrt(progress));
}

/* Faults that belong to a step as a whole. */
static int faults_inject(struct trainer *t, struct failure *failure)
{
	const struct faults *faults = &t->settings->faults;
	if (t->step == faults->nan_step)
		t->gpt.weights.layers[t->gpt.config.layers / 2].norm2_weight[0] = (real)NAN;
	if (faults->leak_kb > 0) {
		size_t bytes = (size_t)faults->leak_kb * 1024;
		void *lost = memory_take(&t->engine.memory, bytes, STEPSCOPE_MEMORY_TEMPORARY);
		if (lost == NULL)
			return failure_memory(failure, bytes);
		memset(lost, 1, bytes); /* so that the process really grows */
	}
	return 0;
}

static int micro_batch(struct trainer *t, long index, struct stamp *stamp, struct failure *failure)
{
	const struct faults *faults = &t->settings->faults;
	double loss = 0;
	stepscope_phase_begin(STEPSCOPE_PHASE_DATA);
	struct batch *batch = loader_take(&t->loader, &stamp->data_wait_ns, failure);
	if (batch == NULL) {
		stepscope_phase_end();
		return -1;
	}
	stepscope_phase_switch(STEPSCOPE_PHASE_FORWARD);
	int status = gpt_forward(&t->gpt, batch->tokens, batch->targets, batch->rows, &loss, failure);
	if (index == 0 && faults->straggler_ms > 0 && faults->straggler_rank == t->ranks->rank)
		monotonic_sleep_ns(faults->straggler_ms * 1000000);
	stepscope_phase_switch(STEPSCOPE_PHASE_BACKWARD);
	if (status == 0)
		status = gpt_backward(&t->gpt, 1.0 / (double)t->settings->accumulate, failure);
	stepscope_phase_end();
	stamp->loss += loss / (double)t->settings->accumulate;
	stamp->tokens += (int64_t)batch->rows * t->corpus.context;
	loader_give(&t->loader);
	return status;
}

static int gradients_average(struct trainer *t, struct stamp *stamp, struct failure *failure)
{
	if (t->ranks->size == 1)
		return 0;
	int64_t begin = monotonic_ns();
	real loss = (real)stamp->loss;
	stepscope_phase_begin(STEPSCOPE_PHASE_COMMUNICATION);
	int status = ranks_average(t->ranks, &t->engine, t->gpt.gradients, t->gpt.parameter_count, failure);
	if (status == 0)
		status = ranks_average(t->ranks, &t->engine, &loss, 1, failure);
	stepscope_phase_end();
	stamp->loss = (double)loss;
	stamp->communication_ns = monotonic_ns() - begin;
	return status;
}

/* Spins until the step has used that much more of the processor: waits for one are no part of the fault. */
static void lose_time(int64_t begin_cpu_ns, long percent)
{
	int64_t now_ns = thread_cpu_ns();
	int64_t end_ns = now_ns + (now_ns - begin_cpu_ns) * percent / 100;
	stepscope_range_push("slow step");
	while (thread_cpu_ns() < end_ns)
		;
	stepscope_range_pop();
}

static void parameters_update(struct trainer *t, struct stamp *stamp)
{
	stepscope_phase_begin(STEPSCOPE_PHASE_OPTIMIZER);
	t->learning_rate = learning_rate_at(t, t->step);
	stamp->gradient_norm = adamw_gradient_norm(&t->gpt);
	adamw_step(&t->adamw, &t->gpt, t->step + 1, t->learning_rate, stamp->gradient_norm);
	gpt_zero_gradients(&t->gpt);
	if (t->settings->faults.slow_step_percent > 0)
		lose_time(stamp->begin_cpu_ns, t->settings->faults.slow_step_percent);
	stepscope_phase_end();
}

static bool is_due(long every, long steps_done)
{
	return every > 0 && steps_done % every == 0;
}

/* The same windows each time, and in each rank. */
static int validation_loss(struct trainer *t, double *loss, struct failure *failure)
{
	*loss = 0;
	for (uint64_t i = 0; i < VALIDATION_BATCHES; i++) {
		double part = 0;
		if (corpus_read(&t->corpus, CORPUS_VALIDATION, random_stream(0, 4, i), &t->validation, failure) != 0)
			return -1;
		corpus_tokenize(&t->corpus, &t->validation);
		if (gpt_evaluate(&t->gpt, t->validation.tokens, t->validation.targets, t->validation.rows, &part,
		                 failure) != 0)
			return -1;
		*loss += part / VALIDATION_BATCHES;
	}
	return 0;
}

static int evaluate(struct trainer *t, struct stamp *stamp, struct failure *failure)
{
	if (!is_due(t->settings->evaluate_every, t->step + 1))
		return 0;
	int64_t begin = monotonic_ns();
	double loss;
	stepscope_phase_begin(STEPSCOPE_PHASE_EVALUATION);
	int status = validation_loss(t, &loss, failure);
	stepscope_phase_end();
	stamp->evaluation_ns = monotonic_ns() - begin;
	if (status == 0) {
		stepscope_metric("validation loss", loss);
		trainer_report_validation(t, loss);
	}
	return status;
}

static int save(struct trainer *t, struct stamp *stamp, struct failure *failure)
{
	const struct settings *s = t->settings;
	bool at_once = is_due(s->faults.sync_checkpoint_every, t->step + 1);
	if (t->checkpoint.folder == NULL || (!at_once && !is_due(s->checkpoint_every, t->step + 1)))
		return 0;
	int64_t begin = monotonic_ns();
	stepscope_phase_begin(STEPSCOPE_PHASE_CHECKPOINT);
	int status = at_once ? checkpoint_save_now(&t->checkpoint, &t->gpt, &t->adamw, t->step + 1, failure)
	                     : checkpoint_save(&t->checkpoint, &t->gpt, &t->adamw, t->step + 1, failure);
	stepscope_phase_end();
	stamp->checkpoint_ns = monotonic_ns() - begin;
	return status;
}

static int step_work(struct trainer *t, struct stamp *stamp, struct failure *failure)
{
	int status = faults_inject(t, failure);
	for (long i = 0; status == 0 && i < t->settings->accumulate; i++) {
		stepscope_micro_batch_begin(i);
		status = micro_batch(t, i, stamp, failure);
		stepscope_micro_batch_end();
	}
	if (status != 0 || gradients_average(t, stamp, failure) != 0)
		return -1;
	parameters_update(t, stamp);
	if (evaluate(t, stamp, failure) != 0)
		return -1;
	return save(t, stamp, failure);
}

static int step_run(struct trainer *t, struct failure *failure)
{
	struct stamp *stamp = stamps_next(&t->stamps);
	stamp->step = t->step;
	stepscope_step_begin(t->step);
	stamp->begin_ns = monotonic_ns();
	stamp->begin_cpu_ns = thread_cpu_ns();
	int status = step_work(t, stamp, failure);
	stepscope_step_tokens((uint64_t)stamp->tokens);
	stepscope_step_samples((uint64_t)(stamp->tokens / t->corpus.context));
	stepscope_metric("loss", stamp->loss);
	stepscope_metric("gradient norm", stamp->gradient_norm);
	stepscope_metric("learning rate", t->learning_rate);
	stamp->end_ns = monotonic_ns();
	stepscope_step_end();
	if (status != 0) {
		t->stamps.count--; /* a broken step is no measurement */
		return -1;
	}
	t->step++;
	trainer_report_step(t, stamp);
	return 0;
}

int trainer_run(struct trainer *t, struct failure *failure)
{
	int status = 0;
	trainer_describe(t);
	t->printed_ns = monotonic_ns();
	t->printed_step = t->step;
	while (status == 0 && t->step < t->settings->steps)
		status = step_run(t, failure);
	if (t->settings->stamps != NULL && stamps_write(&t->stamps, t->settings->stamps, t->ranks->rank, failure) != 0)
		status = -1;
	if (status == 0 && t->checkpoint.folder != NULL)
		status = checkpoint_save(&t->checkpoint, &t->gpt, &t->adamw, t->step, failure);
	return status;
}
