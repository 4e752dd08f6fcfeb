/* SPDX-License-Identifier: Apache-2.0
 *
 * run_child.h: the program that `stepscope run` starts: fork, exec, and its use of resources after its end.
 */
#ifndef RUN_RUN_CHILD_H
#define RUN_RUN_CHILD_H

#include "run/run_options.h"
#include "run/run_process.h"
#include "run/run_signals.h"

struct run_directory;

struct run_child {
	pid_t pid; /* 0: not started */
	bool is_running;
	int exec_errno; /* why it could not be started; 0: it started */
	int wait_status;
	int64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	/* of the program and the processes it waited for, once it has ended: */
	int64_t user_ns, system_ns;
	int64_t max_rss_bytes; /* of the largest process */
	int64_t page_faults;   /* page faults that read from the disk */
	int64_t switches, preemptions;
	struct process_io io;
};

/* The environment of the program: ours, with STEPSCOPE_* set for a run in `directory` (NULL: nothing is recorded).
 * NULL-terminated; free it with run_environment_free(). */
char **run_environment_new(const struct run_directory *directory, const struct run_settings *settings);
void run_environment_free(char **environment);

/* Starts argv[0], looked up in PATH. On failure, exec_errno has the reason. */
void run_child_start(struct run_child *child, char *const *argv, char *const *environment,
                     const struct run_signals *signals);

/* Reaps any child that has ended, without blocking. Orphans of the program become our children too; as the first
 * process of a container we also get the orphans of others. Returns false if no child has ended. If the program itself
 * ended, `child` is completed. */
bool run_child_reap(struct run_child *child, const struct process_view *view, struct run_reaped *reaped);

/* Returns the exit status a shell would give. */
int run_exit_status(const struct run_child *child);

#endif
