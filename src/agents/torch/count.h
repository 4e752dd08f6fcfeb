/* SPDX-License-Identifier: Apache-2.0
 *
 * count.h: how many steps of a program that marks none have ended, while it runs: schedules open and close on that. The report finds
 * steps with the whole run before it (src/model/infer_steps.h); here the end of a step must be known when it comes.
 *
 * - An optimizer's call ends a step when the same one ended a step before; the first time, when all optimizers that were made have been
 *   called. An optimizer that comes again before its step was seen to end begins another one: that end is told late, and who ended it
 *   is remembered. So the count never drifts, but its first steps may end late or early within the step.
 * - One that was made since the call before, or has a closure, and has a backward of its own, takes over, with those that were made with it.
 *   Without either it may be called once more in the step that has ended: when it comes again alone, that was a step, and is told late.
 * - A gradient scaler's update, or gradients thrown away for another batch, end a step without a call. So they do without batches, where
 *   most updates so far came behind none that were.
 * - Without any optimizer a step ends at the first operator behind a backward that accumulated gradients.
 *
 * Pure: one caller at a time, no clock, no allocation. Functions return how many steps have just ended.
 */
#ifndef AGENTS_TORCH_COUNT_H
#define AGENTS_TORCH_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#define COUNT_OPTIMIZERS 1024u /* more are taken for one that is not known */

struct step_count { /* starts as {0} */
	struct {
		uint64_t identity; /* 0: free */
		uint32_t group;    /* 1 + the last one it was called in */
		bool ends;         /* its call ended a step */
	} optimizers[COUNT_OPTIMIZERS];
	uint32_t made, called;        /* optimizers; called: different ones */
	uint32_t inherited;           /* of its parent, in a child that makes none itself */
	uint32_t made_since;          /* the last call */
	uint32_t expected;            /* calls of the group to come, when another took over; 0: not known */
	uint32_t updates, thrown;     /* calls behind a backward; backwards whose gradients were zeroed before one */
	uint32_t group;               /* run of calls in which none comes twice */
	uint32_t last;                /* 1 + slot of its last call; 0: none */
	bool has_group;               /* a call was seen */
	bool is_hooked;               /* optimizers are called by a backward */
	bool is_told;                 /* the end of the group's step */
	bool is_over;                 /* no call belongs to it any more */
	bool is_of_batch;             /* a batch was asked for before it */
	bool may_be_step;             /* its last call came behind the end, on gradients of its own */
	bool has_batches;             /* the program has any */
	bool has_backward;            /* one that trains, since the last call */
	bool has_data;                /* a batch since the last call */
	bool has_next_data, has_zero; /* behind that backward */
};

void count_made(struct step_count *count);   /* an optimizer object */
void count_forked(struct step_count *count); /* in the child */
void count_hooked(struct step_count *count); /* one was called inside of a backward: then that is the step */

struct counted_call {
	uint64_t identity; /* 0: not known */
	bool is_new;     /* the optimizer was made since the call before; it may have the number of one that is gone */
	bool is_inside;  /* of another call */
	bool is_closure; /* a backward that trains was in it */
};

unsigned count_call(struct step_count *count, const struct counted_call *call); /* at its end */
unsigned count_scaler(struct step_count *count);
void count_zero_grad(struct step_count *count);
/* A batch was asked for, an operator was called: what came before is over. */
unsigned count_batch(struct step_count *count);
unsigned count_operator(struct step_count *count);
/* A backward has come to its first gradient. */
unsigned count_backward(struct step_count *count);
/* Are there optimizers? Else backward passes are counted. */
bool count_has_optimizers(const struct step_count *count);

#endif
