/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_replay.h: the steps of a run without each cost, as a comparison needs them: numbers only, without the trace.
 *
 *     compared_read_replay(&run, &report); // adds values and parts to the run, so the history keeps them too
 *     struct compared_replay replay = compared_replay_of(&run);
 *     replay.cuts[CUT_DATA].saving_ns
 *
 * Times are ns of a mean step.
 */
#ifndef COMPARE_CUTS_COMPARED_REPLAY_H
#define COMPARE_CUTS_COMPARED_REPLAY_H

#include "compare/compared_run.h"
#include "replay/cuts.h"

#include <stdbool.h>

struct compared_cut {
	bool is_there;                     /* the run has something to remove */
	double saving_ns, low_ns, high_ns; /* without this cost alone, with the 95 % interval */
	/* The saving after the costs before it in the order of parts are removed. The parts of all cuts sum to the saving
	 * of all cuts at once, so a cost within two cuts counts once. */
	double part_ns;
};

struct compared_replay {
	bool is_there;
	const char *problem;          /* why it is not, in the run; NULL: unknown, the run has no events */
	double recorded_ns;           /* the replayed step with nothing removed */
	double step_ns;               /* without the profiler's own cost: savings are parts of this step */
	struct compared_cut profiler; /* that cost */
	struct compared_cut cuts[CUT_COUNT];
};

/* Replays the steps that `stepscope diagnose` replays. */
void compared_read_replay(struct compared_run *run, const struct report *report);

struct compared_replay compared_replay_of(const struct compared_run *run);

#endif
