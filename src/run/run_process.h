/* SPDX-License-Identifier: Apache-2.0
 *
 * run_process.h: what /proc says about another process, and what became of it. A process is known by its id and its start
 * time, since ids are used again.
 */
#ifndef RUN_RUN_PROCESS_H
#define RUN_RUN_PROCESS_H

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

/* Of the process with this id in /proc. False when there is no such process. */
bool process_read(struct process_facts *facts, pid_t pid);

/* From where we look. A process has an id in its own pid namespace and in each one above, and /proc may be mounted for another
 * namespace than ours (`unshare --pid` without --mount-proc). */
struct process_view {
	uint64_t pid_namespace; /* ours; 0: not known */
	pid_t self;             /* our id in /proc; 0: there is no /proc */
	int depth;              /* how many namespaces lie between that of /proc and ours */
};
void process_view_init(struct process_view *view);

struct process_ids {
	pid_t here;    /* for system calls; 0: we cannot see it */
	pid_t in_proc; /* 0: not there */
};

/* Finds a process by what it calls itself: its id in its own namespace (0: ours). The list of all processes is read only when that
 * is not ours. False when it is gone; ids->here is set even then where it is certain. */
bool process_find(struct process_ids *ids, const struct process_view *view, pid_t pid, uint64_t start_time,
                  uint64_t pid_namespace);

/* The id in /proc of a process that we know from a system call; 0: not there. */
pid_t process_in_proc(const struct process_view *view, pid_t here);

struct run_reaped { /* that was waited for */
	pid_t pid;
	uint64_t start_time; /* 0: not known */
	int wait_status;
};

struct process_io {
	bool is_known;
	uint64_t read_bytes, write_bytes; /* from and to the disk */
};
void process_read_io(struct process_io *io, pid_t pid);

/* A pidfd that becomes readable when the process ends; -1 when the kernel has none for us. */
int process_open(pid_t pid);

/* Status, as from wait(), of a process that ended, by its id in /proc (0: none) and its pidfd (-1: none). Kernels before 6.15 know it only until its parent
 * has waited for it. False: nobody can say. */
bool process_status(pid_t pid, uint64_t start_time, int pidfd, int *wait_status);

#endif
