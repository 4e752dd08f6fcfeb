/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_steps.h: the steps with complete device work, for an input that is truncated or damaged, or whose profiler
 * lost kernels. Profilers write device work after host events, so most lost events are kernels, and a device without
 * its kernels looks idle. Callers that judge how busy devices are leave such steps out and report it.
 *
 * A step is not whole in these cases:
 *
 * - One in twenty of its launches has lost its work.
 * - It has 5 % fewer launches per operator than another step with about the same number of operators, or less than
 *   half of the most of any step.
 * - The steps after it have no launches, or it is the last one and has fewer operators than the step before.
 * - More than 5 % of its time may belong to work whose duration is lost: the model's duration of such work is a guess.
 */
#ifndef ANALYSIS_STEP_TIMES_WHOLE_STEPS_H
#define ANALYSIS_STEP_TIMES_WHOLE_STEPS_H

#include "analysis/step_times/step_times.h"
#include "model/launches.h"

struct whole_steps {
	uint64_t calls,
		alone; /* calls that launch; of these without work; 0: the input is whole, or has no such calls */
	uint32_t count, lost;           /* steps of the job; of these left out */
	bool lost_work, lost_durations; /* why steps, or a trace without steps, are not whole */
	bool has_any;                   /* some steps are left, or a trace without steps is whole */
	int64_t first, last;            /* numbers in the longest run of whole steps, if some are left out */
};

struct whole_steps whole_steps_find(const struct model *model, const struct launches *launches,
                                    const struct step_times *times);

#endif
