/* SPDX-License-Identifier: Apache-2.0
 *
 * step_cpu.c: see the header.
 */
#include "recorder/step_cpu.h"

#include "recorder/clock.h"

#include <sys/resource.h>
#include <time.h>

#define MOST_COST 1000 /* a step takes so many times what the questions cost */
#define ROUNDS 8

static struct thread_use ask(void)
{
	struct timespec now = {0};
	struct rusage usage = {0};
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	getrusage(RUSAGE_THREAD, &usage);
	return (struct thread_use){(uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, (uint64_t)usage.ru_nvcsw};
}

void step_cpu_start(struct step_cpu *cpu)
{
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = clock_ticks();
		(void)ask();
		uint64_t ticks = clock_ticks() - start;
		if (ticks < best)
			best = ticks;
	}
	*cpu = (struct step_cpu){.cost_ticks = best ? 2 * best : 1};
}

double step_cpu_cost_ns(const struct step_cpu *cpu)
{
	return (double)cpu->cost_ticks * 1e9 / (double)recorder_clock.tick_hz;
}

void step_cpu_begin(struct step_cpu *cpu)
{
	cpu->is_read = cpu->cost_ticks && cpu->last_ticks / MOST_COST >= cpu->cost_ticks;
	cpu->thread = pthread_self();
	cpu->begin_ticks = clock_ticks();
	if (cpu->is_read)
		cpu->begin = ask();
}

bool step_cpu_end(struct step_cpu *cpu, struct thread_use *use)
{
	bool is_known = cpu->is_read && pthread_equal(cpu->thread, pthread_self());
	if (is_known) {
		struct thread_use now = ask();
		*use = (struct thread_use){now.cpu_ns - cpu->begin.cpu_ns, now.waits - cpu->begin.waits};
	}
	cpu->last_ticks = clock_ticks() - cpu->begin_ticks;
	return is_known;
}
