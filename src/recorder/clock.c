/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.c: chooses, calibrates and watches the clock. clock.h has the read for each event.
 */
#include "recorder/clock.h"

#include "base/hot.h"
#include "base/time_now.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* The first of the hot variables, which together are smaller than this alignment, so no page boundary is between
 * them. */
HOT struct recorder_clock recorder_clock __attribute__((aligned(512)));

int64_t clock_raw_ns(void)
{
	return time_now_ns(CLOCK_MONOTONIC_RAW);
}

uint64_t clock_ticks_slow(void)
{
	(void)__atomic_load_n(&recorder_clock.is_counter, __ATOMIC_ACQUIRE); /* false: the origin is set */
	uint64_t ns = (uint64_t)(clock_raw_ns() - recorder_clock.origin_ns);
	__extension__ typedef unsigned __int128 wide;
	return recorder_clock.origin_tick + (uint64_t)((wide)ns * recorder_clock.tick_hz / 1000000000u);
}

enum trust {
	TRUST_UNKNOWN, /* the kernel cannot be asked: /sys is missing, as after a chroot(), or no descriptor is free */
	TRUST_NO,
	TRUST_YES
};

#if defined(__x86_64__)
static enum trust ask_kernel(void)
{
	char name[32] = "";
	int fd = open(CLOCKSOURCE, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return TRUST_UNKNOWN;
	ssize_t length = read(fd, name, sizeof(name) - 1);
	close(fd);
	if (length <= 0)
		return TRUST_UNKNOWN;
	return strncmp(name, "tsc", 3) == 0 || strncmp(name, "kvm-clock", 9) == 0 ? TRUST_YES : TRUST_NO;
}

static bool counter_is_usable(void)
{
	unsigned a, b, c, d;
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8)) /* invariant: constant rate, never stops */
		return false;
	return ask_kernel() == TRUST_YES;
}
#elif defined(__aarch64__)
static enum trust ask_kernel(void)
{
	return TRUST_YES; /* the architecture guarantees the virtual counter */
}
static bool counter_is_usable(void)
{
	return true;
}
#else
static enum trust ask_kernel(void)
{
	return TRUST_NO;
}
static bool counter_is_usable(void)
{
	return false;
}
#endif

/* Returns the nominal rate, accurate to about 0.1 %. It is used only for a recording that dies before its second
 * anchor. */
static uint64_t measure_hz(void)
{
#if defined(__aarch64__)
	uint64_t hz;
	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz;
#else
	int64_t ns0 = clock_raw_ns(), ns1;
	uint64_t tick0 = clock_ticks(), tick1;
	do {
		ns1 = clock_raw_ns();
		tick1 = clock_ticks();
	} while (ns1 - ns0 < 200000);
	return (uint64_t)((double)(tick1 - tick0) * 1e9 / (double)(ns1 - ns0));
#endif
}

static uint32_t measure_step(void)
{
	uint64_t smallest = UINT32_MAX, last = clock_ticks();
	for (int i = 0; i < 200; i++) {
		uint64_t now = clock_ticks();
		if (now > last && now - last < smallest)
			smallest = now - last;
		last = now;
	}
	return smallest == UINT32_MAX ? 1 : (uint32_t)smallest;
}

/* Returns the shift of ticks in the file. A resolution finer than a quarter of the smallest readable difference, or
 * than 2 ns, is noise and costs bytes. */
static uint32_t choose_shift(uint64_t hz, uint32_t step)
{
	uint32_t shift = 0;
	while (shift < 20 && (4ull << shift << 1 <= step + 3 || (double)(2ull << shift) / (double)hz <= 2e-9))
		shift++;
	return shift;
}

void clock_start(void)
{
	if (recorder_clock.tick_hz) { /* a second session, or a forked child: ticks continue */
		(void)clock_recheck();
		return;
	}
	recorder_clock.origin_ns = 0;
	recorder_clock.origin_tick = 0;
	recorder_clock.tick_hz = 1000000000;
	recorder_clock.kind = STEPSCOPE_CLOCK_MONOTONIC;
	if (counter_is_usable()) {
		__atomic_store_n(&recorder_clock.is_counter, true, __ATOMIC_RELAXED);
#if defined(__aarch64__)
		recorder_clock.kind = STEPSCOPE_CLOCK_CNTVCT;
#else
		recorder_clock.kind = STEPSCOPE_CLOCK_TSC;
#endif
		recorder_clock.tick_hz = measure_hz();
	}
	recorder_clock.tick_step = measure_step();
	recorder_clock.shift = choose_shift(recorder_clock.tick_hz, recorder_clock.tick_step);
}

bool clock_recheck(void)
{
	if (!clock_is_counter() || ask_kernel() != TRUST_NO)
		return false;
	recorder_clock.origin_ns = clock_raw_ns();
	recorder_clock.origin_tick = clock_ticks();
	recorder_clock.kind = STEPSCOPE_CLOCK_MONOTONIC;
	__atomic_store_n(&recorder_clock.is_counter, false, __ATOMIC_RELEASE);
	return true;
}

void clock_anchor(struct stepscope_anchor *anchor)
{
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < 16; i++) {
		uint64_t before = clock_ticks();
		int64_t raw = clock_raw_ns();
		uint64_t after = clock_ticks();
		if (after - before >= best)
			continue;
		best = after - before;
		anchor->tick = before + best / 2;
		anchor->raw_ns = raw;
		anchor->window_ticks = best > UINT32_MAX ? UINT32_MAX : (uint32_t)best;
	}
	int64_t raw0 = clock_raw_ns();
	anchor->monotonic_ns = time_now_ns(CLOCK_MONOTONIC);
	anchor->realtime_ns = time_now_ns(CLOCK_REALTIME);
	int64_t raw1 = clock_raw_ns();
	/* the three clocks are read a few tens of ns apart: move the other two to the instant of the tick */
	anchor->monotonic_ns -= (raw0 + raw1) / 2 - anchor->raw_ns;
	anchor->realtime_ns -= (raw0 + raw1) / 2 - anchor->raw_ns;
	anchor->clock = recorder_clock.kind;
}
