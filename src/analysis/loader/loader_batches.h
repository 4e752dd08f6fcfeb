/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_batches.h: the data loaders in a recording: each wait for a batch, and how each batch was made, in a worker
 * or in the waiting process. The names are those of python/stepscope/_loader.py.
 *
 *     struct loader_batches batches;
 *     loader_batches_find(&batches, model);
 *     ...
 *     loader_batches_release(&batches);
 *
 * If operators of the waiting process, or of one of its workers, were removed again, only the time in which all of
 * them are left is covered.
 */
#ifndef ANALYSIS_LOADER_LOADER_BATCHES_H
#define ANALYSIS_LOADER_LOADER_BATCHES_H

#include "model/model.h"

struct loader_wait { /* sorted by process and loader, then by track and time */
	uint32_t process, track, row;
	uint64_t loop; /* loader << 32 | number of the loop over it, both within the process */
	int64_t start_ns, end_ns;
	int64_t sampler_ns; /* in the sampler, which chooses the next samples */
	int64_t pin_ns;     /* pinning the batch, without workers */
	bool is_end;        /* the end of the loop: no batch came */
	bool is_of_rest;    /* the loop started before the time that is left */
};

struct loader_fetch {     /* sorted by process, loop, worker and time */
	uint32_t process; /* the waiting process */
	uint32_t worker;  /* process; MODEL_NONE: the waiting one */
	uint32_t track;
	uint64_t loop;
	int64_t start_ns, end_ns, collate_ns;
	bool is_batch; /* collating was reached */
};

struct loader_start { /* start of a loop: iter(), with workers */
	uint32_t process, track, row;
	uint64_t loop;
	int64_t dur_ns, sampler_ns; /* sampler_ns: for the first batches of the workers */
	bool is_again;              /* its workers already existed: persistent_workers */
};

struct loader_pinning { /* by the thread of a loop that pins the batches of its workers */
	uint32_t process;
	uint64_t loop;
	int64_t count, busy_ns, window_ns; /* window_ns: from its first batch to its last */
};

struct loader_batches {
	struct loader_wait *waits;
	struct loader_fetch *fetches;
	struct loader_start *starts;     /* of all loaders, even in a part */
	struct loader_pinning *pinnings; /* likewise */
	uint32_t wait_count, fetch_count, start_count, pinning_count;
	bool has_samplers; /* false: no sampler was recorded */
};

void loader_batches_find(struct loader_batches *batches, const struct model *model);
void loader_batches_release(struct loader_batches *batches);

/* Finds the part of the next loader, which must not be released. `part` is {0} before the first. Returns false if
 * there is no next loader. */
bool loader_batches_next(const struct loader_batches *batches, struct loader_batches *part);
/* Returns the index of the first fetch of the loop, in the part of its loader. */
uint32_t loader_batches_of_loop(const struct loader_batches *part, uint64_t loop);

/* Finds the loops of workers: each worker, and each loop, has noted the seed of the loop. */
struct number_map;
void loader_seeds_find(struct number_map *seeds, const struct model *model);
/* Gets the waiting process and the loop of a worker. Returns false if they are unknown. */
bool loader_seeds_loop(const struct number_map *seeds, const struct model *model, uint32_t worker, uint32_t *process,
                       uint64_t *loop);

/* Gets the number that PyTorch gave the process as a worker of a data loader. Returns false if it is not a worker. */
bool loader_worker_number(const struct model *model, uint32_t process, int64_t *number);
bool loader_has_workers(const struct model *model);

#endif
