/* SPDX-License-Identifier: Apache-2.0
 *
 * session_state.h: the part of the session that the recorder's files share. Others use session.h.
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
	pid_t starter;    /* thread that starts or stops the recorder */
	uint32_t changes; /* number of changes of the phase; futex */
	/* The pid that records, in a page that every kind of fork clears in the child: no event needs getpid(). A child
	 * of vfork() shares our memory and counts as this process. NULL: the kernel does not support this. */
	pid_t *mark;
	/* The pid of a child made by fork(). In a child made by a bare system call, locks of the C library may be held
	 * forever. */
	pid_t libc_child;
	bool is_watching_forks;
};

struct session_identity {
	pid_t pid;
	uint64_t start_time;
	enum stepscope_role role;
	struct job_identity job;
	int32_t environments_rank; /* rank in the environment; -1: not set */
	bool is_rank_told;         /* the program set the rank in `job` */
	bool is_training;          /* the process calls optimizers or accumulates gradients */
};

struct session_capture {
	uint32_t lock; /* lock of steps, atomic */
	enum stepscope_capture now;
	uint32_t mask_detail; /* stepscope_active bits while detail is recorded */
	unsigned switched;    /* bits that the agent added last */
};

struct session_windows { /* windows of profilers in the program; by session_capture.c */
	uint32_t count, open;
	uint32_t mask; /* bits that the open windows want */
};

struct session_steps {
	bool is_open;
	int64_t index;  /* steps started or counted so far */
	int64_t number; /* number of the last one */
	struct step_cpu cpu;
	bool has_marked; /* the program marks its steps, so they are not counted */
	uint64_t noted;  /* steps counted only for the report after a kill, atomic */
};

struct session_agent {                        /* settings of the agent, see emit.h; by api.c */
	void (*at_end)(void);                 /* NULL: not set */
	unsigned (*at_switch)(unsigned bits); /* NULL: not set */
	void (*at_fork)(void);                /* NULL: not set */
	const char *observer;                 /* who records operators without calls from the program */
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
	bool is_joining;    /* STEPSCOPE_RUN_DIR was set at load; the program may have cleared it since */
	bool is_start_told; /* the facts are in the recording */
	bool is_ending;     /* the last events are being written */
	bool is_over;       /* the library is being unloaded, and a new recording could not be closed; atomic */
	pid_t ancestor;     /* process that was recording when it forked this one; 0: none */
	pid_t leaked_in;    /* process in which the mapping of a pool could not be removed */
	double cost_event_ns;
	enum start_problem start_problem; /* problem of the last start, until the next one */
	char problem[512];                /* text of that problem */
};
extern struct session_state session;

#endif
