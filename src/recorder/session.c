/* SPDX-License-Identifier: Apache-2.0
 *
 * session.c: start, flush and stop; holds the state of the recorder. A recording starts with the first event. A forked
 * child notices at its first event that the session belongs to its parent, and starts its own. The other files
 * session_*.c are the parts of a session.
 */
#include "recorder/session.h"

#include "base/hot.h"
#include "recorder/clock.h"
#include "recorder/emit.h"
#include "recorder/run_directory.h"
#include "recorder/schedule.h"
#include "recorder/session_capture.h"
#include "recorder/session_closing.h"
#include "recorder/session_facts.h"
#include "recorder/session_identity.h"
#include "recorder/session_owner.h"
#include "recorder/session_state.h"
#include "recorder/step_budget.h"
#include "recorder/step_cpu.h"
#include "recorder/stream.h"
#include "recorder/symbols.h"
#include "recorder/thread_use.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRAINER_POOL_BYTES (16ll << 20)
#define WORKER_POOL_BYTES (1ll << 20)
#define WAIT_FOR_START_MS 1000
#define WAIT_FOR_STOP_MS 12000

struct session_state session;
HOT unsigned stepscope_active;
HOT uint32_t emit_starts, emit_first_start;
uint32_t emit_rotations;

const char *session_problem(void)
{
	return session.problem;
}

/* Reads the options of the program, overlaid with the user's options in the environment. */
static bool read_options(const char *list)
{
	static struct record_settings settings, above; /* 11 KB each, too large for the stack of a program's thread */
	memset(&settings, 0, sizeof(settings));
	memset(&above, 0, sizeof(above));
	record_options_init(&session.options);
	if (list &&
	    !record_settings_parse(&settings, list, "stepscope_init()", session.problem, sizeof(session.problem)))
		return false;
	if (!record_settings_environment(&above, environ, session.problem, sizeof(session.problem)))
		return false;
	record_settings_overlay(&settings, &above);
	return record_options_resolve(&session.options, &settings, session.problem, sizeof(session.problem));
}

static int64_t pool_bytes(void)
{
	int64_t wanted = session.options.pool_bytes ? session.options.pool_bytes : TRAINER_POOL_BYTES;
	if (session.identity.role == STEPSCOPE_ROLE_TRAINER)
		return wanted;
	return wanted < WORKER_POOL_BYTES ? wanted : WORKER_POOL_BYTES;
}

static struct drain_limits file_limits(void)
{
	struct drain_limits result = {
		.keep_bytes = session.options.keep_bytes,
		.keep_ns = session.options.keep_ns,
		.segment_bytes = session.options.segment_bytes,
		.fdatasync_ns = session.options.fdatasync_ns,
		.is_self_sampled = session.options.is_self_sampled,
	};
	if (result.segment_bytes == 0)
		result.segment_bytes = result.keep_bytes ? result.keep_bytes / 8 : 64 << 20;
	return result;
}

static enum start_problem fail_to_start(enum start_problem problem, const char *what)
{
	snprintf(session.problem, sizeof(session.problem), "cannot record: %s%s", what,
	         problem == START_NO_MEMORY ? ": Cannot allocate memory" : "");
	return problem;
}

static enum start_problem start_parts(const struct session_start *how, bool is_forked)
{
	/* after a fork by a bare system call, no thread can be created safely */
	bool is_inline = session.ancestor != 0 && session.owner.libc_child != session.identity.pid;
	struct drain_start drain = {.pool = &session.pool, .limits = file_limits(), .is_inline = is_inline};
	struct stepscope_segment_header identity;
	int reason = 0;
	if (!run_directory_get(&session.options, how->run_directory, session.identity.pid, session.problem,
	                       sizeof(session.problem)))
		return START_NO_DIRECTORY;
	if (!symbols_start())
		return fail_to_start(START_NO_MEMORY, "not enough memory for names");
	if (!pool_create(&session.pool, (size_t)pool_bytes(), (unsigned)session.identity.pid,
	                 session.identity.start_time))
		return fail_to_start(START_NO_MEMORY, "not enough memory for events");
	session_fill_identity(&identity);
	drain.directory = session.options.run_directory;
	drain.identity = &identity;
	if (!streams_start(&session.pool, is_forked)) {
		pool_destroy(&session.pool, true);
		return fail_to_start(START_NO_MEMORY, "not enough memory for threads");
	}
	enum start_problem problem = drain_start(&session.drain, &drain, &reason);
	if (problem != START_OK) {
		bool is_quiet = streams_stop();
		is_quiet &= symbols_detach_pool();
		pool_destroy(&session.pool, is_quiet);
		if (problem != START_NO_FILE)
			return fail_to_start(problem, "memory");
		snprintf(session.problem, sizeof(session.problem), "cannot record into '%s': %s", drain.directory,
		         strerror(reason));
		return problem;
	}
	__atomic_store_n(&emit_first_start, __atomic_add_fetch(&emit_starts, 1, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	if (!session.drain.is_continued) /* the closing line is about one recording */
		session.progress.earlier = session.progress.earlier_begun = session.progress.earlier_recorded = 0;
	return START_OK;
}

/* In a forked child: forgets all state of the parent, except the names and the options. */
static void forget_parent(void)
{
	session.ancestor = session.identity.pid;
	drain_forget(&session.drain);
	own_fd_close(&session.pool.file);
	session.pool = (struct pool){.file.fd = -1};
	session.capture.lock = 0;
	session.steps.is_open = false;
	session.is_ending = false;
	session.steps.index = 0;
	session.steps.noted = 0;
	session.steps.has_marked = session.identity.is_training = false;
	step_budget_forget(&session.budget);
	thread_use_forget();
	session.windows.count = session.windows.open = session.windows.mask = 0; /* its parent's */
	session.progress = (struct schedule_progress){0};
	streams_forget();
	(void)symbols_detach_pool();
}

/* A start sets the phase STARTING and then reads is_over; on_unload() sets is_over and then waits for a start. So at
 * least one of them sees the other. */
static bool is_program_ending(void)
{
	return __atomic_load_n(&session.is_over, __ATOMIC_SEQ_CST);
}

static enum start_problem start_session(const struct session_start *how, bool is_forked)
{
	session_read_process();
	session.problem[0] = 0;
	if (is_program_ending())
		return fail_to_start(START_TOO_LATE, "the program is ending");
	if (is_forked)
		forget_parent();
	else if (!read_options(how->options))
		return START_NO_OPTIONS;
	if (session.options.mode == RECORD_OFF)
		return START_IS_OFF;
	/* a mapping that an earlier stop could not remove is ours */
	if (session.leaked_in != session.identity.pid &&
	    pool_exists_in_process((unsigned)session.identity.pid, session.identity.start_time))
		return fail_to_start(START_HAS_OTHER, "another copy of libstepscope already records this process");
	clock_start();
	session_choose_identity(how->role, is_forked);
	step_budget_start(&session.budget, &session.options, session.identity.role == STEPSCOPE_ROLE_WORKER);
	session.cost_event_ns = session_measure_event_ns();
	step_cpu_start(&session.steps.cpu);
	thread_use_start();
	return start_parts(how, is_forked);
}

/* Returns true if the user needs to know the problem. Not if another copy records, recording is switched off, or the
 * program is ending. */
static bool is_complaint(enum start_problem problem)
{
	return problem != START_HAS_OTHER && problem != START_IS_OFF && !is_program_ending();
}

static enum start_problem begin_recording(const struct session_start *how, bool is_forked)
{
	session_begin_change();
	session_watch_forks();
	enum start_problem problem = session.start_problem = start_session(how, is_forked);
	if (problem != START_OK) {
		session_set_active(0);
		if (!how->is_explicit && is_complaint(problem))
			recorder_say("%s; the program continues unrecorded", session.problem);
		session_set_phase(SESSION_FAILED);
		return problem;
	}
	session.is_start_told = false;
	session_mark_own();
	streams_declare_early();
	session_set_phase(SESSION_ON);
	return START_OK;
}

/* Emits the first events of the recording, once its first thread has a stream. */
void session_tell_start(void)
{
	if (__atomic_exchange_n(&session.is_start_told, true, __ATOMIC_ACQ_REL))
		return;
	session_put_facts();
	if (session.identity.role == STEPSCOPE_ROLE_WORKER && session.options.mode != RECORD_ALWAYS)
		session_switch_capture(session.capture.now,
		                       true); /* workers have no steps: keep the parent's capture at the fork */
	else
		session_switch_capture(schedule_before_first(&session.options), true);
}

bool session_enter(void)
{
	uint64_t seen = __atomic_load_n(&session.owner.word, __ATOMIC_ACQUIRE);
	if (session_word_phase(seen) == SESSION_ON && session_word_is_own(seen))
		return true;
	if (!__atomic_load_n(&session.is_wanted, __ATOMIC_RELAXED))
		return false;
	pid_t pid = getpid();
	if (session_word_pid(seen) != pid &&
	    !__atomic_compare_exchange_n(&session.owner.word, &seen, session_word(pid, SESSION_STARTING), false,
	                                 __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE) &&
	    session_word_pid(seen) != pid)
		return false;
	if (session_word_pid(seen) == pid) {
		if (session_word_phase(seen) == SESSION_STARTING)
			seen = session_wait_while(SESSION_STARTING, WAIT_FOR_START_MS);
		return session_word_phase(seen) == SESSION_ON ||
		       (session_word_phase(seen) == SESSION_STOPPING &&
		        __atomic_load_n(&session.is_ending, __ATOMIC_ACQUIRE));
	}
	bool is_forked = session_word_pid(seen) != 0;
	const struct session_start how = {.role = is_forked && session.identity.role == STEPSCOPE_ROLE_HOST
	                                                  ? STEPSCOPE_ROLE_HOST
	                                                  : STEPSCOPE_ROLE_TRAINER};
	int error = errno; /* an event must not change errno */
	bool is_on = begin_recording(&how, is_forked) == START_OK;
	errno = error;
	return is_on;
}

/* Returns START_OK for START_IS_OFF: being switched off is not a failure of a start. */
static enum start_problem unless_off(enum start_problem problem)
{
	return problem == START_IS_OFF ? START_OK : problem;
}

enum start_problem session_start(const struct session_start *how)
{
	pid_t pid = getpid();
	uint64_t seen = session_wait_while(SESSION_STOPPING, WAIT_FOR_STOP_MS);
	if (session_word_phase(seen) == SESSION_ON && session_word_is_own(seen))
		return START_OK;
	if (seen == session_word(pid, SESSION_STOPPING))
		return START_NOT_STOPPED;
	if (seen == session_word(pid, SESSION_STARTING) ||
	    !__atomic_compare_exchange_n(&session.owner.word, &seen, session_word(pid, SESSION_STARTING), false,
	                                 __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)) { /* another thread is starting */
		seen = session_wait_while(SESSION_STARTING, WAIT_FOR_STOP_MS);
		return session_word_phase(seen) == SESSION_FAILED ? unless_off(session.start_problem) : START_OK;
	}
	bool was_other = session_word_pid(seen) != 0 && session_word_pid(seen) != pid;
	if (was_other)
		forget_parent();
	__atomic_store_n(&session.is_wanted, true, __ATOMIC_RELAXED);
	enum start_problem problem = begin_recording(how, false);
	if (problem == START_OK)
		session_tell_start();
	return unless_off(problem);
}

/* ---- flush and stop ---- */

void session_flush(void)
{
	if (__atomic_load_n(&session.owner.word, __ATOMIC_ACQUIRE) == session_word(getpid(), SESSION_ON))
		drain_flush(&session.drain);
}

void session_stop(const char *reason)
{
	(void)session_wait_while(SESSION_STARTING, WAIT_FOR_STOP_MS); /* a starting recording would stay open */
	uint64_t expected = session_word(getpid(), SESSION_ON);
	if (!__atomic_compare_exchange_n(&session.owner.word, &expected, session_word(getpid(), SESSION_STOPPING),
	                                 false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return;
	session_begin_change();
	session_set_active(0);
	__atomic_store_n(&session.is_ending, true, __ATOMIC_RELEASE);
	void (*at_end)(void) = __atomic_load_n(&session.agent.at_end, __ATOMIC_ACQUIRE);
	if (at_end)
		at_end();
	session_put_closing();
	(void)session_ask_agent(0);
	__atomic_store_n(&session.is_ending, false, __ATOMIC_RELEASE);
	bool is_quiet = streams_stop();
	if (!drain_stop(&session.drain, reason)) { /* a stuck disk: the rescue writes the rest */
		session.start_problem = START_NOT_STOPPED;
		session_set_phase(SESSION_FAILED);
		return;
	}
	streams_reset();
	is_quiet &= symbols_detach_pool();
	if (!is_quiet)
		session.leaked_in = session.identity.pid;
	if (session.pool.header->is_closed || session.drain.file.is_removed)
		pool_destroy(&session.pool, is_quiet);
	else
		pool_abandon(&session.pool, is_quiet); /* not everything could be written: left for the rescue */
	session.steps.is_open = false;
	session.steps.index = 0;
	session.steps.noted = 0;
	session.steps.has_marked = session.identity.is_training = false;
	step_budget_stop(&session.budget, session.options.run_directory);
	session.windows.open = session.windows.mask = 0;
	schedule_restart(&session.progress);
	session_set_phase(SESSION_OFF);
}

/* ---- with the process ---- */

static bool is_set_to_on(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] && strcmp(value, "0") != 0 && strcmp(value, "off") != 0;
}

__attribute__((constructor)) static void on_load(void)
{
	const char *wish = getenv("STEPSCOPE");
	bool is_refused = wish && (strcmp(wish, "0") == 0 || strcmp(wish, "off") == 0);
	session.pool.file.fd = session.drain.file.file.fd = session.drain.coarse.file.fd = -1;
	session.is_joining = is_set_to_on("STEPSCOPE_RUN_DIR");
	session.is_wanted = !is_refused && (is_set_to_on("STEPSCOPE") || session.is_joining);
	/* several threads may ask for names before the first event */
	if (session.is_wanted && symbols_start())
		session_set_active(SESSION_ALL_BITS); /* until the first event reads the options */
}

__attribute__((destructor)) static void on_unload(void)
{
	__atomic_store_n(&session.is_over, true, __ATOMIC_SEQ_CST);
	session_stop("exit");
	(void)session_wait_while(SESSION_STOPPING, WAIT_FOR_STOP_MS); /* a stop by another thread */
	streams_unload();
}
