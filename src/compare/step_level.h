/* SPDX-License-Identifier: Apache-2.0
 *
 * step_level.h: the steps of one run as one number with its error: the median, without the drift over the run.
 *
 * Where the steps of a run that is compared are of two kinds, about as many of each, its median is where no step is (step_level_has_gap): on which side of the gap, is
 * chance. Of all the runs of that comparison, so that they are compared by the same, the steps are evened out then: what takes turns is taken out of steps that
 * repeat (compare/alternation.h); of others it is the mean.
 */
#ifndef COMPARE_STEP_LEVEL_H
#define COMPARE_STEP_LEVEL_H

#include "compare/compared_run.h"
#include "compare/estimate.h"
#include "compare/resample.h"

enum step_amount { /* what a step's time is divided by */
	PER_STEP,
	PER_TOKEN,
	PER_SAMPLE,
	STEP_AMOUNTS
};

struct step_level {
	struct run_level run;
	bool has_trend;
	double trend; /* over the run, as a ratio */
	double block; /* steps that depend on each other */
	double contended; /* share of the time in which somebody, or the steps themselves, waited for a CPU; 0: not measured */
	double uneven_mean; /* as run.uneven, of the mean step */
	double spread; /* standard deviation of steps that only used, or waited for, a CPU; 0: of others it tells nothing */
};

/* False when the run has no steps, or not all of them say how many tokens, or samples, they had. */
bool step_level_compute(struct step_level *level, const struct compared_run *run, enum step_amount amount,
                        bool is_evened);

/* Hardly any step takes what the median is. */
bool step_level_has_gap(const struct compared_run *run, enum step_amount amount);
bool step_level_cpu_has_gap(const struct compared_run *run);

/* Whether nine of ten steps have a duration without waits for a processor: their CPU time is known, and they waited for nothing else. */
bool step_level_is_running(const struct compared_run *run);

/* The mean of the fastest hundredth, of three steps at least: what they take is least disturbed by other work on the machine. `is_running`:
 * of the durations without waits for a processor, which is for runs that all have them. False when there are fewer than 30 steps. */
bool step_level_fastest(struct step_level *level, const struct compared_run *run, bool is_running);

/* The median CPU time of the threads that mark the steps. False when it is not known. */
bool step_level_cpu(struct step_level *level, const struct compared_run *run, bool is_evened);

/* Error of another number of the same steps, as a ratio. */
double step_level_error(const struct step_level *level, const struct compared_run *run, enum resample_what what);

/* Of a mean with such an error, its logarithm's. */
double step_level_error_of_logarithm(double error);

#endif
