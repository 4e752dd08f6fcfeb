/* SPDX-License-Identifier: Apache-2.0
 *
 * step_cpu.h: the CPU time, waits and page faults of the thread that marks a step. If it never waited, the rest of the
 * step's duration was spent waiting for a processor. These figures cost system calls. They are read only if the calls
 * take less than a thousandth of a step, judged by the duration of the last step.
 */
#ifndef RECORDER_STEP_CPU_H
#define RECORDER_STEP_CPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct thread_use {
	uint64_t cpu_ns;
	uint64_t waits; /* times it gave up its processor: a lock, a file, a pipe, a device that is not polled, sleep */
	uint64_t page_faults; /* faults that read from no disk: first use of memory */
};

struct step_cpu {
	uint64_t cost_ticks;  /* cost of the system calls of a step; 0: not available */
	uint64_t begin_ticks; /* start of the open step */
	uint64_t last_ticks;  /* duration of the last step */
	struct thread_use begin;
	pthread_t thread;
	bool is_read;
};

/* Measures the cost of the system calls. Forgets the last step. */
void step_cpu_start(struct step_cpu *cpu);

/* Sets *ns to the cost of the system calls of a step. Returns false if the kernel does not provide the figures. */
bool step_cpu_cost_ns(const struct step_cpu *cpu, double *ns);

/* The caller holds the lock of steps. */
void step_cpu_begin(struct step_cpu *cpu);
/* Returns false if the figures are unknown: the previous step was too short, another thread began this step, or the
 * kernel does not provide them. */
bool step_cpu_end(struct step_cpu *cpu, struct thread_use *use);

#endif
