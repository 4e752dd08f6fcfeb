/* SPDX-License-Identifier: Apache-2.0
 *
 * measure.h: timing on a shared machine. A repetition counts only if the kernel did not take the processor from the
 * thread: no involuntary context switch, and wall time at most 3 % above CPU time.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MEASURE_MAX 4096

struct measure {
	const char *name;
	double kept[MEASURE_MAX]; /* ns per unit of work, of undisturbed repetitions */
	int kept_count, total;
	int64_t wall, cpu; /* at the start of the repetition */
	long switches;
};

static inline int64_t measure_clock(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline long measure_switches(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

static inline void measure_start(struct measure *measure)
{
	measure->switches = measure_switches();
	measure->cpu = measure_clock(CLOCK_THREAD_CPUTIME_ID);
	measure->wall = measure_clock(CLOCK_MONOTONIC);
}

static inline void measure_stop(struct measure *measure, int64_t units)
{
	int64_t wall = measure_clock(CLOCK_MONOTONIC) - measure->wall;
	int64_t cpu = measure_clock(CLOCK_THREAD_CPUTIME_ID) - measure->cpu;
	bool is_disturbed = measure_switches() != measure->switches || (double)wall > (double)cpu * 1.03;
	measure->total++;
	if (!is_disturbed && measure->kept_count < MEASURE_MAX)
		measure->kept[measure->kept_count++] = (double)wall / (double)units;
}

static inline int measure_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Prints "name TAB median TAB least TAB kept TAB total"; median and least are nan if nothing was kept. */
static inline void measure_print(struct measure *measure)
{
	int n = measure->kept_count;
	qsort(measure->kept, (size_t)n, sizeof(double), measure_compare);
	double median = n ? (measure->kept[n / 2] + measure->kept[(n - 1) / 2]) / 2 : 0.0 / 0.0;
	printf("%s\t%.4f\t%.4f\t%d\t%d\n", measure->name, median, n ? measure->kept[0] : 0.0 / 0.0, n, measure->total);
}

static inline bool measure_pin(int processor)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

/* Gives this thread priority over all normal processes. Returns false if that is not allowed. */
static inline bool measure_go_first(bool is_first)
{
	struct sched_param parameter = {.sched_priority = is_first ? 10 : 0};
	return pthread_setschedparam(pthread_self(), is_first ? SCHED_FIFO : SCHED_OTHER, &parameter) == 0;
}

#endif
