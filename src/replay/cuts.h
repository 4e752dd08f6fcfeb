/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts.h: the costs that a replay can remove. Each cut changes a plan.
 *
 *     for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++)
 *             if (replay_cut_apply(cut, &plan)) ...it is there
 */
#ifndef REPLAY_CUTS_H
#define REPLAY_CUTS_H

#include "replay/plan.h"

enum replay_cut {
	CUT_DATA,
	CUT_SYNC,
	CUT_LAUNCH,
	CUT_HOST,
	CUT_DEVICE,
	CUT_COPY,
	CUT_ALLOC,
	CUT_OPTIMIZER,
	CUT_PRECISION,
	CUT_COUNT,
};

struct cut_kind {
	const char *name;       /* findings[].cut */
	const char *without;    /* the words of --explain: what is removed */
	const char *not_known;  /* and what a replay cannot know */
	bool is_choice;         /* it changes results or memory, so it is never waste */
	bool (*apply)(struct replay_plan *plan); /* Returns false if there is nothing to remove. */
};
extern const struct cut_kind replay_cuts[CUT_COUNT];

/* ---- private to src/replay/ ---- */

bool cut_data(struct replay_plan *plan);
bool cut_sync(struct replay_plan *plan);
bool cut_launch(struct replay_plan *plan);
bool cut_host(struct replay_plan *plan);
bool cut_device(struct replay_plan *plan);
bool cut_copy(struct replay_plan *plan);
bool cut_alloc(struct replay_plan *plan);
bool cut_optimizer(struct replay_plan *plan);
bool cut_precision(struct replay_plan *plan);

/* Sets covered_ns[item] to the part of the gap before the item that lies in the stretches of its thread: waits for
 * batches, or outermost operators. The caller frees it. */
double *gaps_in_loads(const struct replay_graph *graph);
double *gaps_in_operators(const struct replay_graph *graph);

#endif
