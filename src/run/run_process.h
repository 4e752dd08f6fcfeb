/* SPDX-License-Identifier: Apache-2.0
 *
 * run_process.h: facts from /proc about another process, and its exit status. A process is identified by its id and
 * its start time, because ids are reused.
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
	int wait_status;             /* as from wait(), of a dead process that was not waited for yet */
};

/* Reads the process with this id in /proc. Returns false if it does not exist. */
bool process_read(struct process_facts *facts, pid_t pid);

/* How this process sees others. A process has an id in its own pid namespace and in each namespace above. /proc may
 * belong to another namespace than ours (`unshare --pid` without --mount-proc). */
struct process_view {
	uint64_t pid_namespace; /* ours; 0: unknown */
	pid_t self;             /* our id in /proc; 0: there is no /proc */
	int depth;              /* number of levels from the namespace of /proc down to ours */
};
void process_view_init(struct process_view *view);

struct process_ids {
	pid_t here;    /* for system calls; 0: not visible to us */
	pid_t in_proc; /* 0: not in /proc */
};

/* Finds a process by its id in its own namespace (0: ours). The list of all processes is read only if that
 * namespace, or the one of /proc, is not ours. Returns false if the process is gone; ids->here is set even then if
 * it is certain. */
bool process_find(struct process_ids *ids, const struct process_view *view, pid_t pid, uint64_t start_time,
                  uint64_t pid_namespace);

/* Returns the id in /proc of a process known from a system call; 0: not in /proc. */
pid_t process_in_proc(const struct process_view *view, pid_t here);

struct run_reaped { /* a process that was waited for */
	pid_t pid;
	uint64_t start_time; /* 0: unknown */
	int wait_status;
};

struct process_io {
	bool is_known;
	uint64_t read_bytes, write_bytes; /* from and to the disk */
};
void process_read_io(struct process_io *io, pid_t pid);

/* Returns a pidfd, which becomes readable when the process ends, or -1 if the kernel refuses. */
int process_open(pid_t pid);

/* Finds the status, as from wait(), of a process that ended, by its id in /proc (0: unknown) and its pidfd (-1: not
 * open). Kernels before 6.15 know it only until the parent has waited for the process. Returns false if the status is
 * unknown. */
bool process_status(pid_t pid, uint64_t start_time, int pidfd, int *wait_status);

#endif
