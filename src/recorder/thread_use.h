/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_use.h: readings of the calling thread's CPU time, and of the time in which it could run but waited for a
 * processor. A reading is an event (STEPSCOPE_STEP_USE) with the totals since the thread's start. Readers
 * take differences, so a missing reading costs precision, not correctness.
 *
 *     thread_use_note();      a phase or a wait has just started or ended
 *     thread_use_read(true);  a step has just ended: the process's CPU time, too
 *
 * A reading makes two or three system calls. It is left out if the thread's previous one is less than
 * THREAD_USE_PART times its own cost ago, so readings take at most 0.5 % of a thread's time. A reading with the
 * process's CPU time follows only the previous one of its kind, at most 0.5 % more. The wait comes
 * from /proc/thread-self/schedstat, which stays open, for at most THREAD_USE_FILES threads at a time. In other threads,
 * and if the kernel does not count it, the wait is unknown.
 *
 * Any thread; not in a signal handler that interrupted an event.
 */
#ifndef RECORDER_THREAD_USE_H
#define RECORDER_THREAD_USE_H

#include "recorder/stream.h"

#define THREAD_USE_PART 200u
#define THREAD_USE_FILES 64u

/* Measures the cost of a reading. */
void thread_use_start(void);

/* Sets *ns to the cost of a reading, and *process_ns to the extra cost of the process's CPU time. Returns false if the
 * kernel does not provide a thread's CPU time. */
bool thread_use_cost_ns(double *ns, double *process_ns);

/* Reads now, if the previous such reading is long enough ago. */
void thread_use_read(bool with_process);

/* The same without the process's CPU time. Most calls come too early and end here. */
static inline void thread_use_note(void)
{
	if (clock_ticks() >= cursor_mine->next_reading)
		thread_use_read(false);
}

/* Closes the file of a thread that has ended. */
void thread_use_close(struct cursor *cursor);

/* In a forked child: closes the files of the parent's threads. */
void thread_use_forget(void);

#endif
