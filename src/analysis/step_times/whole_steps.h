/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_steps.h: of an input that is cut off or damaged, or whose profiler lost kernels: the steps of which all is there that devices did. Profilers write what devices did
 * behind what the host did, so what is lost is mostly kernels, and a device that has lost its kernels looks idle. Whoever judges how busy
 * devices are leaves such steps out, and says so.
 *
 * A step is not whole where one in twenty of its launches has lost its work; where it has one in twenty fewer launches for its operators than
 * another step of about as many operators, or less than half of those that any step has; and where those behind it have none, or it is the last
 * one and has fewer operators than the one before. Nor is it where more than one in twenty of its time may be of work whose duration is lost:
 * what the model has in its place is a guess.
 */
#ifndef ANALYSIS_STEP_TIMES_WHOLE_STEPS_H
#define ANALYSIS_STEP_TIMES_WHOLE_STEPS_H

#include "analysis/step_times/step_times.h"
#include "model/launches.h"

struct whole_steps {
	uint64_t calls,
		alone; /* that launch, of these those whose work is not there; 0: the input is whole, or has no calls that launch */
	uint32_t count, lost;           /* steps of the job; of these those that are left out */
	bool lost_work, lost_durations; /* why steps, or all without steps, are not whole */
	bool has_any;                   /* of the steps some are left, or without steps the trace is whole */
	int64_t first,
		last; /* numbers of those that are left, where some are left out: the longest row that is whole */
};

struct whole_steps whole_steps_find(const struct model *model, const struct launches *launches,
                                    const struct step_times *times);

#endif
