/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h: runs a graph again with the changes of a plan. Everything starts at the latest time of what it waits for. The
 * window is run twice, and the second turn counts, so the lead of the host at the begin of the window does not matter.
 *
 *     struct replay_run run;
 *     replay_run(&run, &plan);         // or replay_run_ranks()
 *     run.step_ns ... run.ends_ns[step]
 *     replay_run_release(&run);
 */
#ifndef REPLAY_RUN_H
#define REPLAY_RUN_H

#include "replay/plan.h"

struct replay_run {
	double step_ns;   /* mean step of the second turn */
	double window_ns; /* mean step of the first turn, from the end of its first step on */
	double *ends_ns;  /* ends of the steps in both turns: of the device's, or of the host's without a device */
	uint32_t step_count;
	bool is_of_device;
};

void replay_run(struct replay_run *run, const struct replay_plan *plan);
/* Runs all ranks of a job together: collectives end together. Returns false, with nothing to release, if the ranks do
 * not have the same collectives. */
bool replay_run_ranks(struct replay_run *runs, const struct replay_plan *plans, uint32_t count);
void replay_run_release(struct replay_run *run);

#endif
