/* SPDX-License-Identifier: Apache-2.0
 *
 * run_unseen.h: processes with PyTorch that we could not get into: Python was started with -I, -E or -S, is linked statically, or its
 * environment was taken away. They have libtorch_cpu in their address space and libstepscope not.
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
		char flag;         /* of Python's command line, that keeps us out: 'I', 'E', 'S'; 0: none */
		bool is_off_path;  /* its PYTHONPATH does not name us */
		bool is_excused;   /* starts ranks, or we came in after all */
		bool is_importing; /* PyTorch, when it was last looked at: then we come in */
		uint32_t looks;    /* while it was not */
	} processes[RUN_UNSEEN_MAX];
	int count;
	unsigned ticks;
};

/* Looks at the program and what it started; once a second does nothing most times. */
void run_unseen_tick(struct run_unseen *unseen, pid_t program);

/* The process records, after all. */
void run_unseen_excuse(struct run_unseen *unseen, pid_t pid);

enum unseen_reason {
	UNSEEN_NONE,      /* there is no such process */
	UNSEEN_IMPORTING, /* it was still importing PyTorch at the last look */
	UNSEEN_FLAG,      /* Python was started with the flag */
	UNSEEN_OFF_PATH,  /* its PYTHONPATH does not name us */
	UNSEEN_NO_PACKAGE /* its Python did not load our package, and we do not know why */
};

struct unseen_found {
	enum unseen_reason reason;
	pid_t pid;
	char flag; /* UNSEEN_FLAG: 'I', 'E' or 'S' */
};

/* Returns the first process that is certain to be unseen. */
struct unseen_found run_unseen_find(const struct run_unseen *unseen);

#endif
