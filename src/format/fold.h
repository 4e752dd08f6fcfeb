/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.h: the rescue. It appends the events that a killed process left in its pool to the process's segment file, then
 * removes the pool. It may run at any time and any number of times: it skips the pool of a living process and repeats
 * an interrupted rescue. A lock on the pool file excludes two rescues at once.
 */
#ifndef FORMAT_FOLD_H
#define FORMAT_FOLD_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct fold_result {
	bool was_folded;        /* false: the process lives, or the pool was closed and empty */
	uint64_t events, bytes; /* added to the segment */
	char segment_path[1400];
	/* last position of the process: "" and has_step false if unknown */
	bool has_step;
	int64_t last_step;
	uint64_t steps_counted; /* steps that ended, if the program marks none and they were counted; otherwise 0 */
	bool has_schedule;      /* the following members say which of these steps were recorded with operators */
	uint64_t steps_detailed;
	int64_t first_detailed, last_detailed;
	/* Operator of the main thread, otherwise of the thread with the latest event. It is the call that the thread
	 * was in while no operators were recorded. Otherwise it is the innermost open operator, the last operator that
	 * began, or another open span. */
	char last_op[256];
	bool is_earlier_op; /* last_op is of an earlier step than the last one; no operators were recorded since */
	int64_t last_op_step;
	int64_t pid;
};

/* Folds one pool file. `is_dead` skips the check that the process has ended, for the open descriptor of a memfd
 * ("/proc/PID/fd/N"). */
enum status fold_pool(const char *pool_path, bool is_dead, struct fold_result *result, struct error *err) MUST_CHECK;

/* Called for each pool that could not be folded, with the reason. */
typedef void fold_problem(void *context, const struct fold_result *result, const struct error *err);

/* Folds every dead pool of this user in /dev/shm whose segment is in `run_directory` (NULL: any directory). Skips
 * directories on which a living `stepscope run` holds a lock (flock), because it rescues their pools itself. `tell` may
 * be NULL. Returns the number of folded pools. */
int fold_stale_pools(const char *run_directory, fold_problem *tell, void *context);

#endif
