/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_generations.c: runs of calls of a trained model that lead to no backward: the samples that reinforcement learning trains
 * on. A teacher is another model, and what computes losses of old batches calls the model about as often as the training does.
 * Where calls of modules are not known, operators of layers are counted: so many as a forward with a graph has are a call. An evaluation looks
 * the same there, but is rarer than steps.
 * A pause splits calls in a row into runs. Most steps have the same number of pauses between such calls; where one has more, its
 * shortest pauses are waits for a processor or the like, and the runs around them are one.
 */
#include "base/memory.h"
#include "model/number_map.h"
#include "steps/infer_steps_parts.h"

#include <stdlib.h>
#include <string.h>

#define CALLS_LEAST 8                      /* in a run */
#define CALLS_OF_TRAINING 2                /* so often a run has the calls with a graph of a step, at least */
#define CALLS_TO_PAUSE 4                   /* so many show how far a call is from the next one */
#define PERIODS_OF_A_PAUSE 8               /* so far away is something else */
#define LONGEST_WAIT_NS INT64_C(100000000) /* for a processor, on a busy machine, in a generation that is shorter */

struct generation {         /* a run that may be one */
	size_t first, last; /* its first and last call */
	double calls;
	int64_t busy_ns;  /* end of its last record, call or not */
	int64_t pause_ns; /* from the last call of the run before to its first one; 0: something else is there */
	double usual_ns;  /* period of the run before; 0: something else is there, or it is not known */
};

struct generations {
	struct inferrer *in;
	struct number_map trained; /* modules that made a graph that a backward used */
	double layers;             /* of a forward with a graph */
	double calls_of_step;      /* with a graph, in the mean */
	struct generation *runs;
	size_t count, capacity;
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

/* From a call to the next one, in the mean. */
static double period_ns(const struct generations *g, const struct generation *run)
{
	return (double)(run->busy_ns - g->in->records[run->first].start_ns) / run->calls;
}

/* Calls follow each other: the program computes a reward where one is far away. */
static bool is_behind_pause(const struct generations *g, const struct generation *run, size_t i)
{
	int64_t gap_ns = g->in->records[i].start_ns - run->busy_ns;
	bool is_short = run->calls < CALLS_TO_PAUSE;
	bool is_known = !is_short || run->usual_ns > 0 || gap_ns >= EVALUATION_PAUSE_NS;
	double usual_ns = is_short && run->usual_ns > 0 ? run->usual_ns : period_ns(g, run);

	return is_known && train_pauses(TOKEN_OP, run->busy_ns, g->in->records[i].start_ns) &&
	       (double)gap_ns > PERIODS_OF_A_PAUSE * usual_ns;
}

static bool is_many(const struct generations *g, double calls)
{
	return calls >= CALLS_LEAST && calls > CALLS_OF_TRAINING * g->calls_of_step;
}

/* The run begins behind a pause. */
static void go_on_with_row(const struct generations *g, struct generation *run)
{
	const struct generation *before = &g->runs[g->count - 1];

	run->pause_ns = g->in->records[run->first].start_ns - g->in->records[before->last].end_ns;
	run->usual_ns = before->calls < CALLS_TO_PAUSE ? before->usual_ns : period_ns(g, before);
}

/* Splits the records into runs, wherever the calls pause or something else is between them. */
static void find_runs(struct generations *g)
{
	const struct inferrer *in = g->in;
	struct generation run = {0};
	bool is_in_row = false;

	for (size_t i = 0; i <= in->count; i++) {
		bool is_end = i == in->count || ends_run(in, i);
		double calls = is_end ? 0 : calls_in(g, i);

		if (run.calls > 0 && (is_end || is_behind_pause(g, &run, i))) {
			MEMORY_GROW(g->runs, g->count, g->capacity, 16);
			g->runs[g->count++] = run;
			run.calls = 0;
			is_in_row = true;
		}
		is_in_row &= !is_end;
		if (is_end || (run.calls <= 0 && calls <= 0))
			continue;
		if (run.calls <= 0) {
			run = (struct generation){.first = i, .busy_ns = in->records[i].end_ns};
			if (is_in_row)
				go_on_with_row(g, &run);
		}
		run.calls += calls;
		run.last = calls > 0 ? i : run.last;
		if (in->records[i].end_ns > run.busy_ns)
			run.busy_ns = in->records[i].end_ns;
	}
}

/* The run behind those that only pauses split from run i. */
static size_t end_of_row(const struct generations *g, size_t i)
{
	i++;
	while (i < g->count && g->runs[i].pause_ns)
		i++;
	return i;
}

static double calls_of_row(const struct generations *g, size_t i, size_t end)
{
	double calls = 0;

	for (; i < end; i++)
		calls += g->runs[i].calls;
	return calls;
}

/* So many pauses most rows of many calls have. NONE: they differ. */
static size_t usual_pauses(const struct generations *g)
{
	size_t usual = NONE, votes = 0, rows = 0, same = 0;

	for (size_t i = 0, end; i < g->count; i = end) { /* the only number that more than half can have */
		end = end_of_row(g, i);
		if (!is_many(g, calls_of_row(g, i, end)))
			continue;
		rows++;
		usual = votes ? usual : end - i - 1;
		votes = usual == end - i - 1 ? votes + 1 : votes - 1;
	}
	for (size_t i = 0, end; i < g->count; i = end) {
		end = end_of_row(g, i);
		same += end - i - 1 == usual && is_many(g, calls_of_row(g, i, end));
	}
	return 2 * same > rows ? usual : NONE;
}

static int longer_first(const void *a, const void *b)
{
	int64_t a_ns = *(const int64_t *)a, b_ns = *(const int64_t *)b;

	return (a_ns < b_ns) - (a_ns > b_ns);
}

/* Pauses of the runs [first, end) that are no longer than this are not the program's. It has `usual` others, at most. */
static int64_t longest_accident(const struct generations *g, size_t first, size_t end, size_t usual)
{
	size_t count = end - first - 1;
	int64_t calls_ns = g->in->records[g->runs[first].last].end_ns - g->in->records[g->runs[first].first].start_ns;
	int64_t *pauses = memory_resize(NULL, count + 1, sizeof(*pauses)), longest_ns;

	for (size_t i = 0; i < count; i++) {
		const struct generation *run = &g->runs[first + 1 + i];

		pauses[i] = run->pause_ns;
		calls_ns += g->in->records[run->last].end_ns - g->in->records[run->first].start_ns;
	}
	qsort(pauses, count, sizeof(*pauses), longer_first);
	longest_ns = usual < count ? pauses[usual] : 0;
	free(pauses);
	if (calls_ns < LONGEST_WAIT_NS)
		calls_ns = LONGEST_WAIT_NS;
	return longest_ns < calls_ns ? longest_ns : calls_ns;
}

/* Joins the runs that pauses split by accident. */
static void join_runs(struct generations *g)
{
	size_t usual = usual_pauses(g), count = 0;

	for (size_t i = 0, end; usual != NONE && i < g->count; i = end) {
		int64_t accident_ns;

		end = end_of_row(g, i);
		accident_ns = longest_accident(g, i, end, usual);
		g->runs[count++] = g->runs[i];
		for (size_t k = i + 1; k < end; k++) {
			if (g->runs[k].pause_ns > accident_ns) {
				g->runs[count++] = g->runs[k];
				continue;
			}
			g->runs[count - 1].calls += g->runs[k].calls;
			g->runs[count - 1].last = g->runs[k].last;
		}
	}
	g->count = usual != NONE ? count : g->count;
}

static void mark_generations(const struct generations *g)
{
	for (size_t i = 0; i < g->count; i++) {
		for (size_t k = g->runs[i].first; is_many(g, g->runs[i].calls) && k <= g->runs[i].last; k++)
			g->in->is_generation[k] = true;
	}
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

	find_trained(&g);
	find_runs(&g);
	join_runs(&g);
	mark_generations(&g);
	if (!g.trained.count && !is_in_most_steps(in)) /* it may be an evaluation */
		memset(in->is_generation, 0, in->count * sizeof(*in->is_generation));
	number_map_release(&g.trained);
	free(g.runs);
}
