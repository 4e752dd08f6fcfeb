/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_limit.h: which part of loading limits the loop over a data loader. loader_sentence.h puts it into words.
 */
#ifndef ANALYSIS_LOADER_LOADER_LIMIT_H
#define ANALYSIS_LOADER_LOADER_LIMIT_H

#include "analysis/loader/loader_sums.h"

enum loader_limit {
	/* the parts of a wait without workers, see loader_part_ns() */
	LOADER_BY_DATASET,
	LOADER_BY_COLLATE,
	LOADER_BY_SAMPLER,
	LOADER_BY_PINNING,
	LOADER_WAIT_PARTS,

	LOADER_BY_HANDING_OVER = LOADER_WAIT_PARTS, /* the rest of a wait */
	LOADER_BY_FEW_WORKERS,
	LOADER_BY_START, /* of workers */
	LOADER_BY_MAIN_PROCESS,
	LOADER_BY_NOTHING,
	LOADER_LIMITS,
};

enum loader_state {
	LOADER_MAKES_BATCHES, /* no workers: the loop makes its batches, and that takes long */
	LOADER_WAITS_FOR_BATCHES,
	LOADER_WAITS_FOR_START, /* of workers, but not for later batches */
	LOADER_JUST_KEEPS_UP,   /* the loop does not wait, but workers are busy */
	LOADER_KEEPS_UP,
};

struct loader_verdict {
	enum loader_state state;
	enum loader_limit limit;
};

/* Decides what limits a loader whose batches are known. */
struct loader_verdict loader_limit_find(const struct loader_sums *sums);
/* Returns the text of its cell: "dataset code", ... */
const char *loader_limit_name(enum loader_limit limit);

/* Return shares of the loop's time: of all waits, and of those while workers start. */
double loader_wait_ratio(const struct loader_sums *sums);
double loader_start_ratio(const struct loader_sums *sums);
/* Returns the share that the loop waits after the start of its workers. */
double loader_steady_ratio(const struct loader_sums *sums);
/* Return the share of the workers' time in which they make batches, and the share of the pinning thread's time in
 * which it is busy. */
double loader_busy_ratio(const struct loader_work *work);
double loader_pin_ratio(const struct loader_sums *sums);
/* Returns the time of a part below LOADER_WAIT_PARTS. */
int64_t loader_part_ns(const struct loader_sums *sums, enum loader_limit part);

/* Returns the number of workers that would make batches as fast as the loop takes them, or 0 if it is unknown or not
 * above the present one. */
int loader_workers_needed(const struct loader_sums *sums);
/* Return true if the time in iter() is worth mentioning: in the sampler, and in starting workers again for each
 * loop. */
bool loader_samples_long_before(const struct loader_sums *sums);
bool loader_starts_long_again(const struct loader_sums *sums);

#endif
