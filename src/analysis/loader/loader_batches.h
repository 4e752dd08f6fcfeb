/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_batches.h: what a recording tells of data loaders: each wait for a batch, and each batch as it was made, in a worker or in the
 * process that waits. The names are those of python/stepscope/_loader.py.
 *
 *     struct loader_batches batches;
 *     loader_batches_find(&batches, model);
 *     ...
 *     loader_batches_release(&batches);
 *
 * Where operators of the process that waits, or of one of its workers, were removed again, it is of the time in which all of them are left.
 */
#ifndef ANALYSIS_LOADER_LOADER_BATCHES_H
#define ANALYSIS_LOADER_LOADER_BATCHES_H

#include "model/model.h"

struct loader_wait { /* in order of their processes and loaders, then of tracks and times */
	uint32_t process, track, row;
	uint64_t loop; /* loader << 32 | number of the loop over it, both of the process */
	int64_t start_ns, end_ns;
	int64_t sampler_ns; /* in the sampler: which samples are next */
	int64_t pin_ns;     /* pinning the batch, without workers */
	bool is_end;        /* the loop's: no batch came */
	bool is_of_rest;    /* the loop began before what is left */
};

struct loader_fetch {     /* in order of processes, loops, workers and times */
	uint32_t process; /* that waits */
	uint32_t worker;  /* process; MODEL_NONE: the one that waits */
	uint64_t loop;
	int64_t start_ns, end_ns, collate_ns;
	bool is_batch; /* it came to collating */
};

struct loader_start { /* of a loop: iter(), with workers */
	uint32_t process, track, row;
	uint64_t loop;
	int64_t dur_ns, sampler_ns; /* sampler_ns: for what they are to begin with */
	bool is_again;              /* its workers were there: persistent_workers */
};

struct loader_pinning { /* by a loop's thread that pins what its workers made */
	uint32_t process;
	uint64_t loop;
	int64_t count, busy_ns, window_ns; /* window_ns: from its first batch to its last */
};

struct loader_batches {
	struct loader_wait *waits;
	struct loader_fetch *fetches;
	struct loader_start *starts;     /* of all loaders, also in a part */
	struct loader_pinning *pinnings; /* the same */
	uint32_t wait_count, fetch_count, start_count, pinning_count;
	bool has_samplers; /* false: nothing of them was recorded */
};

void loader_batches_find(struct loader_batches *batches, const struct model *model);
void loader_batches_release(struct loader_batches *batches);

/* The part that is of the next loader, which must not be released; `part` is {0} before the first. False: there is none. */
bool loader_batches_next(const struct loader_batches *batches, struct loader_batches *part);
/* Index of the first fetch of the loop, in the part that is of its loader. */
uint32_t loader_batches_of_loop(const struct loader_batches *part, uint64_t loop);

/* The number that PyTorch gave the process as a data loader's worker; false: it is none. */
bool loader_worker_number(const struct model *model, uint32_t process, int64_t *number);
bool loader_has_workers(const struct model *model);

#endif
