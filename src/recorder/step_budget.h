/* SPDX-License-Identifier: Apache-2.0
 *
 * step_budget.h: feeds the budget (budget.h) at each end of a step and decides if the next step has operators. Callers
 * hold the lock of steps.
 */
#ifndef RECORDER_STEP_BUDGET_H
#define RECORDER_STEP_BUDGET_H

#include "recorder/budget.h"
#include "recorder/host_share.h"
#include "recorder/options.h"
#include "recorder/schedule.h"

/* A step, with what step_budget_choose() decided for it. */
struct chosen_step {
	bool is_paused;        /* it has no operators; before the first step nothing is left out */
	bool has_inputs;       /* if it has operators, they have inputs, if inputs are recorded at all */
	bool has_begun;        /* the previous step has ended, or this one was announced */
	bool is_mixed;         /* its number differs from the expected one, and so does the choice for it */
	int64_t number;        /* expected number */
	uint64_t ticks, words; /* ticks and words at its start; words: only if operators are recorded */
	uint32_t windows;      /* number of windows that had been opened at its start */
};

struct step_budget {
	struct budget rule;
	struct host_share share;
	bool is_on; /* the budget may leave the operators of some steps out */
	/* All steps have operators, because live memory is known only from allocations and releases without a gap. */
	bool is_whole;
	struct chosen_step step;                /* the step that runs now */
	int told;                               /* bits in the recording; -1: none yet */
	int64_t steps_of[BUDGET_MOST_BITS + 1]; /* number of steps, indexed by bits */
	unsigned told_least, told_most;         /* range of bits in the recording */
};

/* Starts the budget. A worker continues in the state of its parent at the fork. */
void step_budget_start(struct step_budget *budget, const struct record_options *options, bool is_worker);
/* In a forked child, and at the end of the recording. */
void step_budget_forget(struct step_budget *budget);
void step_budget_stop(struct step_budget *budget, const char *directory);

/* Notes the end of a step. `is_odd`: it was not a complete step. */
void step_budget_end(struct step_budget *budget, int64_t number, bool is_odd);
/* Chooses for the next step, whose number is, or is expected to be, `number`. */
void step_budget_choose(struct step_budget *budget, int64_t number);

/* Record and describe the budget, for the facts and for the closing line. */
void step_budget_tell(const struct record_options *options);
void step_budget_describe(struct step_budget *budget, struct schedule_progress *progress);

#endif
