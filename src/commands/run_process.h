/* SPDX-License-Identifier: Apache-2.0
 *
 * run_process.h: what /proc says about another process, and what became of it. A process is known by its id and its start
 * time, since ids are used again.
 */
#ifndef COMMANDS_RUN_PROCESS_H
#define COMMANDS_RUN_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_facts {
	pid_t pid, parent;
	char state;                  /* 'Z' and 'X': dead */
	uint64_t start_time;         /* clock ticks since boot */
	uint64_t user_ns, system_ns; /* with children that were waited for */
	int wait_status;             /* as from wait(), of a dead process nobody has waited for yet */
};

/* False when there is no such process. */
bool process_read(struct process_facts *facts, pid_t pid);

struct process_io {
	bool is_known;
	uint64_t read_bytes, write_bytes; /* from and to the disk */
};
void process_read_io(struct process_io *io, pid_t pid);

/* A pidfd that becomes readable when the process ends; -1 when the kernel has none for us. */
int process_open(pid_t pid);

/* Status, as from wait(), of a process that ended, by its pidfd (-1: none). Kernels before 6.15 know it only until its parent
 * has waited for it. False: nobody can say. */
bool process_status(pid_t pid, uint64_t start_time, int pidfd, int *wait_status);

#endif
