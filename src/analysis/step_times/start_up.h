/* SPDX-License-Identifier: Apache-2.0
 *
 * start_up.h: the steps at the begin that take far longer than the others: workers start, kernels are compiled, caches are empty.
 * Whoever judges the steady state leaves them out, and says so.
 */
#ifndef ANALYSIS_STEP_TIMES_START_UP_H
#define ANALYSIS_STEP_TIMES_START_UP_H

#include "analysis/step_times/step_times.h"

struct start_up {
	uint32_t count;          /* of steps; 0: there is none */
	int64_t first, last;     /* their numbers */
	int64_t first_steady;    /* number of the step behind them */
	double mean_ns, rest_ns; /* a step of it; the median of all others */
	bool has_phases;
	int phase; /* has_phases: that takes most of its time, and how much of a step of it */
	double phase_ns;
};

/* The job's steps at the begin that are longer than twice the median of its second half, at most a quarter of all. None is found where
 * step numbers start again, as then numbers do not say which. */
struct start_up start_up_find(const struct step_times *times);

#endif
