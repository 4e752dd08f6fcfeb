/* SPDX-License-Identifier: Apache-2.0
 *
 * step_budget.h: feeds the budget (budget.h) at each end of a step and says whether the next one has operators. Under the lock of the steps.
 */
#ifndef RECORDER_STEP_BUDGET_H
#define RECORDER_STEP_BUDGET_H

#include "recorder/budget.h"
#include "recorder/host_share.h"
#include "recorder/options.h"
#include "recorder/schedule.h"

struct step_budget {
	struct budget rule;
	struct host_share share;
	bool is_on; /* some steps have no operators, by their cost */
	bool is_whole; /* all steps have operators: what is alive can only be told of allocations and releases without a gap */
	bool is_paused;        /* so has this one; before the first step nothing is left out */
	bool has_inputs;       /* where it has operators, they have their inputs, if these are recorded at all */
	bool has_begun;        /* the step before it has ended, or it has been announced */
	bool is_mixed;         /* its number was another one than expected */
	int64_t number;        /* its own, as expected */
	uint64_t ticks, words; /* as it began; words: only while it is recorded */
	uint32_t windows;
	int told;                               /* bits that are in the recording; -1: none yet */
	int64_t steps_of[BUDGET_MOST_BITS + 1]; /* by their bits */
	unsigned told_least, told_most;         /* the range of them that is in the recording */
};

/* A worker goes on as its parent did when it forked. */
void step_budget_start(struct step_budget *budget, const struct record_options *options, bool is_worker);
/* Forked child; end of the recording. */
void step_budget_forget(struct step_budget *budget);
void step_budget_stop(struct step_budget *budget, const char *directory);

/* The step has ended. `is_odd`: it was no complete one. */
void step_budget_end(struct step_budget *budget, int64_t number, bool is_odd);
/* The next one will have this number, as it seems, or has it. */
void step_budget_choose(struct step_budget *budget, int64_t number);

/* What is said of it. */
void step_budget_tell(const struct record_options *options);
void step_budget_describe(struct step_budget *budget, struct schedule_progress *progress);

#endif
