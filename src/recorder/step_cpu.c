/* SPDX-License-Identifier: Apache-2.0
 *
 * step_cpu.c: see the header.
 */
#include "recorder/step_cpu.h"

#include "base/time_now.h"
#include "recorder/clock.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#define MOST_COST 1000 /* a step must take this many times the cost of the system calls */
#define ROUNDS 8

/* Returns false if the kernel does not provide the figures; a sandbox may forbid the calls. errno stays unchanged. */
static bool step_cpu_ask(struct thread_use *use)
{
	int before = errno;
	struct timespec now;
	struct rusage usage;
	bool is_known = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0 && getrusage(RUSAGE_THREAD, &usage) == 0;
	errno = before;
	if (is_known)
		*use = (struct thread_use){(uint64_t)timespec_ns(&now), (uint64_t)usage.ru_nvcsw,
		                           (uint64_t)usage.ru_minflt};
	return is_known;
}

void step_cpu_start(struct step_cpu *cpu)
{
	uint64_t best = UINT64_MAX;
	*cpu = (struct step_cpu){0};
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = clock_ticks();
		if (!step_cpu_ask(&cpu->begin))
			return;
		uint64_t ticks = clock_ticks() - start;
		if (ticks < best)
			best = ticks;
	}
	cpu->cost_ticks = best ? 2 * best : 1;
}

bool step_cpu_cost_ns(const struct step_cpu *cpu, double *ns)
{
	*ns = (double)cpu->cost_ticks * 1e9 / (double)recorder_clock.tick_hz;
	return cpu->cost_ticks > 0;
}

void step_cpu_begin(struct step_cpu *cpu)
{
	cpu->thread = pthread_self();
	cpu->begin_ticks = clock_ticks();
	cpu->is_read = cpu->cost_ticks && cpu->last_ticks / MOST_COST >= cpu->cost_ticks && step_cpu_ask(&cpu->begin);
}

bool step_cpu_end(struct step_cpu *cpu, struct thread_use *use)
{
	struct thread_use now;
	bool is_known = cpu->is_read && pthread_equal(cpu->thread, pthread_self()) && step_cpu_ask(&now);
	if (is_known)
		*use = (struct thread_use){now.cpu_ns - cpu->begin.cpu_ns, now.waits - cpu->begin.waits,
		                           now.page_faults - cpu->begin.page_faults};
	cpu->last_ticks = clock_ticks() - cpu->begin_ticks;
	return is_known;
}
