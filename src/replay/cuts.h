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
	CUT_WORKERS,
	CUT_HANDOVER,
	CUT_SYNC,
	CUT_LAUNCH,
	CUT_HOST,
	CUT_BETWEEN,
	CUT_NO_PHASE,
	CUT_ONCE,
	CUT_PERIODIC,
	CUT_GROWTH,
	CUT_COMM,
	CUT_RANK,
	CUT_DEVICE,
	CUT_COPY,
	CUT_ALLOC,
	CUT_OPTIMIZER,
	CUT_OPTIMIZER_ALL,
	CUT_PRECISION,
	CUT_PRECISION_HALF,
	CUT_RECOMPUTE,
	CUT_GARBAGE,
	CUT_COMPILE,
	CUT_CHECKPOINT,
	CUT_EVALUATION,
	CUT_PROCESSORS,
	CUT_COUNT,
};

struct cut_kind {
	const char *name;                        /* findings[].cut */
	const char *place;                       /* findings[].place; NULL: everywhere */
	const char *noun;                        /* what it is, for sentences: "waits for batches" */
	const char *without;                     /* the words of --explain: what is removed */
	const char *not_known;                   /* and what a replay cannot know */
	double doubt_ratio;                      /* doubt of its saving, as share of the saving; 0: CUT_DOUBT_RATIO */
	const char *verdict;                     /* what a run is when it takes a fifth of its steps; NULL: none */
	const char *host_verdict;                /* the same if no device works; NULL: the same */
	bool is_bound;                           /* it is part of the model: an upper bound, which makes no verdict */
	bool is_outside;                         /* the program is not its cause: it is removed from all others */
	bool needs_operators;                    /* what it removes is known in the steps with operators only */
	bool is_choice;                          /* it changes results or memory, so it is never waste */
	bool (*apply)(struct replay_plan *plan); /* returns false if it changed nothing; NULL: see apply_ranks */
	bool (*apply_ranks)(struct replay_plan *plans, uint32_t count); /* the same, for all ranks together */
};
extern const struct cut_kind replay_cuts[CUT_COUNT];

/* Returns the cut of that name and place (NULL: everywhere); CUT_COUNT: there is none. */
enum replay_cut replay_cut_find(const char *name, const char *place);

/* Returns what a run is when the cut takes a fifth of its steps; NULL: none. */
static inline const char *replay_cut_verdict(enum replay_cut cut, bool is_of_device)
{
	const struct cut_kind *kind = &replay_cuts[cut];

	return kind->host_verdict && !is_of_device ? kind->host_verdict : kind->verdict;
}

/* ---- private to src/replay/ ---- */

bool cut_data(struct replay_plan *plan);
bool cut_workers(struct replay_plan *plan);
bool cut_handover(struct replay_plan *plan);
bool cut_sync(struct replay_plan *plan);
bool cut_launch(struct replay_plan *plan);
bool cut_host(struct replay_plan *plans, uint32_t count);
bool cut_between(struct replay_plan *plans, uint32_t count);
bool cut_no_phase(struct replay_plan *plan);
bool cut_once(struct replay_plan *plan);
bool cut_periodic(struct replay_plan *plan);
bool cut_growth(struct replay_plan *plan);
bool cut_comm(struct replay_plan *plan);
bool cut_rank(struct replay_plan *plans, uint32_t count);
bool cut_recompute(struct replay_plan *plan);
bool cut_device(struct replay_plan *plan);
bool cut_copy(struct replay_plan *plan);
bool cut_alloc(struct replay_plan *plan);
bool cut_optimizer(struct replay_plan *plan);
bool cut_optimizer_all(struct replay_plan *plan);
bool cut_precision(struct replay_plan *plan);
bool cut_precision_half(struct replay_plan *plan);
bool cut_garbage(struct replay_plan *plan);
bool cut_compile(struct replay_plan *plan);
bool cut_checkpoint(struct replay_plan *plan);
bool cut_evaluation(struct replay_plan *plan);
bool cut_processors(struct replay_plan *plan);
/* Returns, by step, what share of the gaps its thread waits for a processor. The caller frees it. */
double *replay_delay_shares(const struct replay_graph *graph);
/* Returns true if these waits make a step longer by their whole length. Of a thread that waits for workers or other ranks a
 * part of them is hidden. */
static inline bool replay_is_quiet_known(const struct replay_graph *graph)
{
	return !graph->recording.has_meetings && !graph->recording.has_workers;
}

/* Returns true if all ranks have the same items. */
bool replay_ranks_are_alike(const struct replay_plan *plans, uint32_t count);

#endif
