/* SPDX-License-Identifier: Apache-2.0
 *
 * training_count.h: counts the steps that the program does not mark (count.h), by what the threads do, and tells the recorder of each.
 */
#ifndef AGENTS_TORCH_TRAINING_COUNT_H
#define AGENTS_TORCH_TRAINING_COUNT_H

#include "agents/torch/training_state.h"

/* In a child that fork() made. */
void training_count_forked(void);

static inline bool training_is_operator(uint8_t token)
{
	return token == STEPSCOPE_TRAINING_OP || token == STEPSCOPE_TRAINING_FORWARD;
}

/* For training_count_begin(). */
void training_count_news(uint8_t token, bool is_first);

/* A record that is of interest begins; an optimizer's call ends; a backward has come to its first gradient. */
static inline void training_count_begin(uint8_t token)
{
	const struct step_count *count = &training.count;
	bool is_first = !count->has_group && !count->has_backward;
	HERE.trains |= is_first && token == STEPSCOPE_TRAINING_FORWARD;
	/* most operators say nothing new */
	if (!training_is_operator(token) || (count->has_backward && !count_has_optimizers(count)))
		training_count_news(token, is_first);
}

void training_count_end(uint8_t token);
void training_count_call(uint64_t identity, bool is_inside, bool is_closure);
void training_count_gradients(void);
/* So many steps have ended; `by` (a literal) says how that was found out. What came before is noted before it. */
void training_count_told(unsigned ended, const char *by);

/* From Python: an optimizer was made. False: other threads were counting for too long, so it was not noted. */
bool training_optimizer_made(void);
/* Behind a call, where records are not looked at here: how many steps have ended with it. */
unsigned training_optimizer_done(uint64_t identity);

#endif
