/* SPDX-License-Identifier: Apache-2.0
 *
 * estimate.h: how much larger the values of one side are than those of the other, how sure that is, and how many more would
 * settle it. The values are one per run, as logarithms, so that differences are ratios.
 *
 *     struct estimate estimate;
 *     estimate_compute(&estimate, base, base_count, new, new_count, &options);
 *
 * Which way is taken depends on what there is, not on what comes out:
 *
 *     pairs     the runs of the sides were made in turns (4 pairs or more): what the machine did at that time affects both of a
 *               pair, so the differences within pairs are looked at. Student's t; from 12 pairs Wilcoxon's signed ranks.
 *     repeats   two more runs than sides: Student's t with the scatter of both sides together; from 7 runs a side
 *               Wilcoxon's rank sums, whose interval (Hodges and Lehmann) single odd runs cannot move.
 *     assumed   fewer: nothing tells how much runs differ from each other. The steps' own error counts, and a scatter of runs is
 *               assumed: `assumed_noise`, and more where the runs themselves were uneven or their machine was contended
 *               (compare/step_level.c says how much).
 *
 * There are two intervals, because there are two questions. Whether there is a change asks the 95 % interval: it leaves out 0. Whether there is none
 * that matters is asked by two tests, one for either direction, each at 5 % and by itself, as only one of the two can be wrong: that the 90 % interval
 * lies within the bounds says the same (D. J. Schuirmann, A comparison of the two one-sided tests procedure and the power approach for assessing the
 * equivalence of average bioavailability, 1987). Either answer is wrong in 5 % of the cases at most, and one number of runs serves both.
 */
#ifndef COMPARE_ESTIMATE_H
#define COMPARE_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SURE                                                                                                           \
	0.05 /* how often a change is found where there is none: what its interval leaves out, both ends together */
#define SURE_OF_SAME 0.1 /* the same of the interval that shows that there is none */

struct run_level {        /* one value of one run */
	double level;     /* logarithm */
	double error;     /* its standard error, from the run's own steps; 0: none is known */
	bool is_few;      /* steps: the error is assumed */
	double uneven;    /* what the differences between steps make runs differ by, beyond that error */
	double contended; /* what other work on the machine makes them differ by; 0: nothing, or not measured */
	size_t steps;
	bool has_created;
	int64_t created_ns;
};

struct estimate_options {
	double assumed_noise;
	double wanted; /* the change that `needed` is to tell from none, of logarithms */
	double luck; /* so far the base may lie below its mean, as it was chosen for that (negative: above): estimate_luck() */
	double doubt; /* half a 95 % interval of an error that both sides have beside: the intervals are so much wider */
};

enum estimate_way {
	ESTIMATE_ASSUMED,
	ESTIMATE_REPEATS,
	ESTIMATE_PAIRS
};

struct estimate {
	enum estimate_way way;
	bool has_ranks;               /* Wilcoxon's, not Student's */
	double change;                /* new minus base, of logarithms */
	double low, high;             /* 95 % interval of it: is there a change? */
	double same_low, same_high;   /* 90 % interval: is there none that matters? */
	double outside;               /* p value of no change */
	double noise;                 /* standard deviation from run to run */
	bool is_uneven, is_contended; /* the assumed noise is larger because of that */
	bool is_few;
	bool is_single; /* a run of one step: nothing tells how much steps differ */
	size_t needed_runs; /* a side, in turns when they were: a change of `wanted` is found, and none seen to be none, in 19 of 20 cases each */
	size_t needed_steps; /* a run, when that is enough; 0: more steps do not help */
};

/* How far the lowest of `count` values is expected below their mean (Blom 1958), of normal ones with this deviation. A single run that was chosen for
 * being the fastest of many would be that much slower when it was made again. The intervals begin so much lower: it is not known how much of
 * it was luck. */
double estimate_luck(size_t count, double noise);

/* Counts of at least 1. */
void estimate_compute(struct estimate *estimate, const struct run_level *base, size_t base_count,
                      const struct run_level *new, size_t new_count, const struct estimate_options *options);

#endif
