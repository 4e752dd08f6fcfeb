/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_replay.h: the steps of a run without each cost, as a comparison needs them: numbers only, without the trace.
 *
 *     compared_replay_read(&run.replay, &report, &run.arena);
 *     run.replay.cuts[CUT_DATA].saving_ns
 *
 * Times are ns of a mean step. A run without a replay is all zeros.
 */
#ifndef COMPARE_CUTS_COMPARED_REPLAY_H
#define COMPARE_CUTS_COMPARED_REPLAY_H

#include "analysis/report.h"
#include "base/arena.h"
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
	const char *problem;          /* why it is not; NULL: the run has no events */
	double recorded_ns;           /* the replayed step with nothing removed */
	struct compared_cut profiler; /* the profiler's own cost in it */
	double step_ns;               /* without that cost: savings are parts of this step */
	struct compared_cut cuts[CUT_COUNT];
};

/* Replays the steps that `stepscope diagnose` replays. The problem is copied to the arena. */
void compared_replay_read(struct compared_replay *replay, const struct report *report, struct arena *arena);

#endif
