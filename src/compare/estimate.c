/* SPDX-License-Identifier: Apache-2.0
 *
 * estimate.c: see the header.
 */
#include "compare/estimate.h"

#include "base/memory.h"
#include "base/statistics.h"
#include "compare/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_PAIRS 4
#define LEAST_DEGREES 2
#define RANKS_OF_RUNS 7 /* from this number of runs on, one odd run a side cannot move the interval */
#define RANKS_OF_PAIRS 12
#define MOST_RUNS 100000

struct estimate_side {
	const struct run_level *runs;
	size_t count;
};

/* ---- runs made in turns ---- */

struct estimate_turn {
	int64_t created_ns;
	bool is_new;
	double level;
};

static int compare_turns(const void *left, const void *right)
{
	const struct estimate_turn *a = left, *b = right;

	return (a->created_ns > b->created_ns) - (a->created_ns < b->created_ns);
}

static bool add_turns(struct estimate_turn *turns, const struct estimate_side *side, bool is_new)
{
	for (size_t i = 0; i < side->count; i++) {
		if (!side->runs[i].has_created)
			return false;
		turns[i] = (struct estimate_turn){side->runs[i].created_ns, is_new, side->runs[i].level};
	}
	return true;
}

/* Computes the differences within pairs of neighbours in time. Returns false if the runs were not made in turns. */
static bool find_pairs(double *differences, const struct estimate_side *base, const struct estimate_side *new)
{
	struct estimate_turn *turns = memory_resize(NULL, base->count + new->count, sizeof(*turns));
	bool is_paired = base->count == new->count && base->count >= LEAST_PAIRS &&add_turns(turns, base, false) &&
	                 add_turns(turns + base->count, new, true);

	if (is_paired)
		qsort(turns, 2 * base->count, sizeof(*turns), compare_turns);
	for (size_t i = 0; i < base->count && is_paired; i++) {
		const struct estimate_turn *first = &turns[2 * i], *second = first + 1;

		is_paired = first->is_new != second->is_new;
		differences[i] = second->is_new ? second->level - first->level : first->level - second->level;
	}
	free(turns);
	return is_paired;
}

/* ---- how many more runs ---- */

/* Returns the upper 60 % limit of the noise (Wilson and Hilferty's chi square), because few values show it. A higher
 * limit is not needed, because users who ask for more runs have mostly seen too much noise. If differences scatter by 2
 * to 4 %, 19 of 20 such users get an answer with that many runs, for normal, heavy-tailed and two-humped noise; at 8 %,
 * nine of ten. The upper 80 % limit asks for 50 % more runs, and all get an answer. */
static double cautious(double noise, double degrees)
{
	double part = 2 / (9 * degrees), root = 1 - part - 0.2533471 * sqrt(part);

	return noise * sqrt(1 / fmax(root * root * root, 0.01));
}

/* Returns how many standard errors `wanted` must be so that such a change is found in 19 of 20 cases. It is half the 95
 * % interval, and the shortfall of the estimate in 1 of 20 cases. The same number serves the other question: if there
 * is no change, half the 90 % interval, and the error of the estimate in 1 of 20 cases, to either side. */
static double needed_errors(double degrees)
{
	return student_t_limit(SURE, degrees) + student_t_limit(SURE_OF_SAME, degrees);
}

/* Returns the runs per side that tell a change of `wanted` from none. `spread` is that of the difference of two
 * runs. */
static size_t needed_runs(double spread, double wanted, bool is_paired)
{
	double normal = needed_errors(INFINITY) * spread / wanted;
	size_t count;

	if (normal * normal > MOST_RUNS)
		return MOST_RUNS;
	count = (size_t)fmax(2, normal * normal); /* fewer are never enough */
	while (count < MOST_RUNS) {
		double degrees = is_paired ? (double)count - 1 : 2 * (double)count - 2;

		if (needed_errors(degrees) * spread <= wanted * sqrt((double)count))
			break;
		count += count < 30 ? 1 : count / 10;
	}
	return is_paired && count < LEAST_PAIRS ? LEAST_PAIRS : count;
}

/* ---- the three methods ---- */

static double mean_level(const struct estimate_side *side)
{
	double sum = 0;

	for (size_t i = 0; i < side->count; i++)
		sum += side->runs[i].level;
	return sum / (double)side->count;
}

static double squares(const struct estimate_side *side)
{
	double mean = mean_level(side), sum = 0;

	for (size_t i = 0; i < side->count; i++)
		sum += (side->runs[i].level - mean) * (side->runs[i].level - mean);
	return sum;
}

static void use_student(struct estimate *estimate, double change, double error, double degrees)
{
	double half = student_t_limit(SURE, degrees) * error,
	       same_half = student_t_limit(SURE_OF_SAME, degrees) * error;

	estimate->change = change;
	estimate->low = change - half;
	estimate->high = change + half;
	estimate->same_low = change - same_half;
	estimate->same_high = change + same_half;
	estimate->outside = student_t_chance(change, error, degrees);
}

static void use_shift(struct estimate *estimate, const struct shift *shift)
{
	estimate->has_ranks = true;
	estimate->change = shift->middle;
	estimate->low = shift->low;
	estimate->high = shift->high;
	estimate->same_low = shift->same_low;
	estimate->same_high = shift->same_high;
	estimate->outside = shift->outside;
}

static void use_pairs(struct estimate *estimate, const double *differences, size_t count, double wanted)
{
	double mean = 0, sum = 0, spread;

	for (size_t i = 0; i < count; i++)
		mean += differences[i] / (double)count;
	for (size_t i = 0; i < count; i++)
		sum += (differences[i] - mean) * (differences[i] - mean);
	spread = sqrt(sum / (double)(count - 1));
	estimate->way = ESTIMATE_PAIRS;
	if (count >= RANKS_OF_PAIRS) {
		struct shift shift;

		signed_rank_shift(&shift, differences, count);
		use_shift(estimate, &shift);
		spread = (shift.high - shift.low) / 2 / student_t95(INFINITY) * sqrt((double)count);
	} else {
		use_student(estimate, mean, spread / sqrt((double)count), (double)count - 1);
	}
	estimate->noise = spread / sqrt(2);
	estimate->needed_runs = needed_runs(cautious(spread, (double)count - 1), wanted, true);
}

static double *levels_of(const struct estimate_side *side)
{
	double *levels = memory_resize(NULL, side->count, sizeof(*levels));

	for (size_t i = 0; i < side->count; i++)
		levels[i] = side->runs[i].level;
	return levels;
}

static void use_repeats(struct estimate *estimate, const struct estimate_side *base, const struct estimate_side *new,
                        double wanted)
{
	double degrees = (double)(base->count + new->count - 2);
	double noise = sqrt((squares(base) + squares(new)) / degrees);
	double share = 1 / (double)base->count + 1 / (double)new->count;

	estimate->way = ESTIMATE_REPEATS;
	if (base->count >= RANKS_OF_RUNS && new->count >= RANKS_OF_RUNS) {
		double *left = levels_of(base), *right = levels_of(new);
		struct shift shift;

		rank_sum_shift(&shift, left, base->count, right, new->count);
		use_shift(estimate, &shift);
		noise = (shift.high - shift.low) / 2 / student_t95(INFINITY) / sqrt(share);
		free(left);
		free(right);
	} else {
		use_student(estimate, mean_level(new) - mean_level(base), noise * sqrt(share), degrees);
	}
	estimate->noise = noise;
	estimate->needed_runs = needed_runs(cautious(noise, degrees) * sqrt(2), wanted, false);
}

/* Returns the assumed variance of one run's level, without the error of its steps. */
static double assumed_variance(struct estimate *estimate, const struct run_level *run, double assumed_noise)
{
	estimate->is_few |= run->is_few;
	estimate->is_single |= run->steps == 1;
	estimate->is_uneven |= run->uneven > assumed_noise;
	estimate->is_contended |= run->contended > assumed_noise;
	return assumed_noise * assumed_noise + run->uneven * run->uneven + run->contended * run->contended;
}

static void use_assumed(struct estimate *estimate, const struct estimate_side *base, const struct estimate_side *new,
                        const struct estimate_options *options)
{
	const struct estimate_side *const sides[] = {base, new};
	double wanted = options->wanted / needed_errors(INFINITY); /* as a standard error */
	double runs = 0, steps = 0, error, left;

	for (int s = 0; s < 2; s++) {
		double count = (double)sides[s]->count;

		for (size_t i = 0; i < sides[s]->count; i++) {
			const struct run_level *run = &sides[s]->runs[i];

			runs += assumed_variance(estimate, run, options->assumed_noise) / (count * count);
			steps += run->error * run->error / (count * count);
		}
	}
	error = sqrt(runs + steps);
	estimate->way = ESTIMATE_ASSUMED;
	estimate->noise = sqrt(runs / 2);
	use_student(estimate, mean_level(new) - mean_level(base), error, INFINITY);
	estimate->needed_runs = needed_runs(error, options->wanted, false);
	left = wanted * wanted - runs;
	if (left > 0 && steps > left)
		estimate->needed_steps = (size_t)ceil((double)base->runs[0].steps * steps / left);
}

double estimate_luck(size_t count, double noise)
{
	double below = 1 - ((double)count - 0.375) / ((double)count + 0.25);

	return count > 1 ? noise * student_t_limit(2 * below, INFINITY) : 0;
}

/* Moves those ends of the intervals outwards that luck may explain. The p value follows the new 95 % interval. */
static void allow_for_luck(struct estimate *estimate, double luck)
{
	double *end = luck > 0 ? &estimate->low : &estimate->high;
	double *same_end = luck > 0 ? &estimate->same_low : &estimate->same_high;
	double error = fabs(estimate->change - *end) / student_t95(INFINITY);

	if (estimate->change * luck > 0) {
		double left = fmax(0, fabs(estimate->change) - fabs(luck));

		estimate->outside = fmax(estimate->outside, student_t_chance(left, error, INFINITY));
	}
	*end -= luck;
	*same_end -= luck;
}

/* Widens the intervals by an error that is independent of the others. */
static void allow_for_doubt(struct estimate *estimate, double doubt)
{
	double error = (estimate->high - estimate->low) / 2 / student_t95(INFINITY);
	double both = hypot(error, doubt / student_t95(INFINITY)), wider = error > 0 ? both / error : 1;

	estimate->outside = fmax(estimate->outside, student_t_chance(estimate->change, both, INFINITY));
	estimate->low = estimate->change - wider * (estimate->change - estimate->low);
	estimate->high = estimate->change + wider * (estimate->high - estimate->change);
	estimate->same_low = estimate->change - wider * (estimate->change - estimate->same_low);
	estimate->same_high = estimate->change + wider * (estimate->same_high - estimate->change);
}

void estimate_compute(struct estimate *estimate, const struct run_level *base, size_t base_count,
                      const struct run_level *new, size_t new_count, const struct estimate_options *options)
{
	const struct estimate_side left = {base, base_count}, right = {new, new_count};
	double *differences = memory_resize(NULL, base_count, sizeof(*differences));

	memset(estimate, 0, sizeof(*estimate));
	if (find_pairs(differences, &left, &right))
		use_pairs(estimate, differences, base_count, options->wanted);
	else if (base_count + new_count >= LEAST_DEGREES + 2)
		use_repeats(estimate, &left, &right, options->wanted);
	else
		use_assumed(estimate, &left, &right, options);
	if (options->luck != 0)
		allow_for_luck(estimate, options->luck);
	if (options->doubt > 0)
		allow_for_doubt(estimate, options->doubt);
	free(differences);
}
