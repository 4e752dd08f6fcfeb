/* SPDX-License-Identifier: Apache-2.0
 *
 * session_closing.c: see the header.
 */
#include "recorder/session_closing.h"

#include "base/shell.h"
#include "recorder/clock.h"
#include "recorder/run_directory.h"
#include "recorder/schedule.h"
#include "recorder/self.h"
#include "recorder/session_facts.h"
#include "recorder/session_state.h"
#include "recorder/step_budget.h"
#include "recorder/symbols.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Returns true if this process prints the closing line. `stepscope run` prints it for all its processes. A program that
 * was started by hand, and passed its directory on to children, prints it itself. */
static bool says_end(void)
{
	const char *starter = getenv("STEPSCOPE_STARTED_BY");
	bool is_joining = session.is_joining || getenv("STEPSCOPE_RUN_DIR");
	return !is_joining || (starter && strtol(starter, NULL, 10) == session.identity.pid);
}

#define KIND(name) (UINT64_C(1) << STEPSCOPE_SYMBOL_##name)
#define OPERATORS (KIND(OP) | KIND(BACKWARD) | KIND(SCRIPT))
#define RANGES (KIND(RANGE) | KIND(ANNOTATION))

/* Prints the closing line. If other processes did the work, the sentence about this process is of no interest and its
 * advice is wrong. */
static void say_end(const char *sentence)
{
	const char *directory = session.options.run_directory;
	char word[1100];
	shell_quote(word, sizeof(word), directory);
	if (session.progress.captured == CAPTURED_NOTHING &&
	    run_directory_has_others(directory, session.identity.pid, session.identity.start_time))
		sentence = "captured no operators in this process; others that it started recorded, too";
	recorder_say("%s; see: stepscope report %s", sentence, word);
}

static void tell_captured(void)
{
	char what[32];
	session.progress.captured = schedule_captured(&session.options, &session.progress);
	snprintf(what, sizeof(what), "%s, ", captured_word(session.progress.captured));
	session_meta_own("captured", what);
}

/* The numbers of the sentence, for readers: "36 of 40". */
static void tell_steps(void)
{
	char numbers[64];
	if (!schedule_is_part(&session.options, &session.progress))
		return;
	snprintf(numbers, sizeof(numbers), "%" PRId64 " of %" PRId64, session.progress.steps_recorded,
	         session.progress.steps_begun);
	session_meta("capture.steps", numbers);
}

void session_put_closing(void)
{
	char sentence[1024];
	clockid_t clock;
	if (session.options.is_self_sampled && drain_mode(&session.drain) == DRAIN_BY_THREAD &&
	    pthread_getcpuclockid(session.drain.thread, &clock) == 0)
		self_sample(__atomic_load_n(&session.drain.events, __ATOMIC_RELAXED), clock);
	if (session.identity.role != STEPSCOPE_ROLE_TRAINER)
		return;
	session.progress.observer = session.agent.observer;
	session.progress.steps_noted = (int64_t)session.steps.noted;
	session.progress.has_uncounted = session.agent.has_uncounted;
	session.progress.profiler = session.agent.profiler;
	session.progress.has_operators = (symbols_kinds() & OPERATORS) != 0;
	session.progress.has_ranges = (symbols_kinds() & RANGES) != 0;
	step_budget_describe(&session.budget, &session.progress);
	schedule_describe(&session.options, &session.progress, sentence, sizeof(sentence));
	session_meta("capture", sentence);
	tell_steps();
	tell_captured();
	bool is_windows_only = session.windows.count && session.options.mode == RECORD_STEPS &&
	                       !session.options.step_range_count;
	/* a profiler in the program knows its windows */
	if (says_end() && !is_windows_only)
		say_end(sentence);
}
