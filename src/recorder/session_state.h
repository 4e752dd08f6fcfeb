/* SPDX-License-Identifier: Apache-2.0
 *
 * session_state.h: what the recorder's own files share of the session. Others use session.h.
 */
#ifndef RECORDER_SESSION_STATE_H
#define RECORDER_SESSION_STATE_H

#include "recorder/drain.h"
#include "recorder/options.h"
#include "recorder/pool.h"
#include "recorder/ranks.h"
#include "recorder/schedule.h"
#include "recorder/step_budget.h"
#include "recorder/step_cpu.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct session_state {
	uint64_t owner;  /* see session_owner.h, atomic */
	bool is_wanted;  /* the environment or a call asks for recording */
	bool is_off;     /* the last start found enabled=false */
	bool is_joining; /* the environment named a run directory, though the program may have emptied it since */
	struct record_options options;
	struct job_identity job;
	int32_t environments_rank; /* as the environment says it, -1: it does not */
	bool is_rank_told;         /* the program said what `job` holds */
	enum stepscope_role role;
	pid_t pid;
	pid_t starter;    /* thread that is starting or stopping */
	uint32_t changes; /* of the phase, by a start or stop; futex */
	/* The pid that records, in a page that every kind of fork clears in the child: so no event needs a getpid(),
	 * and a child of vfork, which shares our memory, counts as ourselves. NULL: the kernel cannot do that. */
	pid_t *own_mark;
	/* The child that fork() made; after a bare system call locks of the C library may be held for ever. */
	pid_t libc_child;
	bool is_watching_forks;
	pid_t ancestor;  /* process this one was forked from while it recorded; 0 none */
	pid_t leaked_in; /* process in which the mapping of a pool had to stay */
	uint64_t start_time;
	uint32_t mask_detail; /* stepscope_active bits while detail is recorded */
	uint32_t step_lock;
	bool is_step_open;
	int64_t step_index, step_number;
	struct step_cpu step_cpu;
	void (*at_end)(void);                 /* NULL: nobody wants to know */
	unsigned (*at_switch)(unsigned bits); /* the same; see emit_at_switch() */
	unsigned switched;                    /* bits that it added the last time */
	void (*at_fork)(void);                /* the same */
	uint64_t steps_noted;                 /* of those that are only counted to be told after a kill */
	enum stepscope_capture capture;
	struct step_budget budget;
	bool has_marked;  /* the program marks its steps: they are not counted for it */
	bool is_training; /* it calls optimizers, or accumulates gradients */
	uint32_t window_count, windows_open,
		window_mask; /* of profilers in the program; mask: what the open ones want */
	struct schedule_progress progress;
	const char *observer; /* of operators, see emit_note_observer() */
	double observer_share;
	bool has_uncounted;   /* see emit_note_uncounted() */
	const char *profiler; /* see emit_note_profiler() */
	bool is_start_told;   /* the facts are in the recording */
	bool is_ending;       /* the last events are being written */
	bool is_over;         /* the library goes away: nobody would close what starts now; atomic */
	struct pool pool;
	struct drain drain;
	double cost_event_ns;
	char problem[512];
};
extern struct session_state session;

#endif
