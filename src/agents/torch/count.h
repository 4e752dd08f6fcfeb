/* SPDX-License-Identifier: Apache-2.0
 *
 * count.h: counts the ended steps of a program that marks none, while it runs: schedules open and close by this count.
 * The report finds steps with the whole run at hand (src/steps/infer_steps.h). Here the end of a step must be known
 * when it comes.
 *
 * - An optimizer's call ends a step if a call of the same optimizer ended one before. The first step ends when all
 *   optimizers that were made have been called. If an optimizer is called again before the end of its step was seen, a
 *   new step starts. That end is reported late, and the optimizer of the last call is remembered as the one that ends
 *   steps.
 *
 * - An optimizer may be called after the end of the step, with another backward. It takes over if it was made since
 *   the previous call, has a closure, or a batch was asked for. The optimizers that were made with it take over, too.
 *   Otherwise the call may still belong to the step that has ended. If the optimizer is then called again alone, the
 *   earlier call was a step, which is reported late.
 *
 * - A gradient scaler's update, or gradients thrown away for another batch, end a step without an optimizer call. In
 *   a program without batches, thrown-away gradients end a step only while they are fewer than half of the updates.
 *
 * - Without any optimizer, a step ends at the first operator after a backward that accumulated gradients.
 *
 * The count never drifts, but its first steps may end late or early within the step.
 *
 * Pure: one caller at a time, no clock, no allocation. Functions return the number of steps that have just ended.
 */
#ifndef AGENTS_TORCH_COUNT_H
#define AGENTS_TORCH_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#define COUNT_OPTIMIZERS 1024u /* further optimizers are treated as unknown */

struct step_count { /* starts as {0} */
	struct {
		uint64_t identity; /* 0: free */
		uint32_t group;    /* number of the last group it was called in, from 1; 0: no group */
		bool ends;         /* its call ended a step */
	} optimizers[COUNT_OPTIMIZERS];
	uint32_t made, called;        /* number of optimizers made, and of different optimizers called */
	uint32_t inherited;           /* optimizers of the parent process, in a child that makes none itself */
	uint32_t made_since;          /* made since the last call */
	uint32_t expected;            /* calls to come in the group, if another optimizer took over; 0: unknown */
	uint32_t updates, thrown;     /* calls after a backward; backwards whose gradients were zeroed before a call */
	uint32_t group;               /* number of the current group: a run of calls without a repeated optimizer */
	uint32_t last;                /* 1 + slot of the group's last call; 0: unknown */
	bool has_group;               /* a call was seen */
	bool is_hooked;               /* a backward calls optimizers */
	bool is_told;                 /* the end of the group's step was reported */
	bool is_over;                 /* no further call belongs to the group */
	bool is_of_batch;             /* a batch was asked for before the group */
	bool may_be_step;             /* the group's last call came after the end of the step, on new gradients */
	bool has_batches;             /* the program asks for batches */
	bool has_backward;            /* a backward that trains, since the last call */
	bool has_data;                /* a batch was asked for since the last call */
	bool has_next_data, has_zero; /* since that backward: a batch was asked for; gradients were zeroed */
};

void count_made(struct step_count *count);   /* an optimizer object was made */
void count_forked(struct step_count *count); /* in the forked child */
void count_hooked(struct step_count *count); /* an optimizer was called inside a backward, which is then the step */

struct counted_call {
	uint64_t identity; /* 0: unknown */
	bool is_new;       /* made since the previous call; it may have the number of one that is gone */
	bool is_inside;    /* inside another call */
	bool is_closure;   /* a backward that trains ran inside the call */
};

unsigned count_call(struct step_count *count, const struct counted_call *call); /* at the end of the call */
unsigned count_scaler(struct step_count *count);
void count_zero_grad(struct step_count *count);
/* Call when a batch is asked for, or an operator is called: a backward before it is over. */
unsigned count_batch(struct step_count *count);
unsigned count_operator(struct step_count *count);
/* Call when a backward reaches its first gradient. */
unsigned count_backward(struct step_count *count);
/* Returns true if there are optimizers. Otherwise backward passes are counted. */
bool count_has_optimizers(const struct step_count *count);

#endif
