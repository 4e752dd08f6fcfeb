/* SPDX-License-Identifier: Apache-2.0
 *
 * run_watch.h: the processes that record into the run directory. The watch finds processes by their files (inotify,
 * and a listing of the directory now and then). Pidfds tell it when they end, and it rescues the events that a killed
 * process left in memory. The ten thousandth process costs as little as the first.
 *
 * Processes of other machines, or of another `stepscope run` in the same directory, are known but left to their own
 * parents.
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
	pid_t pid; /* its own id, in its own pid namespace */
	uint64_t start_time;
	uint64_t pid_namespace; /* 0: unknown */
	struct process_ids ids;
	char *stem;      /* "<host>.<pid>.<start time>" */
	uint32_t newest; /* highest segment number seen */
	int32_t rank;    /* -1: unknown */
	uint32_t role;   /* enum stepscope_role */
	pid_t parent;
	bool is_ours; /* a descendant of this process */
	bool is_alive;
	bool has_status;
	int wait_status;
	struct fold_result *rescue; /* the place and rest found in its pool; NULL: nothing was rescued */
	char *rescue_problem;       /* why the rescue failed; NULL: it did not fail */
	int pidfd;                  /* -1: polled once a second instead */
	int pool_fd;                /* of a pool without a file; -1: not held */
	int pool_tries;
	uint32_t next; /* index + 1 of the next item in its bucket; 0: last */
};

struct new_file { /* a file whose header was incomplete at the last look */
	char name[256];
	int tries; /* tries left */
};

struct run_watch {
	struct run_directory *directory;
	int epoll;       /* data of a pidfd's event = index of the process */
	int pidfd_limit; /* descriptors from this number on stay free for files */
	pid_t program;   /* the process that `stepscope run` started */
	struct process_view view;
	uint64_t own_start_time;
	uint8_t boot_id[16];
	struct watched *items;
	uint32_t count, capacity;
	uint32_t *buckets; /* index + 1 */
	uint32_t bucket_count;
	uint32_t polled;               /* living processes without a pidfd */
	uint32_t living;               /* living descendants of this process */
	struct run_reaped reaped[256]; /* the newest ones, for processes whose files are seen later */
	uint32_t reaped_count;
	int inotify; /* readable when new files exist; -1: no inotify */
	struct new_file new_files[32];
	int new_count;
	struct timespec seen_change;
	int64_t next_scan_ns;
	/* Called for every descendant that ended, after its rescue. */
	void (*on_end)(void *context, const struct watched *process);
	void *context;
};

void run_watch_init(struct run_watch *watch, struct run_directory *directory, int epoll);
void run_watch_release(struct run_watch *watch);

/* Once a second: new files, processes without a pidfd, pools without a name. If `is_last`, lists the directory even if
 * it looks unchanged. */
void run_watch_tick(struct run_watch *watch, bool is_last);

/* Call when the inotify descriptor is readable. */
void run_watch_files(struct run_watch *watch);
/* Looks again at files with incomplete headers. Call after some milliseconds, as long as new_count is not 0. */
void run_watch_retry(struct run_watch *watch);

/* Notes the exit status of a process that we waited for. */
void run_watch_note_status(struct run_watch *watch, const struct run_reaped *reaped);

/* Returns true if the namespace is ours (or unknown): a process in it then has the same id for itself and for us. */
bool run_watch_is_neighbour(const struct run_watch *watch, uint64_t pid_namespace);

/* Returns true if a pool of the process still exists: its file is not complete yet. */
bool run_watch_has_pool(const struct watched *process);

/* Call when the pidfd of items[index] is readable. */
void run_watch_ended(struct run_watch *watch, uint32_t index);

#endif
