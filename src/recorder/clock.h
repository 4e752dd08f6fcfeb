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

struct recorder_clock {
	bool is_counter; /* read by every event, atomic */
	enum stepscope_clock kind;
	uint64_t tick_hz;
	uint32_t tick_step;
	uint32_t shift;       /* quantum of the file: 2^shift ticks */
	uint64_t origin_tick; /* not is_counter: tick = origin_tick + (raw - origin_ns) * tick_hz / 1e9 */
	int64_t origin_ns;
};
extern struct recorder_clock recorder_clock;

void clock_start(void); /* chooses and calibrates: about 0.3 ms */
uint64_t clock_ticks_slow(void);
void clock_anchor(struct stepscope_anchor *anchor); /* best of 16 bracketed readings */
/* Re-reads what the kernel thinks of the counter; true when the clock was replaced just now. */
bool clock_recheck(void);
int64_t clock_raw_ns(void);

struct clock_halves { /* a tick in two: an event's word holds the low one, and the high one changes once in seconds */
	uint64_t low, high; /* below 2^32 each */
};

/* The processor's counter; only where recorder_clock.is_counter. Nothing the compiler knows of memory moves across it. */
static inline __attribute__((always_inline)) struct clock_halves clock_read_counter(void)
{
	struct clock_halves tick;
#if defined(STEPSCOPE_FAKE_CLOCK) /* bench/record: what the bookkeeping costs without the clock */
	tick.low = tick.high = 1;
#elif defined(__x86_64__)
	__asm__ volatile("rdtsc" : "=a"(tick.low), "=d"(tick.high)::"memory");
#elif defined(__aarch64__)
	uint64_t both;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(both)::"memory");
	tick.low = (uint32_t)both;
	tick.high = both >> 32;
#else
	tick.low = tick.high = 0;
#endif
	return tick;
}

static inline bool clock_is_counter(void)
{
#if defined(__SANITIZE_THREAD__)
	return __atomic_load_n(&recorder_clock.is_counter, __ATOMIC_RELAXED);
#else
	return recorder_clock.is_counter; /* one instruction; gcc makes three of the other */
#endif
}

static inline uint64_t clock_ticks(void)
{
	if (__builtin_expect(clock_is_counter(), 1)) {
		struct clock_halves tick = clock_read_counter();
		return tick.high << 32 | tick.low;
	}
	return clock_ticks_slow();
}

#endif
