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

enum session_phase {
	SESSION_OFF,
	SESSION_STARTING,
	SESSION_ON,
	SESSION_STOPPING,
	SESSION_FAILED
};

struct session {
	uint64_t owner;  /* pid << 8 | enum session_phase, atomic */
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
	pid_t ancestor;   /* process this one was forked from while it recorded; 0 none */
	pid_t leaked_in;  /* process in which the mapping of a pool had to stay */
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
extern struct session session;

/* Is this process recording, or does it start now? The first event of every thread comes here, and waits while another thread
 * starts the recorder. */
bool session_enter(void);
/* Does another thread, or the code that this handler interrupted, start the recorder just now? */
bool session_is_starting(void);

/* Does the session belong to this process? Not to a forked child that has not come to its first event yet. */
bool session_is_own(void);

/* Emits the facts of the recording, once; the first thread that has a stream calls it. */
void session_tell_start(void);

/* Steps, from api.c. */
void session_step_begin(int64_t number);
void session_step_end(bool is_abandoned);
/* So many steps that the program does not mark have ended, one after the other; see emit_count_steps(). */
void session_count_steps(unsigned count, const char *by);
bool session_wants_count(void);
/* The same where no schedule depends on it: only told. */
void session_note_steps(unsigned count);
/* Asks the agent again, see emit_at_switch(). */
void session_apply_capture(void);
/* See emit_trains() and emit_rank(). */
void session_trains(void);
void session_tell_rank(int32_t rank, int32_t world_size);
/* A stretch that a profiler in the program wants, beside the schedule; `with`: STEPSCOPE_ACTIVE_* bits beyond detail. Its number,
 * 0: nothing is recorded. They may overlap: all get what any of them wants. */
uint32_t session_window_begin(unsigned with);
void session_window_end(uint32_t number);

#endif
