/* SPDX-License-Identifier: Apache-2.0
 *
 * training_levels.h: what is open in a thread, from the outermost record or call on: ranges and optimizer's calls, which are looked into,
 * and then what hides what is in it.
 */
#ifndef AGENTS_TORCH_TRAINING_LEVELS_H
#define AGENTS_TORCH_TRAINING_LEVELS_H

#include "agents/torch/training_state.h"

static inline void training_note_level(uint8_t level)
{
	uint32_t depth = HERE.open + HERE.hidden;
	if (depth <= OPEN_MAX)
		HERE.levels[depth - 1] = level;
}

static inline bool training_is_in_module(void)
{
	return HERE.is_module && HERE.hidden == 1;
}

/* In nothing that hides it. sequence: of an operator. */
void training_begin_level(uint8_t level, int64_t sequence);
/* Behind the begin of its level: a range of torch.profiler's that may be a step, 1 + its number. */
void training_begin_mark(uint32_t step, bool has_schedule);
/* The call of a module that trains by itself, or has trained: from here on it is as a range is, and what is in it is looked at. */
void training_open_module(void);
/* The open backward has come to its first gradient; a range has begun in it. */
void training_note_gradients(void);
void training_note_range_in_backward(const char *name);

/* The innermost record or call of this thread ends, after everything else that is done with it. */
void training_end(void);
/* What ends is not the innermost: so many that began inside of it go on. */
void training_end_beneath(uint32_t above);

#endif
