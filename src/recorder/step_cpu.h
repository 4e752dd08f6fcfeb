/* SPDX-License-Identifier: Apache-2.0
 *
 * step_cpu.h: the CPU time that the thread which marks a step spends in it, how often it stopped there to wait for something, and its page
 * faults. Where it never stopped, all the rest of the step's duration is waiting for a processor. The kernel has to be asked, so that is
 * done only in steps so long that the questions take less than a thousandth of them; whether the next one is, the last one tells.
 */
#ifndef RECORDER_STEP_CPU_H
#define RECORDER_STEP_CPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct thread_use {
	uint64_t cpu_ns;
	uint64_t waits; /* it gave its processor away itself: a lock, a file, a pipe, a device that is not polled, sleep */
	uint64_t page_faults; /* that read from no disk: memory it touched for the first time since it got it */
};

struct step_cpu {
	uint64_t cost_ticks;  /* of a step's questions; 0: there are none */
	uint64_t begin_ticks; /* of the open step */
	uint64_t last_ticks;  /* that the last step took */
	struct thread_use begin;
	pthread_t thread;
	bool is_read;
};

/* Measures what the questions cost. Forgets the last step. */
void step_cpu_start(struct step_cpu *cpu);

/* What the questions of a step cost. False: the kernel does not answer them. */
bool step_cpu_cost_ns(const struct step_cpu *cpu, double *ns);

/* Under the lock of the steps. */
void step_cpu_begin(struct step_cpu *cpu);
/* False: it is not known, as the step before was too short, another thread began this one, or the kernel does not say it. */
bool step_cpu_end(struct step_cpu *cpu, struct thread_use *use);

#endif
