/* SPDX-License-Identifier: Apache-2.0
 *
 * training_stretch.h: what is noted while no detail is recorded: one event for each stretch of what a thread does. What each operator needs
 * is inline.
 */
#ifndef AGENTS_TORCH_TRAINING_STRETCH_H
#define AGENTS_TORCH_TRAINING_STRETCH_H

#include "agents/torch/training_state.h"
#include "recorder/emit.h"

/* Notes one that is over. `identity`: of the optimizer that was called, 0: unknown. */
void training_put(uint8_t token, uint32_t flags, uint64_t start, uint64_t end, uint64_t identity);
/* Notes the newest stretch of this thread, if it is not noted yet. */
void training_flush(void);

static inline bool training_is_work(uint8_t token)
{
	return token == STEPSCOPE_TRAINING_OP || token == STEPSCOPE_TRAINING_FORWARD ||
	       token == STEPSCOPE_TRAINING_BACKWARD;
}

/* Neighbours that say the same are one stretch; operators between those of a forward or backward go. */
static inline bool training_goes_on(uint8_t token)
{
	const struct noted_stretch *stretch = &HERE.stretch;
	return stretch->is_any && training_is_work(token) && stretch->token == token &&
	       stretch->is_detail == training_is_detail() && !stretch->object && !HERE.module;
}

/* Begins another stretch, where training_goes_on() is false. */
void training_new_stretch(uint8_t token, uint64_t start);

static inline void training_begin_stretch(uint8_t token, uint64_t start)
{
	if (!training_goes_on(token))
		training_new_stretch(token, start);
}

/* The newest stretch ends now, for the time being. */
static inline void training_end_stretch(void)
{
	struct noted_stretch *stretch = &HERE.stretch;
	if (!stretch->is_detail)
		stretch->end = emit_now();
	if (HERE.is_waiting && !HERE.has_work && HERE.calls_in_waits)
		stretch->flags |= STEPSCOPE_TRAINING_IS_EMPTY;
	HERE.calls_in_waits |= HERE.is_waiting && HERE.has_work;
}

/* There was some work, which need not have records. */
void training_note_work(void);

#endif
