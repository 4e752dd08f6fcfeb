/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_generations.c: runs of calls of a trained model that lead to no backward: the samples that reinforcement learning trains
 * on. A teacher is another model, and what computes losses of old batches calls the model about as often as the training does.
 * Where calls of modules are not known, operators of layers are counted: so many as a forward with a graph has are a call. An evaluation looks
 * the same there, but is rarer than steps.
 */
#include "model/number_map.h"
#include "steps/infer_steps_parts.h"

#include <string.h>

#define CALLS_LEAST 8        /* in a run */
#define CALLS_OF_TRAINING 2  /* so often a run has the calls with a graph of a step, at least */
#define CALLS_TO_PAUSE 4     /* so many show how far a call is from the next one */
#define PERIODS_OF_A_PAUSE 8 /* so far away is something else */

struct generations {
	struct inferrer *in;
	struct number_map trained; /* modules that made a graph that a backward used */
	double layers;             /* of a forward with a graph */
	double calls_of_step;      /* with a graph, in the mean */
};

struct generation {         /* a run that may be one */
	size_t first, last; /* its first and last call */
	double calls;
	int64_t busy_ns; /* end of its last record, call or not */
};

static bool is_of_graph(const struct inferrer *in, size_t i)
{
	return in->records[i].token == TOKEN_FORWARD && !in->is_unused[i];
}

/* How many calls of a trained model the record is. */
static double calls_in(const struct generations *g, size_t i)
{
	const struct train_record *record = &g->in->records[i];

	if (!g->trained.count)
		return g->layers > 0 ? record->layers / g->layers : 0;
	return record->is_module && number_map_find(&g->trained, record->object >> 1) != NUMBER_MAP_NONE;
}

/* What the training calls: in the list up to the end of the last step. */
static void find_trained(struct generations *g)
{
	const struct inferrer *in = g->in;
	size_t count = in->end_count ? in->ends[in->end_count - 1] + 1 : 0, calls = 0;
	double layers = 0;
	bool is_in_forward = false;

	for (size_t i = 0; i < count; i++) {
		const struct train_record *record = &in->records[i];

		if (is_of_graph(in, i) && record->is_module && record->object)
			number_map_set(&g->trained, record->object >> 1, 1);
	}
	for (size_t i = 0; i < count; i++) {
		bool is_call = g->trained.count ? is_of_graph(in, i) && in->records[i].is_module
		                                : is_of_graph(in, i) && !is_in_forward;

		calls += is_call;
		layers += is_of_graph(in, i) ? in->records[i].layers : 0;
		is_in_forward = is_of_graph(in, i) || (is_in_forward && in->records[i].token == TOKEN_OP);
	}
	g->layers = calls ? layers / (double)calls : 0;
	g->calls_of_step = in->end_count ? (double)calls / (double)in->end_count : 0;
}

/* Something else than computing without a graph. */
static bool ends_run(const struct inferrer *in, size_t i)
{
	const struct train_record *record = &in->records[i];
	bool is_work = record->token == TOKEN_OP || record->token == TOKEN_UPDATE || record->token == TOKEN_FORWARD;

	return !is_work || is_of_graph(in, i) || record->is_inside || record->is_seed || in->is_evaluation[i];
}

/* Calls follow each other: the program computes a reward where one is far away. */
static bool is_behind_pause(const struct generations *g, const struct generation *run, size_t i)
{
	int64_t gap_ns = g->in->records[i].start_ns - run->busy_ns;
	int64_t run_ns = run->busy_ns - g->in->records[run->first].start_ns;
	bool is_known = run->calls >= CALLS_TO_PAUSE || gap_ns >= EVALUATION_PAUSE_NS;

	return is_known && train_pauses(TOKEN_OP, run->busy_ns, g->in->records[i].start_ns) &&
	       (double)gap_ns * run->calls > PERIODS_OF_A_PAUSE * (double)run_ns;
}

static void end_run(struct generations *g, struct generation *run)
{
	bool is_one = run->calls >= CALLS_LEAST && run->calls > CALLS_OF_TRAINING * g->calls_of_step;

	for (size_t i = run->first; is_one && i <= run->last; i++)
		g->in->is_generation[i] = true;
	run->calls = 0;
}

static bool is_in_most_steps(const struct inferrer *in)
{
	size_t step = 0, with_runs = 0;
	bool has_run = false;

	for (size_t i = 0; i < in->count && step < in->end_count; i++) {
		has_run |= in->is_generation[i];
		if (i != in->ends[step])
			continue;
		step++;
		with_runs += has_run;
		has_run = false;
	}
	return 2 * with_runs > in->end_count;
}

void infer_generations(struct inferrer *in)
{
	struct generations g = {.in = in};
	struct generation run = {0};

	find_trained(&g);
	for (size_t i = 0; i < in->count; i++) {
		double calls = calls_in(&g, i);

		if (run.calls > 0 && (ends_run(in, i) || is_behind_pause(&g, &run, i)))
			end_run(&g, &run);
		if (ends_run(in, i) || (run.calls <= 0 && calls <= 0))
			continue;
		if (run.calls <= 0)
			run = (struct generation){.first = i, .busy_ns = in->records[i].end_ns};
		run.calls += calls;
		run.last = calls > 0 ? i : run.last;
		if (in->records[i].end_ns > run.busy_ns)
			run.busy_ns = in->records[i].end_ns;
	}
	if (run.calls > 0)
		end_run(&g, &run);
	if (!g.trained.count && !is_in_most_steps(in)) /* it may be an evaluation */
		memset(in->is_generation, 0, in->count * sizeof(*in->is_generation));
	number_map_release(&g.trained);
}
