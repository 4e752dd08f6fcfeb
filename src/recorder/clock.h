/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h: ticks. The processor's counter where it is invariant and the kernel trusts it, CLOCK_MONOTONIC_RAW otherwise. Ticks
 * only ever go up within a process; when the kernel stops trusting the counter at run time, later ticks are made from
 * CLOCK_MONOTONIC_RAW in the same unit, so that the line does not break.
 */
#ifndef RECORDER_CLOCK_H
#define RECORDER_CLOCK_H

#include <stdbool.h>
#include <stepscope/format.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

struct recorder_clock {
	bool is_counter; /* read by every event */
	enum stepscope_clock kind;
	uint64_t tick_hz;
	uint32_t tick_step;
	uint32_t shift;      /* quantum of the file: 2^shift ticks */
	uint64_t origin_tick; /* not is_counter: tick = origin_tick + (raw - origin_ns) * tick_hz / 1e9 */
	int64_t origin_ns;
	int clocksource_fd;  /* -1: none */
};
extern struct recorder_clock recorder_clock;

void clock_start(void);               /* chooses and calibrates: about 0.3 ms */
uint64_t clock_ticks_slow(void);
void clock_anchor(struct stepscope_anchor *anchor); /* best of 16 bracketed readings */
/* Re-reads what the kernel thinks of the counter; true when the clock was replaced just now. */
bool clock_recheck(void);
int64_t clock_raw_ns(void);

static inline uint64_t clock_ticks(void)
{
#if defined(STEPSCOPE_FAKE_CLOCK) /* bench/record: what the bookkeeping costs without the clock */
	return recorder_clock.origin_tick;
#elif defined(__x86_64__)
	if (__builtin_expect(recorder_clock.is_counter, 1))
		return __rdtsc();
	return clock_ticks_slow();
#elif defined(__aarch64__)
	if (__builtin_expect(recorder_clock.is_counter, 1)) {
		uint64_t tick;
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(tick));
		return tick;
	}
	return clock_ticks_slow();
#else
	return clock_ticks_slow();
#endif
}

#endif
