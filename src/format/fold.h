/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.h: the rescue. Brings what a killed process left in its pool into its segment file, then removes the pool. Safe to run at
 * any time and any number of times: a living process's pool is left alone, an interrupted rescue is repeated, two rescues
 * at once exclude each other by a lock on the pool file.
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
	/* where the process was: "" and has_step false when unknown */
	bool has_step;
	int64_t last_step;
	uint64_t steps_counted; /* that ended, where the program marks none and it was counted; else 0 */
	bool has_schedule;      /* it is known which of these were recorded with operators: */
	uint64_t steps_detailed;
	int64_t first_detailed, last_detailed;
	char last_op[256]; /* of the main thread, else of the latest one: innermost open operator, the call that it was in
	                    * without operators, the last operator that began, or what was open */
	bool is_earlier_op; /* of a step before the last one: none were recorded since */
	int64_t last_op_step;
	int64_t pid;
};

/* Folds one pool file (or an open descriptor of a memfd: path "/proc/PID/fd/N", or is_dead = true skips the test for life). */
enum status fold_pool(const char *pool_path, bool is_dead, struct fold_result *result, struct error *err) MUST_CHECK;

/* Told of each pool that could not be folded, and why. */
typedef void fold_problem(void *context, const struct fold_result *result, const struct error *err);

/* Folds every dead pool of this user in /dev/shm whose segment lies in `run_directory` (NULL: any), but not those of directories
 * that a living `stepscope run` holds a lock on (flock): it does that itself. `tell` may be NULL. Returns how many. */
int fold_stale_pools(const char *run_directory, fold_problem *tell, void *context);

#endif
