/* SPDX-License-Identifier: Apache-2.0
 *
 * estimate.h: how much larger the values of one side are than those of the other, how certain that is, and how many
 * more values would settle it. There is one value per run, as a logarithm, so that differences are ratios.
 *
 *     struct estimate estimate;
 *     estimate_compute(&estimate, base, base_count, new, new_count, &options);
 *
 * The method depends on the available runs, not on the result:
 *
 *     pairs     the runs of the sides were made in turns (4 pairs or more): the machine affects both runs of a pair,
 *               so the differences within pairs are tested. Student's t; from 12 pairs Wilcoxon's signed ranks.
 *     repeats   two more runs than sides: Student's t with the pooled scatter of both sides; from 7 runs a side
 *               Wilcoxon's rank sums, whose interval (Hodges and Lehmann) does not move with single odd runs.
 *     assumed   fewer runs: the scatter from run to run is unknown. The error of the steps counts, and a scatter of
 *               runs is assumed: `assumed_noise`, and more if the runs were uneven or their machine was contended
 *               (compare/step_level.c says how much).
 *
 * There are two intervals for two questions. There is a change if the 95 % interval excludes 0. Two tests ask whether
 * there is no change that matters, one for either direction. Each is at 5 % alone, because only one of them can be
 * wrong.
 *
 * The two tests agree if the 90 % interval is within the bounds (D. J. Schuirmann, A comparison of the two one-sided
 * tests procedure and the power approach for assessing the equivalence of average bioavailability, 1987). Either
 * answer is wrong in at most 5 % of the cases, and one number of runs serves both.
 */
#ifndef COMPARE_ESTIMATE_H
#define COMPARE_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SURE 0.05        /* share of cases in which a change is found although there is none, both ends together */
#define SURE_OF_SAME 0.1 /* as SURE, for the 90 % interval, which shows that there is no change */

struct run_level {        /* one value of one run */
	double level;     /* logarithm */
	double error;     /* its standard error, from the run's own steps; 0: unknown */
	bool is_few;      /* the run has few steps, so its error is assumed */
	double uneven;    /* expected scatter of runs because their steps are uneven, beyond that error */
	double contended; /* expected scatter of runs because of other work on the machine; 0: none, or not measured */
	size_t steps;
	bool has_created;
	int64_t created_ns;
};

struct estimate_options {
	double assumed_noise;
	double wanted; /* `needed` is for telling a change of this size from none, in logarithms */
	double luck;   /* how far the base may be below its mean by selection (negative: above): estimate_luck() */
	double doubt;  /* half a 95 % interval of an error that both sides share; it widens the intervals */
};

enum estimate_way {
	ESTIMATE_ASSUMED,
	ESTIMATE_REPEATS,
	ESTIMATE_PAIRS
};

struct estimate {
	enum estimate_way way;
	bool has_ranks;               /* Wilcoxon's tests, not Student's */
	double change;                /* new minus base, in logarithms */
	double low, high;             /* 95 % interval of the change: is there a change? */
	double same_low, same_high;   /* 90 % interval: is there no change that matters? */
	double outside;               /* p value of no change */
	double noise;                 /* standard deviation from run to run */
	bool is_uneven, is_contended; /* why the assumed noise is larger */
	bool is_few;
	bool is_single; /* a run has one step, so the scatter of steps is unknown */
	/* runs per side (in turns if these were made in turns) that find `wanted`, and its absence, in 19 of 20 cases
	 * each */
	size_t needed_runs;
	size_t needed_steps; /* per run, if longer runs suffice; 0: more steps do not help */
};

/* Returns how far the lowest of `count` normal values with this deviation is expected below their mean (Blom 1958). If
 * a single run was chosen as the fastest of many, it would be that much slower if it were made again. The intervals
 * start that much lower, because it is unknown how much of its speed was luck. */
double estimate_luck(size_t count, double noise);

/* Needs at least one run per side. */
void estimate_compute(struct estimate *estimate, const struct run_level *base, size_t base_count,
                      const struct run_level *new, size_t new_count, const struct estimate_options *options);

#endif
