/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h: ticks, the time unit of events. They come from the processor's counter if it is invariant and the kernel
 * trusts it, otherwise from CLOCK_MONOTONIC_RAW. Ticks never decrease within a process. If the kernel stops trusting
 * the counter at run time, later ticks are computed from CLOCK_MONOTONIC_RAW in the same unit, so that time stays
 * continuous.
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
	uint32_t shift;       /* the file stores ticks divided by 2^shift */
	uint64_t origin_tick; /* not is_counter: tick = origin_tick + (raw - origin_ns) * tick_hz / 1e9 */
	int64_t origin_ns;
};
extern struct recorder_clock recorder_clock;

void clock_start(void); /* chooses and calibrates the clock; takes about 0.3 ms */
uint64_t clock_ticks_slow(void);
void clock_anchor(struct stepscope_anchor *anchor); /* best of 16 bracketed readings */
/* Asks the kernel again whether it trusts the counter. Returns true if the clock was replaced just now. */
bool clock_recheck(void);
int64_t clock_raw_ns(void);

/* The two halves of a tick: an event's head word holds the low one; the high one changes once in seconds. */
struct clock_halves {
	uint64_t low, high; /* below 2^32 each */
};

/* Reads the processor's counter; call it only if recorder_clock.is_counter. The memory clobber keeps the compiler from
 * moving memory accesses across the read. */
static inline __attribute__((always_inline)) struct clock_halves clock_read_counter(void)
{
	struct clock_halves tick;
#if defined(STEPSCOPE_FAKE_CLOCK) /* bench/record: measures the bookkeeping without the clock */
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
	return recorder_clock.is_counter; /* one instruction; gcc emits three for the atomic load */
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
