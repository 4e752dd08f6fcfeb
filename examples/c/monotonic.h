/* SPDX-License-Identifier: Apache-2.0 */
/* Time on CLOCK_MONOTONIC in nanoseconds, CPU time, and a sleep that signals cannot cut short. */
#ifndef TRAINER_MONOTONIC_H
#define TRAINER_MONOTONIC_H

#include <errno.h>
#include <stdint.h>
#include <time.h>

static inline int64_t monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* CPU time of the calling thread. */
static inline int64_t thread_cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void monotonic_sleep_ns(int64_t ns)
{
	if (ns <= 0)
		return;
	int64_t until = monotonic_ns() + ns;
	struct timespec when = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

#endif
