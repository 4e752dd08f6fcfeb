/* SPDX-License-Identifier: Apache-2.0
 *
 * time_now.h: the clocks of the system in nanoseconds. There is no .c file, because the recorder uses it too. Recorded
 * events use another clock (recorder/clock.h).
 *
 *     int64_t start_ns = time_now_ns(CLOCK_MONOTONIC);
 */
#ifndef BASE_TIME_NOW_H
#define BASE_TIME_NOW_H

#include <stdint.h>
#include <time.h>

static inline int64_t timespec_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Returns 0 if the system does not have the clock. */
static inline int64_t time_now_ns(clockid_t clock)
{
	struct timespec now;

	return clock_gettime(clock, &now) == 0 ? timespec_ns(&now) : 0;
}

#endif
