/* SPDX-License-Identifier: Apache-2.0
 *
 * test_clock.c: choice of the unit, the way without the counter, and the change from one to the other. Includes the source, to
 * say what the kernel thinks of the counter.
 */
#include <fcntl.h>

static const char *clocksource; /* path of a file to read instead; NULL: the kernel's */

__attribute__((unused)) /* only x86-64 asks */
static int
open_clocksource(const char *path, int flags)
{
	return open(clocksource ? clocksource : path, flags);
}

#define open open_clocksource
#include "recorder/clock.c" /* NOLINT(bugprone-suspicious-include) */
#undef open

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_quantum_is_a_quarter_of_a_step_and_at_most_2_ns(void **state)
{
	assert_int_equal(choose_shift(1000000000, 1), 1);  /* 1 ns ticks: 2 ns */
	assert_int_equal(choose_shift(2600000000, 26), 2); /* 10 ns steps: 1.5 ns */
	assert_int_equal(choose_shift(3000000000, 2), 2);
	assert_int_equal(choose_shift(24000000, 1), 0); /* a slow counter is kept as it is */
	assert_true(choose_shift(1000000000, 1000000) <= 20);
	for (uint64_t hz = 1000000; hz < 6000000000; hz = hz * 3 / 2)
		for (uint32_t step = 1; step < 100000; step *= 3) {
			uint32_t shift = choose_shift(hz, step);
			bool is_fine = (1ull << shift) <= (step + 3) / 4 + 1;
			assert_true(shift == 0 || is_fine || (double)(1ull << shift) / (double)hz <= 2e-9);
		}
}

static void ticks_go_up(void **state)
{
	recorder_clock = (struct recorder_clock){0};
	clock_start();
	uint64_t last = clock_ticks();
	for (int i = 0; i < 100000; i++) {
		uint64_t now = clock_ticks();
		assert_true(now >= last);
		last = now;
	}
	uint64_t hz = recorder_clock.tick_hz;
	clock_start(); /* a second session goes on */
	assert_int_equal(recorder_clock.tick_hz, hz);
	assert_true(clock_ticks() >= last);
}

static void without_the_counter_ticks_are_nanoseconds(void **state)
{
	recorder_clock = (struct recorder_clock){.tick_hz = 1000000000};
	recorder_clock.kind = STEPSCOPE_CLOCK_MONOTONIC;
	int64_t before = clock_raw_ns();
	uint64_t tick = clock_ticks();
	int64_t after = clock_raw_ns();
	assert_in_range(tick, (uint64_t)before, (uint64_t)after);
	assert_false(clock_recheck());
	struct stepscope_anchor anchor;
	clock_anchor(&anchor);
	assert_int_equal(anchor.clock, STEPSCOPE_CLOCK_MONOTONIC);
	assert_in_range(anchor.tick, (uint64_t)anchor.raw_ns - anchor.window_ticks,
	                (uint64_t)anchor.raw_ns + anchor.window_ticks);
}

/* The kernel changes its mind: a file stands in for its own. */
static void a_counter_that_is_no_longer_trusted_is_continued(void **state)
{
#if defined(__x86_64__)
	char path[] = "/tmp/stepscope-test-XXXXXX";
	int fd = mkstemp(path);
	recorder_clock = (struct recorder_clock){0};
	clock_start();
	if (!clock_is_counter())
		skip();
	assert_int_equal(write(fd, "hpet\n", 5), 5);
	close(fd);
	clocksource = path;
	/* the nanoseconds are around the ticks, wherever we have to wait for a processor */
	int64_t before_ns = clock_raw_ns();
	uint64_t hz = recorder_clock.tick_hz, before = clock_ticks();
	assert_true(clock_recheck());
	assert_false(clock_is_counter());
	assert_int_equal(recorder_clock.tick_hz, hz); /* the unit stays */
	assert_int_equal(recorder_clock.kind, STEPSCOPE_CLOCK_MONOTONIC);
	uint64_t last = before;
	for (int i = 0; i < 10000; i++) {
		uint64_t now = clock_ticks();
		assert_true(now >= last);
		last = now;
	}
	double ticks_ns = (double)(last - before) * 1e9 / (double)hz, ns = (double)(clock_raw_ns() - before_ns);
	assert_true(ticks_ns <= ns * 1.1 + 1e6);
	assert_false(clock_recheck()); /* for good */
	clocksource = NULL;
	unlink(path);
#else
	skip();
#endif
}

static void a_kernel_that_cannot_be_asked_has_not_changed_its_mind(void **state)
{
#if defined(__x86_64__)
	recorder_clock = (struct recorder_clock){0};
	clock_start();
	if (!clock_is_counter())
		skip();
	clocksource = "/nowhere/at/all"; /* as after a chroot() */
	assert_false(clock_recheck());
	clocksource = "/dev/null";
	assert_false(clock_recheck());
	assert_true(clock_is_counter());
	clocksource = NULL;
#else
	skip();
#endif
}

static void an_anchor_names_one_instant(void **state)
{
	recorder_clock = (struct recorder_clock){0};
	clock_start();
	struct stepscope_anchor first, second;
	clock_anchor(&first);
	clock_anchor(&second);
	assert_true(second.tick > first.tick && second.raw_ns > first.raw_ns);
	assert_int_equal(first.clock, recorder_clock.kind);
	/* monotonic and realtime advance as raw does, to within the slewing of a running NTP and a preemption */
	int64_t raw = second.raw_ns - first.raw_ns;
	assert_true(llabs(second.monotonic_ns - first.monotonic_ns - raw) < 50000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_quantum_is_a_quarter_of_a_step_and_at_most_2_ns),
		cmocka_unit_test(ticks_go_up),
		cmocka_unit_test(without_the_counter_ticks_are_nanoseconds),
		cmocka_unit_test(a_counter_that_is_no_longer_trusted_is_continued),
		cmocka_unit_test(a_kernel_that_cannot_be_asked_has_not_changed_its_mind),
		cmocka_unit_test(an_anchor_names_one_instant),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
