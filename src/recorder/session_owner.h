/* SPDX-License-Identifier: Apache-2.0
 *
 * session_owner.h: the process that the session belongs to, and the phase of the session. One atomic word,
 * session.owner.word, holds both. A start, a stop and the first event of a forked child are each decided by one
 * compare-and-swap of it.
 */
#ifndef RECORDER_SESSION_OWNER_H
#define RECORDER_SESSION_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum session_phase {
	SESSION_OFF,
	SESSION_STARTING,
	SESSION_ON,
	SESSION_STOPPING,
	SESSION_FAILED
};

static inline uint64_t session_word(pid_t pid, enum session_phase phase)
{
	return (uint64_t)pid << 8 | (uint64_t)phase;
}

static inline enum session_phase session_word_phase(uint64_t word)
{
	return (enum session_phase)(word & 0xff);
}

static inline pid_t session_word_pid(uint64_t word)
{
	return (pid_t)(word >> 8);
}

/* Returns true if the word names this process. Also true in a child of vfork(), which shares our memory. */
bool session_word_is_own(uint64_t word);
/* Returns true if the session belongs to this process. Returns false in a forked child before its first event. */
bool session_is_own(void);
/* Returns true while the recorder is being started by another thread, or by the code that this signal handler
 * interrupted. */
bool session_is_starting(void);

/* Called at the first start of the process, even if the start fails. */
void session_watch_forks(void);
/* Notes that the recorder is on in this process. From now on a fork is noticed without getpid(). */
void session_mark_own(void);

/* Notes that this thread starts or stops the recorder, until it calls session_set_phase(). */
void session_begin_change(void);
/* Ends the start or stop, and wakes the threads that wait for it. */
void session_set_phase(enum session_phase phase);
/* Waits while another thread keeps the session in this phase. Returns the word after the phase or the time has
 * ended. */
uint64_t session_wait_while(enum session_phase phase, int milliseconds);

#endif
