/* SPDX-License-Identifier: Apache-2.0
 *
 * start_up.h: the steps at the start that take far longer than the others: workers start, kernels are compiled, caches
 * are empty. Callers that judge the steady state leave these steps out and report it.
 */
#ifndef ANALYSIS_STEP_TIMES_START_UP_H
#define ANALYSIS_STEP_TIMES_START_UP_H

#include "analysis/step_times/step_times.h"

#define START_UP_TIMES 2 /* the median of the second half: longer steps are start-up */

struct start_up {
	uint32_t count;          /* number of steps; 0: no start-up */
	int64_t first, last;     /* their numbers */
	int64_t first_steady;    /* number of the first step after them */
	double mean_ns, rest_ns; /* mean of these steps; median of all others */
	bool has_phases;
	int phase; /* if has_phases: the phase with most of their time, and its mean time per step */
	double phase_ns;
};

/* Finds the job's first steps that are longer than twice the median of its second half, at most a quarter of all.
 * Finds none if step numbers start again, because numbers then do not identify steps. */
struct start_up start_up_find(const struct step_times *times);

#endif
