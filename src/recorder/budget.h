/* SPDX-License-Identifier: Apache-2.0
 *
 * budget.h: chooses the steps that record operators, so that recording costs a given share of the program's time. Pure:
 * no clock, no allocation, no system call. Callers hold the lock of steps.
 *
 * One step of every N records operators, with N = 1, 2, 4, ... A hash of the step's number chooses it, independent of
 * any period in the program. Processes with equal N choose the same steps without messages. The sets are nested: the
 * steps of a larger N are a subset of the steps of a smaller N.
 *
 *     budget_start(&budget, 0.03, 0);
 *     for each step:
 *         budget_enter(&budget, number, -1);
 *         record operators if budget_wants(&budget, number);
 *         budget_end(&budget, &step);
 *
 * The cost is the difference of the mean durations of steps with and without operators within a block of 8 steps (16
 * with N = 1). Every step of a block is equally likely to have operators, so the difference is unbiased for any
 * sequence of steps. A comparison of a step with its two neighbours would be biased. It would leave out steps with a
 * neighbour that has operators too, which is more likely at the ends of a block of N.
 */
#ifndef RECORDER_BUDGET_H
#define RECORDER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_MOST_BITS 10 /* N = 1024 */
#define BUDGET_SKIPPED 3    /* first steps, which have no operators */
#define BUDGET_INPUT_BITS 2 /* one in 2^2 of the steps with operators also has inputs: the set for 4 N */
#define BUDGET_EPOCH 6      /* N falls, and adopts other processes' wishes, only at multiples of 2^6 steps */

enum budget_kind {
	BUDGET_WITHOUT,
	BUDGET_WITH,
	BUDGET_OTHER, /* partly with operators, incomplete, or recorded for a profiler in the program */
};

struct budget_step {
	int64_t number;
	double ns; /* from the end of the previous step */
	enum budget_kind kind;
	double table_ns; /* BUDGET_WITH: expected cost of its operators, from their number */
};

struct budget_block { /* the block that contains the last step */
	int64_t index;
	unsigned bits, steps[2];
	double sum[2], squares[2]; /* indexed by kind */
	bool is_begun, is_spoilt, has_giant;
};

#define BUDGET_GROUPS 8

struct budget_group { /* steps without operators */
	double count, sum, least;
};

struct budget {
	double share;       /* allowed cost, as a share of the program's time */
	bool is_fixed;      /* N does not depend on measurements */
	unsigned bits;      /* N = 2^bits */
	unsigned own;       /* bits without the wishes of other processes */
	unsigned wanted;    /* `own` without the extra bit that pays back a debt */
	unsigned epoch_own; /* `own` at the start of the epoch */
	int64_t epoch;
	bool has_epoch;
	int64_t ended, with;            /* steps that ended, and those of them with operators */
	double blocks, odd_blocks;      /* all blocks, and those with a giant step; newer ones weigh more */
	struct budget_group group;      /* the group that is being filled */
	struct budget_group run;        /* the last steps in a row that are much shorter than usual */
	double usual_ns;                /* median of group_ns */
	double group_ns[BUDGET_GROUPS]; /* means of the last full groups */
	int64_t groups;
	double table_count, table_sum, table_spent;
	double count, mean, squares; /* differences of blocks; newer ones weigh more */
	double plain_of_blocks, usual_of_blocks, design, design_freedom;
	double background_ns; /* CPU time of the recorder's thread per step with operators */
	double asked_ns;      /* first reading of that CPU time, and the steps with operators by then */
	int64_t asked_with;
	struct budget_block block;
};

/* Cost of recording operators in all steps, as a share of the program's time without operators. */
struct budget_cost {
	double ratio;
	double measured, low, high; /* 95 %; only with has_interval */
	bool has_interval;
	bool is_known; /* false: nothing is known, not even the number of operators */
	bool is_sure;  /* the interval is at most +-1/3 of `measured`, or +-0.3 % of a step */
};

/* If `every` is 0, the share decides N. Otherwise N is fixed: `every` rounded up to a power of two. */
void budget_start(struct budget *budget, double share, int64_t every);

/* Returns true if the step is in the set for N = 2^bits. With N = 1, 2 of every 32 steps are left out, so that the cost
 * can be measured. */
bool budget_selects(int64_t number, unsigned bits);

/* Returns true if the caller has to ask for the wishes of other processes before this step. */
bool budget_is_epoch(const struct budget *budget, int64_t number);
/* Call before budget_wants() for the same number. `others`: bits that other processes want; -1: unknown. */
void budget_enter(struct budget *budget, int64_t number, int others);
bool budget_wants(const struct budget *budget, int64_t number);

void budget_end(struct budget *budget, const struct budget_step *step);
/* Notes the CPU time of the recorder's thread so far. */
void budget_note_background(struct budget *budget, double ns);

struct budget_cost budget_cost(const struct budget *budget);

#endif
