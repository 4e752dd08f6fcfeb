/* SPDX-License-Identifier: Apache-2.0
 *
 * operator_cost.c: see the header. Finds for each rank the steps with a neighbour, or the blocks, to compare. Joins
 * the differences of the ranks in one step or block, and takes the mean.
 */
#include "analysis/evidence/operator_cost.h"

#include "analysis/step_times/step_kinds.h"
#include "base/memory.h"
#include "base/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define GAP_SHARE 0.1 /* of a step, beyond twice the usual gap between two */
#define GIANT 3       /* times a usual step, or GIANT_MORE times that, or ...: not compared while such steps are rare */
#define GIANT_MORE 1.35
#define GIANT_TRIES 6
#define RARE 4u  /* one in N stretches of BLOCK steps */
#define BLOCK 8u /* steps, as in src/recorder/budget.c; N = 1 leaves out one of 16 */

struct operator_cost_pair {
	int64_t key; /* index of the job's step or of the process's; or number of the block */
	double with_ns, without_ns;
	double variance, freedom; /* of the difference, from the spread of one kind in a block; 0: by neighbours */
	uint32_t steps;           /* steps with operators */
	uint32_t count;           /* number of joined differences */
};

struct operator_cost_pairing {
	const struct model *model;
	const struct step_times *times;
	struct operator_cost_pair *list;
	uint32_t count;
	double *gaps;
	double gap_limit_ns;
	double giant_ns; /* steps of the process of this duration or more are giants */
	bool *is_beside; /* by step: it was compared with steps with operators */
};

/* ---- kinds ---- */

static bool is_plain(const struct operator_cost_pairing *pairing, uint32_t i)
{
	const struct step_time *time = &pairing->times->steps[i];
	const struct job_step *job = time->job == MODEL_NONE ? NULL : &pairing->times->job[time->job];

	return job ? job->plain == job->processes : step_is_plain(&pairing->model->steps[i]);
}

/* Returns true if some ranks have operators in the whole step, and the others have none in it. */
static bool is_with(const struct operator_cost_pairing *pairing, uint32_t i)
{
	const struct step_time *time = &pairing->times->steps[i];
	const struct job_step *job = time->job == MODEL_NONE ? NULL : &pairing->times->job[time->job];

	return job ? job->measured && job->measured + job->plain == job->processes : time->is_measured;
}

static bool is_usable(const struct operator_cost_pairing *pairing, uint32_t i)
{
	const struct step_time *time = &pairing->times->steps[i];

	return time->is_selected && time->is_complete && !time->is_early && time->dur_ns > 0 &&
	       (double)time->dur_ns < pairing->giant_ns && !time->phase_ns[STEPSCOPE_PHASE_EVALUATION];
}

static bool is_from(const struct operator_cost_pairing *pairing, uint32_t i, double from_ns, double to_ns)
{
	double dur_ns = (double)pairing->times->steps[i].dur_ns;

	return is_usable(pairing, i) && dur_ns >= from_ns && dur_ns < to_ns;
}

/* Returns true if steps of this duration or more are rare, and if no step is so near to it that operators would decide
 * its side. */
static bool are_giants(const struct operator_cost_pairing *pairing, uint32_t first, uint32_t end, double giant_ns)
{
	uint32_t stretches = 0, odd = 0;

	for (uint32_t from = first; from < end; from += BLOCK, stretches++) {
		bool is_odd = false;

		for (uint32_t i = from; i < end && i < from + BLOCK; i++) {
			if (is_from(pairing, i, giant_ns / GIANT_MORE, giant_ns * GIANT_MORE))
				return false;
			is_odd |= is_from(pairing, i, giant_ns, INFINITY);
		}
		odd += is_odd;
	}
	return RARE * odd <= stretches;
}

/* A step that a compilation or another process on the machine makes very long tells nothing about operators. If such
 * steps are no exception, they belong to the program. Whether a step has operators plays no part in this. */
static void find_giants(struct operator_cost_pairing *pairing, uint32_t first, uint32_t end)
{
	uint32_t count = 0;

	pairing->giant_ns = INFINITY;
	for (uint32_t i = first; i < end; i++)
		if (is_usable(pairing, i))
			pairing->gaps[count++] = (double)pairing->times->steps[i].dur_ns;
	if (!count)
		return;
	sort_doubles(pairing->gaps, count);
	double giant_ns = GIANT * quantile(pairing->gaps, count, 0.5);

	for (int i = 0; i < GIANT_TRIES && isinf(pairing->giant_ns); i++, giant_ns *= GIANT_MORE)
		if (are_giants(pairing, first, end, giant_ns))
			pairing->giant_ns = giant_ns;
}

/* ---- neighbours ---- */

/* Numbers may have gaps: the time between two steps tells whether one is missing. */
static bool follows(const struct model_step *after, const struct model_step *before)
{
	return after->process == before->process && after->track == before->track && after->number > before->number;
}

static double gap_ns(const struct operator_cost_pairing *pairing, uint32_t i)
{
	return fmax(0, (double)(pairing->model->steps[i].start_ns - pairing->model->steps[i - 1].end_ns));
}

/* Finds how long a gap between two steps of the process [first, end) may be. */
static void find_gap_limit(struct operator_cost_pairing *pairing, uint32_t first, uint32_t end)
{
	double step_ns = 0;
	uint32_t count = 0;

	for (uint32_t i = first + 1; i < end; i++) {
		if (!follows(&pairing->model->steps[i], &pairing->model->steps[i - 1]))
			continue;
		pairing->gaps[count++] = gap_ns(pairing, i);
		step_ns += (double)pairing->times->steps[i].dur_ns;
	}
	pairing->gap_limit_ns = 0;
	if (!count)
		return;
	sort_doubles(pairing->gaps, count);
	pairing->gap_limit_ns = 2 * quantile(pairing->gaps, count, 0.5) + GAP_SHARE * step_ns / count;
}

/* Adds the step `other` next to `i` if they may be compared. `behind` is the later of the two. */
static void add_neighbour(struct operator_cost_pairing *pairing, struct operator_cost_pair *pair, uint32_t other,
                          uint32_t behind)
{
	const struct model_step *steps = pairing->model->steps;

	assert(behind > 0 && (other == behind || other == behind - 1));

	if (!follows(&steps[behind], &steps[behind - 1]) || gap_ns(pairing, behind) > pairing->gap_limit_ns ||
	    !is_usable(pairing, other) || !is_plain(pairing, other))
		return;
	pair->without_ns += (double)pairing->times->steps[other].dur_ns;
	pair->count++;
	pairing->is_beside[other] = true;
}

static void pair_step(struct operator_cost_pairing *pairing, uint32_t i, uint32_t first, uint32_t end)
{
	const struct step_time *time = &pairing->times->steps[i];
	struct operator_cost_pair pair = {
		.key = time->job == MODEL_NONE ? i : time->job, .with_ns = (double)time->dur_ns, .steps = 1};

	assert(first <= i && i < end);

	if (!is_usable(pairing, i) || !is_with(pairing, i))
		return;
	if (i > first)
		add_neighbour(pairing, &pair, i - 1, i);
	if (i + 1 < end)
		add_neighbour(pairing, &pair, i + 1, i + 1);
	if (!pair.count)
		return;
	pair.without_ns /= pair.count;
	pair.count = 1;
	pairing->list[pairing->count++] = pair;
}

/* ---- blocks ---- */

static bool is_block(const struct operator_cost_pairing *pairing, uint32_t first, uint32_t end)
{
	const struct model_step *steps = pairing->model->steps;

	if (end - first < BLOCK || (uint64_t)steps[first].number % BLOCK ||
	    steps[first + BLOCK - 1].number != steps[first].number + (int64_t)BLOCK - 1)
		return false;
	for (uint32_t i = first; i < first + BLOCK; i++) {
		bool goes_on = i == first ||
		               (follows(&steps[i], &steps[i - 1]) && gap_ns(pairing, i) <= pairing->gap_limit_ns);

		if (!goes_on || !is_usable(pairing, i) || is_plain(pairing, i) == is_with(pairing, i))
			return false;
	}
	return true;
}

/* Returns the sum of squares of the steps of a kind around their mean. */
static double squares_of(const struct operator_cost_pairing *pairing, uint32_t first, bool is_of_plain, double mean_ns)
{
	double squares = 0;

	for (uint32_t i = first; i < first + BLOCK; i++)
		if (is_plain(pairing, i) == is_of_plain)
			squares += pow((double)pairing->times->steps[i].dur_ns - mean_ns, 2);
	return squares;
}

static void pair_block(struct operator_cost_pairing *pairing, uint32_t first)
{
	struct operator_cost_pair pair = {
		.key = pairing->model->steps[first].number / (int64_t)BLOCK, .count = 1, .freedom = BLOCK - 2};

	for (uint32_t i = first; i < first + BLOCK; i++) {
		*(is_plain(pairing, i) ? &pair.without_ns : &pair.with_ns) += (double)pairing->times->steps[i].dur_ns;
		pair.steps += !is_plain(pairing, i);
	}
	if (!pair.steps || pair.steps == BLOCK)
		return;
	double with = pair.steps, without = BLOCK - pair.steps;

	pair.with_ns /= with;
	pair.without_ns /= without;
	pair.variance = (squares_of(pairing, first, true, pair.without_ns) +
	                 squares_of(pairing, first, false, pair.with_ns)) /
	                pair.freedom * (1 / with + 1 / without);
	for (uint32_t i = first; i < first + BLOCK; i++)
		pairing->is_beside[i] = is_plain(pairing, i);
	pairing->list[pairing->count++] = pair;
}

static void pair_blocks(struct operator_cost_pairing *pairing, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (is_block(pairing, i, end))
			pair_block(pairing, i);
}

static void pair_steps(struct operator_cost_pairing *pairing, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		pair_step(pairing, i, first, end);
}

static bool operator_cost_is_wanted(const struct step_times *times, uint32_t process, uint32_t wanted)
{
	if (wanted != MODEL_NONE)
		return process == wanted;
	for (uint32_t i = 0; i < times->span_count; i++)
		if (times->spans[i].process == process)
			return times->spans[i].is_rank;
	return false;
}

static void operator_cost_pair_all(struct operator_cost_pairing *pairing, uint32_t wanted,
                                   void (*pair)(struct operator_cost_pairing *, uint32_t, uint32_t))
{
	const struct model *model = pairing->model;

	for (uint32_t first = 0, end; first < pairing->times->count; first = end) {
		uint32_t process = model->steps[first].process;

		for (end = first; end < pairing->times->count && model->steps[end].process == process;)
			end++;
		if (!operator_cost_is_wanted(pairing->times, process, wanted))
			continue;
		find_gap_limit(pairing, first, end);
		find_giants(pairing, first, end);
		pair(pairing, first, end);
	}
}

/* ---- the mean ---- */

static int operator_cost_compare_keys(const void *left, const void *right)
{
	const struct operator_cost_pair *a = left, *b = right;

	return (a->key > b->key) - (a->key < b->key);
}

static void join_ranks(struct operator_cost_pairing *pairing)
{
	uint32_t kept = 0;

	if (pairing->count)
		qsort(pairing->list, pairing->count, sizeof(*pairing->list), operator_cost_compare_keys);
	for (uint32_t i = 0; i < pairing->count; i++) {
		struct operator_cost_pair *last = kept ? &pairing->list[kept - 1] : NULL;

		if (!last || last->key != pairing->list[i].key) {
			pairing->list[kept++] = pairing->list[i];
			continue;
		}
		last->with_ns += pairing->list[i].with_ns;
		last->without_ns += pairing->list[i].without_ns;
		last->variance += pairing->list[i].variance;
		last->freedom += pairing->list[i].freedom;
		last->count++;
	}
	pairing->count = kept;
	for (uint32_t i = 0; i < kept; i++) {
		pairing->list[i].with_ns /= pairing->list[i].count;
		pairing->list[i].without_ns /= pairing->list[i].count;
		pairing->list[i].variance /= pairing->list[i].count; /* ranks wait for each other: they act as one */
	}
}

static double difference(const struct operator_cost_pair *pair)
{
	return pair->with_ns - pair->without_ns;
}

/* Returns the correlation of successive differences. Differences that share a neighbour, or a slow stretch, are alike,
 * so they are less evidence than the same number of independent ones. */
static double likeness(const struct operator_cost_pairing *pairing, double mean, double variance)
{
	double sum = 0;

	for (uint32_t i = 1; i < pairing->count; i++)
		sum += (difference(&pairing->list[i]) - mean) * (difference(&pairing->list[i - 1]) - mean);
	return variance > 0 ? fmax(0, sum / (pairing->count * variance)) : 0;
}

/* Returns half of the interval by the spread of one kind within blocks. It tells more about the uncertainty than the
 * spread of the blocks: a rare slow step shows in many blocks before it is the one with operators. */
static double half_by_design(const struct operator_cost_pairing *pairing)
{
	double variance = 0, freedom = 0;

	for (uint32_t i = 0; i < pairing->count; i++) {
		variance += pairing->list[i].variance;
		freedom += pairing->list[i].freedom;
	}
	return freedom > 0 ? student_t95(freedom) * sqrt(variance) / pairing->count : 0;
}

static void take_mean(struct operator_cost *cost, const struct operator_cost_pairing *pairing)
{
	double mean, squares = 0, variance, half_ns;

	for (uint32_t i = 0; i < pairing->count; i++) {
		cost->with_ns += pairing->list[i].with_ns / pairing->count;
		cost->without_ns += pairing->list[i].without_ns / pairing->count;
	}
	mean = cost->with_ns - cost->without_ns;
	for (uint32_t i = 0; i < pairing->count; i++)
		squares += pow(difference(&pairing->list[i]) - mean, 2);
	variance = squares / (pairing->count - 1);
	cost->ratio = mean / cost->without_ns;
	half_ns = student_t95(pairing->count - 1) *
	          sqrt(variance * (1 + 2 * likeness(pairing, mean, variance)) / pairing->count);
	cost->half = fmax(half_ns, half_by_design(pairing)) / cost->without_ns;
}

/* ---- public ---- */

static bool has_dropped(const struct model *model, uint32_t process)
{
	for (uint32_t i = 0; i < model->ledger_count; i++)
		if (model->ledger[i].kind == LEDGER_DROPPED &&
		    (process == MODEL_NONE || model->ledger[i].process == process))
			return true;
	return false;
}

/* Counts the complete steps of the job or of the process. */
static void count_steps(struct operator_cost *cost, const struct operator_cost_pairing *pairing, uint32_t process)
{
	const struct step_times *times = pairing->times;

	if (process == MODEL_NONE) {
		cost->count = times->job_count;
		for (uint32_t i = 0; i < times->job_count; i++)
			cost->with += times->job[i].plain < times->job[i].processes;
		return;
	}
	for (uint32_t i = 0; i < times->count; i++) {
		if (pairing->model->steps[i].process != process || !times->steps[i].is_selected ||
		    !times->steps[i].is_complete)
			continue;
		cost->count++;
		cost->with += !is_plain(pairing, i);
	}
}

/* compared: number of differences. */
static const char *why_unknown(const struct operator_cost *cost, const struct model *model, uint32_t process,
                               uint32_t compared)
{
	if (!cost->count)
		return OPERATOR_COST_NO_STEPS;
	if (!cost->with)
		return OPERATOR_COST_NONE;
	if (cost->with == cost->count)
		return OPERATOR_COST_ALL;
	if (has_dropped(model, process))
		return "events were dropped, so the steps with all their operators are unknown";
	return compared < STEP_KINDS_LEAST ? "fewer than three steps with operators have a neighbour without" : NULL;
}

struct operator_cost operator_cost_find(const struct model *model, const struct step_times *times, uint32_t process)
{
	struct operator_cost cost = {0};
	struct operator_cost_pairing pairing = {
		.model = model,
		.times = times,
		.list = memory_resize(NULL, (size_t)times->count + 1, sizeof(*pairing.list)),
		.gaps = memory_resize(NULL, (size_t)times->count + 1, sizeof(*pairing.gaps)),
		.is_beside = memory_resize(NULL, (size_t)times->count + 1, sizeof(*pairing.is_beside))};

	memset(pairing.is_beside, 0, times->count * sizeof(*pairing.is_beside));
	count_steps(&cost, &pairing, process);
	if (times->by_budget)
		operator_cost_pair_all(&pairing, process, pair_blocks);
	if (!pairing.count) /* if numbers have gaps, there are no blocks */
		operator_cost_pair_all(&pairing, process, pair_steps);
	join_ranks(&pairing);
	for (uint32_t i = 0; i < pairing.count; i++)
		cost.pairs += pairing.list[i].steps;
	for (uint32_t i = 0; i < times->count; i++)
		cost.beside += pairing.is_beside[i];
	cost.unknown = why_unknown(&cost, model, process, pairing.count);
	if (!cost.unknown)
		take_mean(&cost, &pairing);
	free(pairing.list);
	free(pairing.gaps);
	free(pairing.is_beside);
	return cost;
}
