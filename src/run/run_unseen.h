/* SPDX-License-Identifier: Apache-2.0
 *
 * run_unseen.h: processes with PyTorch that stepscope could not enter. Python was started with -I, -E or -S, is linked
 * statically, or lost its environment. Such processes have libtorch_cpu in their address space, but not libstepscope.
 */
#ifndef RUN_RUN_UNSEEN_H
#define RUN_RUN_UNSEEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RUN_UNSEEN_MAX 64

struct run_unseen {
	struct unseen_process {
		pid_t pid;
		char flag;         /* flag of Python's command line that keeps stepscope out: 'I', 'E', 'S'; 0: no such
		                    * flag */
		bool is_off_path;  /* its PYTHONPATH does not name our folder */
		bool is_excused;   /* it starts ranks, or it loaded stepscope after all */
		bool is_importing; /* it was importing PyTorch at the last look: stepscope loads after that */
		uint32_t looks;    /* number of looks while it was not importing */
	} processes[RUN_UNSEEN_MAX];
	int count;
	unsigned ticks;
};

/* Looks at the program and its descendants. Call once a second; after the first seconds most calls do nothing. */
void run_unseen_tick(struct run_unseen *unseen, pid_t program);

/* Call if the process records after all. */
void run_unseen_excuse(struct run_unseen *unseen, pid_t pid);

enum unseen_reason {
	UNSEEN_NONE,      /* there is no such process */
	UNSEEN_IMPORTING, /* it was still importing PyTorch at the last look */
	UNSEEN_FLAG,      /* Python was started with the flag */
	UNSEEN_OFF_PATH,  /* its PYTHONPATH does not name our folder */
	UNSEEN_NO_PACKAGE /* its Python did not load our package, for an unknown reason */
};

struct unseen_found {
	enum unseen_reason reason;
	pid_t pid;
	char flag; /* UNSEEN_FLAG: 'I', 'E' or 'S' */
};

/* Returns the first process that is certain to be unseen. */
struct unseen_found run_unseen_find(const struct run_unseen *unseen);

#endif
