/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h: what a cut changes in a graph: host time, calls that are gone, durations of works, waits that do not wait.
 * Cuts can follow each other on one plan.
 *
 *     struct replay_plan plan;
 *     replay_plan_init(&plan, graph);
 *     if (cut_data(&plan))
 *             ...
 *     replay_plan_reset(&plan); // nothing removed
 *     replay_plan_release(&plan);
 */
#ifndef REPLAY_PLAN_H
#define REPLAY_PLAN_H

#include "replay/graph.h"

struct plan_item { /* as the members of struct replay_item with the same names */
	float gap_ns, own_ns, after_ns;
	float rows, triton, hidden;
	bool is_gone;      /* neither the call nor its work */
	bool is_free;      /* it does not wait */
	bool is_unblocked; /* a blocking copy does not block */
};

struct plan_work { /* as the members of struct replay_work with the same names */
	float dur_ns, launch_ns, stream_ns;
};

struct replay_plan {
	const struct replay_graph *graph;
	struct plan_item *items;
	struct plan_work *works;
	double *works_ns;   /* scratch of run.c: ends of works */
	double *batches_ns; /* and of batches, by item */
	bool shows_late;    /* late batches keep the devices waiting as they did: no lead of the host hides them */
	double more_ratio;  /* of a step: by that much the saving may be larger than the cut shows */
	bool is_alone;      /* collectives do not wait for other ranks */
	struct replay_stretches *removed; /* by thread: stretches that are gone */
};

void replay_plan_init(struct replay_plan *plan, const struct replay_graph *graph);
void replay_plan_reset(struct replay_plan *plan);
void replay_plan_release(struct replay_plan *plan);
/* Gives all edges their usual lags: the time that the graph explains without what was measured at the edges. */
void replay_plan_usual(struct replay_plan *plan);

/* Returns, by step, the sum of the gaps of the steps' thread, from the end of the step before. The caller frees it. */
double *replay_step_gaps(const struct replay_plan *plan);

/* Stretches of a host thread that vanish. */
void plan_stretches_add(struct replay_stretches *stretches, const struct replay_plan *plan, double start_ns,
                        double end_ns);
/* Removes the stretches of the thread: gaps become shorter; calls in them are gone with their works. The stretches need
 * no order; those of several cuts may overlap. It releases them. Returns false if there are none. */
bool replay_plan_remove(struct replay_plan *plan, uint32_t thread, struct replay_stretches *stretches);

/* Our own recordings may have operators in some steps only. A cut that needs them changes these steps. This carries the
 * change to the steps without operators: at each place of a step the mean of what was removed there, in the same share of
 * its time. gaps_ns: the gaps of all items before the cut. */
void replay_plan_carry(struct replay_plan *plan, const float *gaps_ns);

#endif
