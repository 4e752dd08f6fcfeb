/* SPDX-License-Identifier: Apache-2.0
 *
 * budget.h: which steps have operators, so that recording them costs a given share of the program's time. Pure: no clock, no memory, no
 * system call. Called under the lock of the steps.
 *
 * One step of each N = 1, 2, 4, ... has operators. Its place is drawn by a hash of the step's number, so no period of the program is met or
 * avoided, and processes that choose alike need no message. The sets are nested: a process with a larger N has a part of the others' steps.
 *
 *     budget_start(&budget, 0.03, 0);
 *     for each step: budget_enter(&budget, number, -1), does budget_wants(&budget, number) say it has operators?, budget_end(&budget, &step)
 *
 * What they cost is a difference of means within blocks of 8 steps (16 with N = 1). Each step of a block is as likely as any other to have
 * operators, so the difference is right on average, whatever the steps are like. The difference of a step to its two neighbours is not:
 * where a neighbour has operators, too, the step has to be left out, and that is more likely at the ends of a block of N.
 */
#ifndef RECORDER_BUDGET_H
#define RECORDER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_MOST_BITS 10 /* N = 1024 */
#define BUDGET_SKIPPED 3    /* steps at the begin, which have no operators */
#define BUDGET_INPUT_BITS 2 /* of the steps with operators one of 2^2 has their inputs, too: those of the set for 4 N */
#define BUDGET_EPOCH                                                                                                   \
	6 /* N becomes less at multiples of 2^6 steps only, and takes over what others of the machine want */

enum budget_kind {
	BUDGET_WITHOUT,
	BUDGET_WITH,
	BUDGET_OTHER, /* neither all of it with operators nor all of it without, or at somebody's wish */
};

struct budget_step {
	int64_t number;
	double ns; /* from the end of the step before it */
	enum budget_kind kind;
	double table_ns; /* BUDGET_WITH: what its operators should cost, by their number */
};

struct budget_block { /* the one that the last step lies in */
	int64_t index;
	unsigned bits, steps[2];
	double sum[2], squares[2]; /* by kind */
	bool is_begun, is_spoilt, has_giant;
};

#define BUDGET_GROUPS 8

struct budget_group { /* steps without operators */
	double count, sum, least;
};

struct budget {
	double share;       /* of the program's time */
	bool is_fixed;      /* N does not depend on what is measured */
	unsigned bits;      /* N = 2^bits */
	unsigned own;       /* the same without what others want */
	unsigned wanted;    /* own, but for what has to be paid back */
	unsigned epoch_own; /* own, as the epoch began */
	int64_t epoch;
	bool has_epoch;
	int64_t ended, with;            /* steps */
	double blocks, odd_blocks;      /* all, and those with steps of an odd length; newer ones weigh more */
	struct budget_group group;      /* the one that is being filled */
	struct budget_group run;        /* the last ones, if they are much shorter */
	double usual_ns;                /* the one in the middle of these */
	double group_ns[BUDGET_GROUPS]; /* means of the last ones before it */
	int64_t groups;
	double table_count, table_sum, table_spent;
	double count, mean, squares; /* differences of blocks, newer ones weigh more */
	double plain_of_blocks, usual_of_blocks, design, design_freedom;
	double background_ns; /* of the recorder's own thread, per step with operators */
	double asked_ns;      /* its time as it was asked for first, and the steps by then */
	int64_t asked_with;
	struct budget_block block;
};

/* What all steps with operators would cost, as a share of the program's time without. */
struct budget_cost {
	double ratio;
	double measured, low, high; /* 95 %; only with has_interval */
	bool has_interval;
	bool is_known; /* false: nothing is known, not even the number of operators */
	bool is_sure;  /* the interval is narrower than a third of it to both sides, or than 0.3 % of a step */
};

/* every 0: by the share; else N is the next power of two. */
void budget_start(struct budget *budget, double share, int64_t every);

/* Is a step one of those for N = 2^bits? With N = 1 two of each 32 steps are left out, so that the cost can be measured. */
bool budget_selects(int64_t number, unsigned bits);

/* Is this a step for which others have to be asked what they want? */
bool budget_is_epoch(const struct budget *budget, int64_t number);
/* Before budget_wants() for the same number. others: bits that other processes want, -1: nobody said any. */
void budget_enter(struct budget *budget, int64_t number, int others);
bool budget_wants(const struct budget *budget, int64_t number);

void budget_end(struct budget *budget, const struct budget_step *step);
/* CPU time of the recorder's own thread so far. */
void budget_note_background(struct budget *budget, double ns);

struct budget_cost budget_cost(const struct budget *budget);

#endif
