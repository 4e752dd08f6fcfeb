/* SPDX-License-Identifier: Apache-2.0
 *
 * run_watch.h: the processes that record into the run directory. Finds them by their files (inotify, and a look at the
 * directory now and then), learns of their end by pidfds, and rescues what a killed one left behind. Costs the same for the
 * ten thousandth process as for the first.
 *
 * Processes of other machines or of another `stepscope run` in the same directory are known but left to their own parents.
 */
#ifndef RUN_RUN_WATCH_H
#define RUN_RUN_WATCH_H

#include "format/fold.h"
#include "run/run_directory.h"
#include "run/run_process.h"

#include <stepscope/format.h>
#include <sys/types.h>
#include <time.h>

struct watched {
	pid_t pid; /* as it calls itself, in its own pid namespace */
	uint64_t start_time;
	uint64_t pid_namespace; /* 0: not known */
	struct process_ids ids;
	char *stem;      /* "<host>.<pid>.<start time>" */
	uint32_t newest; /* highest segment number seen */
	int32_t rank;    /* -1: not known */
	uint32_t role;   /* enum stepscope_role */
	pid_t parent;
	bool is_ours; /* a descendant of ours */
	bool is_alive;
	bool has_status;
	int wait_status;
	struct fold_result *rescue; /* what was left in its pool; NULL: nothing */
	char *rescue_problem;       /* why that could not be brought into the file; NULL: it was, or there was none */
	int pidfd;                  /* -1: asked for once a second instead */
	int pool_fd;                /* of a pool without a file; -1: none */
	int pool_tries;
	uint32_t next; /* in its bucket */
};

struct new_file { /* whose header was not written yet when we looked */
	char name[256];
	int tries; /* left */
};

struct run_watch {
	struct run_directory *directory;
	int epoll;       /* pidfds are added with data = index of the process */
	int pidfd_limit; /* descriptors from this number on are kept free for files */
	pid_t program;   /* the process that was started by us */
	struct process_view view;
	uint64_t own_start_time;
	uint8_t boot_id[16];
	struct watched *items;
	uint32_t count, capacity;
	uint32_t *buckets; /* index + 1 */
	uint32_t bucket_count;
	uint32_t polled;               /* living processes without pidfd */
	uint32_t living;               /* of ours */
	struct run_reaped reaped[256]; /* the last ones, for processes whose files are seen later */
	uint32_t reaped_count;
	int inotify; /* readable when files have come; -1: none */
	struct new_file new_files[32];
	int new_count;
	struct timespec seen_change;
	int64_t next_scan_ns;
	/* called for every process of ours that ended, after its rescue */
	void (*on_end)(void *context, const struct watched *process);
	void *context;
};

void run_watch_init(struct run_watch *watch, struct run_directory *directory, int epoll);
void run_watch_release(struct run_watch *watch);

/* Once a second: new files, processes without pidfd, pools without a name. `is_last`: look at the directory whatever its time. */
void run_watch_tick(struct run_watch *watch, bool is_last);

/* The inotify descriptor became readable. */
void run_watch_files(struct run_watch *watch);
/* Some milliseconds later, as long as new_count is not 0. */
void run_watch_retry(struct run_watch *watch);

/* We waited for this process. */
void run_watch_note_status(struct run_watch *watch, const struct run_reaped *reaped);

/* Is the namespace ours, so that a process there calls itself by the id that we know it by? */
bool run_watch_is_neighbour(const struct run_watch *watch, uint64_t pid_namespace);

/* Is a pool of the process still there, so that its file is not complete? */
bool run_watch_has_pool(const struct watched *process);

/* The pidfd of items[index] became readable. */
void run_watch_ended(struct run_watch *watch, uint32_t index);

#endif
