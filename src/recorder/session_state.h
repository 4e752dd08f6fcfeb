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
#include "recorder/start_problem.h"
#include "recorder/step_budget.h"
#include "recorder/step_cpu.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* The members are grouped by the file that writes them. */

struct session_owner {
	uint64_t word;    /* see session_owner.h, atomic */
	pid_t starter;    /* thread that is starting or stopping */
	uint32_t changes; /* of the phase, by a start or stop; futex */
	/* The pid that records, in a page that every kind of fork clears in the child: so no event needs a getpid(),
	 * and a child of vfork, which shares our memory, counts as ourselves. NULL: the kernel cannot do that. */
	pid_t *mark;
	/* The child that fork() made; after a bare system call locks of the C library may be held for ever. */
	pid_t libc_child;
	bool is_watching_forks;
};

struct session_identity {
	pid_t pid;
	uint64_t start_time;
	enum stepscope_role role;
	struct job_identity job;
	int32_t environments_rank; /* as the environment says it, -1: it does not */
	bool is_rank_told;         /* the program said what `job` holds */
	bool is_training;          /* it calls optimizers, or accumulates gradients */
};

struct session_capture {
	uint32_t lock; /* of steps, atomic */
	enum stepscope_capture now;
	uint32_t mask_detail; /* stepscope_active bits while detail is recorded */
	unsigned switched;    /* bits that the agent added the last time */
};

struct session_windows { /* of profilers in the program; by session_capture.c */
	uint32_t count, open;
	uint32_t mask; /* bits that the open ones want */
};

struct session_steps {
	bool is_open;
	int64_t index;  /* steps begun or counted so far */
	int64_t number; /* of the last one */
	struct step_cpu cpu;
	bool has_marked; /* the program marks its steps: they are not counted for it */
	uint64_t noted;  /* steps that are only counted so that a report can tell them after a kill, atomic */
};

struct session_agent {                        /* what an agent says, see emit.h; by api.c */
	void (*at_end)(void);                 /* NULL: none */
	unsigned (*at_switch)(unsigned bits); /* NULL: none */
	void (*at_fork)(void);                /* NULL: none */
	const char *observer;                 /* of operators */
	double observer_share;
	const char *profiler;
	bool has_uncounted;
};

struct session_state {
	struct session_owner owner;
	struct session_identity identity;
	struct session_capture capture;
	struct session_windows windows;
	struct session_steps steps;
	struct session_agent agent;
	struct step_budget budget;         /* under the lock of steps */
	struct schedule_progress progress; /* likewise */
	struct record_options options;
	struct pool pool;
	struct drain drain;
	bool is_wanted;     /* the environment or a call asks for recording */
	bool is_joining;    /* the environment named a run directory, though the program may have emptied it since */
	bool is_start_told; /* the facts are in the recording */
	bool is_ending;     /* the last events are being written */
	bool is_over;       /* the library goes away: nobody would close what starts now; atomic */
	pid_t ancestor;     /* process this one was forked from while it recorded; 0 none */
	pid_t leaked_in;    /* process in which the mapping of a pool had to stay */
	double cost_event_ns;
	enum start_problem start_problem; /* of the last start, until the next one */
	char problem[512];                /* its text */
};
extern struct session_state session;

#endif
