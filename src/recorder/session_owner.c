/* SPDX-License-Identifier: Apache-2.0
 *
 * session_owner.c: see the header. It detects forks of every kind, and lets threads wait for each other's starts and
 * stops.
 */
#include "recorder/session_owner.h"

#include "recorder/background.h"
#include "recorder/clock.h"
#include "recorder/emit.h"
#include "recorder/session_state.h"
#include "recorder/stream.h"
#include "recorder/symbols.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static void note_fork(void)
{
	background_forget();
	session.owner.libc_child = getpid();
	__atomic_fetch_add(&emit_starts, 1, __ATOMIC_RELAXED);
	void (*at_fork)(void) = __atomic_load_n(&session.agent.at_fork, __ATOMIC_ACQUIRE);
	if (at_fork) {
		symbols_leave_details();
		at_fork();
	}
	if (!session.owner.mark || *session.owner.mark == 0)
		return;
	/* an emulator (qemu's user mode) claims to clear pages in a child, but does not: clear them here */
	*session.owner.mark = 0;
	streams_wipe();
	symbols_wipe();
}

void session_watch_forks(void)
{
	if (session.owner.is_watching_forks)
		return;
	session.owner.is_watching_forks = true;
	pthread_atfork(background_hold, background_go_on, note_fork);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0)
		__atomic_store_n(&session.owner.mark, page, __ATOMIC_RELEASE);
}

void session_mark_own(void)
{
	if (session.owner.mark)
		__atomic_store_n(session.owner.mark, session.identity.pid, __ATOMIC_RELAXED);
}

bool session_word_is_own(uint64_t word)
{
	pid_t pid = session_word_pid(word);
	pid_t *mark = __atomic_load_n(&session.owner.mark, __ATOMIC_ACQUIRE);
	if (mark && __atomic_load_n(mark, __ATOMIC_RELAXED) == pid)
		return true;
	return pid == getpid();
}

bool session_is_own(void)
{
	return session_word_is_own(__atomic_load_n(&session.owner.word, __ATOMIC_ACQUIRE));
}

static pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

void session_begin_change(void)
{
	__atomic_store_n(&session.owner.starter, thread_id(), __ATOMIC_RELAXED);
}

uint64_t session_wait_while(enum session_phase phase, int milliseconds)
{
	int64_t deadline_ns = clock_raw_ns() + milliseconds * INT64_C(1000000);
	int error = errno;
	for (;;) {
		uint32_t changes = __atomic_load_n(&session.owner.changes, __ATOMIC_ACQUIRE);
		uint64_t seen = __atomic_load_n(&session.owner.word, __ATOMIC_SEQ_CST);
		int64_t left_ns = deadline_ns - clock_raw_ns();
		/* the last condition: this is a signal handler of the starting thread */
		if (session_word_phase(seen) != phase || !session_word_is_own(seen) || left_ns <= 0 ||
		    __atomic_load_n(&session.owner.starter, __ATOMIC_RELAXED) == thread_id()) {
			errno = error;
			return seen;
		}
		const struct timespec wait = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
		syscall(SYS_futex, &session.owner.changes, FUTEX_WAIT_PRIVATE, changes, &wait, NULL, 0);
	}
}

void session_set_phase(enum session_phase phase)
{
	/* otherwise this thread would mistake the next start, by another thread, for its own */
	__atomic_store_n(&session.owner.starter, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&session.owner.word, session_word(session.identity.pid, phase), __ATOMIC_RELEASE);
	__atomic_fetch_add(&session.owner.changes, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &session.owner.changes, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

bool session_is_starting(void)
{
	uint64_t seen = __atomic_load_n(&session.owner.word, __ATOMIC_ACQUIRE);
	return session_word_phase(seen) == SESSION_STARTING && session_word_is_own(seen);
}
