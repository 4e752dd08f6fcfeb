/* SPDX-License-Identifier: Apache-2.0
 *
 * training_state.h: what the files training*.c share: the counting of steps, one per process, and what each thread is in.
 */
#ifndef AGENTS_TORCH_TRAINING_STATE_H
#define AGENTS_TORCH_TRAINING_STATE_H

#include "agents/torch/count.h"
#include "agents/torch/thread.h"

#include <stdbool.h>
#include <stdint.h>
#include <stepscope/format.h>
#include <stepscope/stepscope.h>

#define TRAINING_CALLS 8u /* optimizers that call optimizers */
/* What a level is, beyond enum stepscope_training: a range of the user's; what is of no interest, but hides what is in it; the wait for a
 * loader without workers. */
#define LEVEL_TRANSPARENT 255u
#define LEVEL_NOTHING 254u
#define LEVEL_DATA_HERE 253u
#define LEVEL_COMPILED 252u /* code of torch.compile, and no call of an optimizer */
#define LEVEL_PROFILER_STEP 251u

struct training_state {
	const char *(*name)(const void *record);
	int sequence; /* offset of it in a record, -1: not known */
	int64_t (*next_sequence)(void);
	struct step_count count;
	uint32_t lock;
	bool sees_calls; /* see training_sees_calls() */
};
extern struct training_state training;

/* One stretch of what a thread does. */
struct noted_stretch {
	uint64_t start, end; /* ticks */
	uint64_t object;     /* the module of a call, 0: none */
	uint32_t flags;
	uint32_t symbol; /* its name */
	uint8_t token;
	bool is_any;
	bool is_detail; /* its records are in the file themselves */
};

struct thread_training {
	uint32_t hidden;          /* open records, from the outermost on that hides what it contains */
	uint32_t open;            /* around them: ranges and optimizer's calls */
	uint8_t levels[OPEN_MAX]; /* what those `open` are, and then those `hidden`, for when one beneath them ends */
	uint32_t calls;
	struct {
		uint32_t level;
		uint64_t start, identity;
		bool is_detail, is_closure;
	} call[TRAINING_CALLS];
	struct noted_stretch stretch;
	struct { /* the open record, when it is an operator: only its end tells whether it made a node of a graph */
		uint64_t start;
		int64_t sequence;
		bool is_open;
	} work;
	struct {                /* the innermost range of torch.profiler's that may be a step */
		uint32_t level; /* in `open`; 0: none */
		uint32_t step;  /* 1 + its number */
		uint64_t start;
		unsigned ended;  /* steps in it that would have been counted without it */
		unsigned most;   /* in one so far */
		bool has_work;   /* something trained in it */
		bool is_counted; /* all that trained so far is in such steps */
		bool is_detail;
		bool is_none;  /* its profiler's step() is not called, or no more, as it seems */
		bool is_first; /* nothing tells yet that its profiler's step() will be called: no schedule does */
	} mark;
	uint64_t hook_start; /* of the optimizer's call in the open node; an optimizer steps in a hook of a gradient */
	uint32_t hook_level; /* `hidden` in it, 0: none */
	bool is_training;    /* the open node has come to a gradient */
	bool has_work;       /* the open wait for a batch called operators */
	bool is_waiting;     /* for a loader without workers, which calls operators for each batch */
	bool calls_in_waits; /* waits with a batch do */
	bool trains;         /* this thread called an optimizer, or computed gradients */
	uint32_t module_symbol;
	uint64_t module; /* that is called now, see struct training_call; 0: none */
	bool is_module;  /* what hides is a module's call that was noted */
};

_Static_assert(sizeof(struct thread_training) <= sizeof(((struct torch_thread *)0)->training), "room for it");
/* Of the calling thread. */
#define HERE (*(struct thread_training *)(void *)torch_thread->training)

static inline bool training_is_detail(void)
{
	return STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_DETAIL;
}

#endif
