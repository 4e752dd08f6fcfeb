/* SPDX-License-Identifier: Apache-2.0
 *
 * what_if.h: the step without each cost: replays of all ranks of a job together, one for each cut.
 *
 *     struct what_if what_if;
 *     what_if_make(&what_if, model, launches, windows, count, has_profiler);
 *     what_if.cuts[CUT_DATA].saving_ratio
 *     what_if_together(&what_if, is_cut, &together); // of several cuts at once
 *     what_if_release(&what_if);
 *
 * The model must outlive it.
 */
#ifndef REPLAY_WHAT_IF_H
#define REPLAY_WHAT_IF_H

#include "replay/cuts.h"

/* What the problem of a replay says of the trace. */
enum what_if_doubt {
	TRACE_IS_SOUND,
	TRACE_IS_UNSOUND,     /* clocks or ids contradict each other */
	TRACE_IS_UNEXPLAINED, /* the replay of the whole trace does not give its steps */
};

struct what_if_cut {
	bool is_there;                  /* it has something to remove */
	double step_ns;                 /* the step without it */
	double saving_ns, saving_ratio; /* of the step with it: step_ns + saving_ns */
	double low_ratio, high_ratio;   /* 95 % interval of the saving */
};

struct replays; /* private */

struct what_if {
	struct replays *replays;
	const char *problem;      /* why nothing can be told; NULL: the rest holds */
	enum what_if_doubt doubt; /* of the trace, if there is a problem */
	uint32_t ranks, step_count;
	bool is_of_device;
	double recorded_ns;   /* the replayed step with nothing removed */
	double measured_ns;   /* the measured step */
	double usual_ratio;   /* step with usual lags on all edges, over the measured step, minus 1 */
	double against_ratio; /* edges that end before what they wait for, of all edges */
	bool has_profiler;    /* a profiler wrote the trace: its cost is taken out of all that follows */
	bool has_cost;        /* the same, or operators of our own recording have a cost that is taken out */
	bool is_quiet;        /* waits for a processor are removed from all that follows */
	double step_ns;       /* the step without the profiler, and without waits for processors */
	double low_ns, high_ns;
	struct what_if_cut cuts[CUT_COUNT];
};

/* windows: one for each rank. has_profiler: the trace was written by a profiler whose cost its rows carry. */
void what_if_make(struct what_if *what_if, const struct model *model, const struct launches *launches,
                  const struct replay_window *windows, uint32_t count, bool has_profiler);
void what_if_release(struct what_if *what_if);
/* Returns the graph of a rank. There is no problem. */
const struct replay_graph *what_if_graph(const struct what_if *what_if, uint32_t rank);
/* Replays the run without all these costs at once. There is no problem. */
void what_if_together(struct what_if *what_if, const bool is_cut[CUT_COUNT], struct what_if_cut *together);

#endif
