/* SPDX-License-Identifier: Apache-2.0
 *
 * step_level.h: the steps of one run as one number with its error: the median, without the drift over the run.
 *
 * Some runs have two kinds of steps, about the same number of each. No step is near their median (step_level_has_gap),
 * and chance decides on which side of the gap the median falls. The steps of all runs of that comparison are then
 * evened out, so that all are compared by the same number. If the steps repeat, their alternation is removed
 * (compare/alternation.h); otherwise the mean is used.
 */
#ifndef COMPARE_STEP_LEVEL_H
#define COMPARE_STEP_LEVEL_H

#include "compare/compared_run.h"
#include "compare/estimate.h"
#include "compare/resample.h"

enum step_amount { /* the unit of work by which a step's time is divided */
	PER_STEP,
	PER_TOKEN,
	PER_SAMPLE,
	STEP_AMOUNTS
};

struct step_level {
	struct run_level run;
	bool has_trend;
	double trend;       /* over the run, as a ratio */
	double block;       /* mean length of stretches of steps that depend on each other */
	double contended;   /* share of the time in which steps or other work waited for a CPU; 0: not measured */
	double uneven_mean; /* as run.uneven, but for the mean step */
	double spread;      /* standard deviation of steps that only used a CPU or waited for one; 0 for other steps */
};

/* Returns false if the run has no steps, or if a step does not report its tokens or samples. */
bool step_level_compute(struct step_level *level, const struct compared_run *run, enum step_amount amount,
                        bool is_evened);

/* Return true if hardly any step is near the median. */
bool step_level_has_gap(const struct compared_run *run, enum step_amount amount);
bool step_level_cpu_has_gap(const struct compared_run *run);

/* Returns true if nine of ten steps have a duration without waits for a processor: their CPU time is known, and they
 * waited for nothing else. */
bool step_level_is_running(const struct compared_run *run);

/* Computes the mean of the fastest 1 % of the steps, but at least three. Other work on the machine disturbs them least.
 * `is_running` excludes waits for a processor, and needs step_level_is_running() of all compared runs. `level` must
 * come from step_level_compute(). Returns false for fewer than 30 steps. */
bool step_level_fastest(struct step_level *level, const struct compared_run *run, bool is_running);

/* Computes the median CPU time of the threads that mark the steps. Returns false if it is unknown. */
bool step_level_cpu(struct step_level *level, const struct compared_run *run, bool is_evened);

/* Returns the error of another statistic of the same steps, as a ratio. */
double step_level_error(const struct step_level *level, const struct compared_run *run, enum resample_what what);

/* Converts the error of a mean to the error of its logarithm. */
double step_level_error_of_logarithm(double error);

#endif
