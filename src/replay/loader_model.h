/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_model.h: a loop over a data loader of PyTorch and its workers, on processors that they share. It answers how long
 * a step takes with another number of workers.
 *
 * Batch k is made by worker k mod W, in order; it can begin when the loop has taken batch k - P, with P batches asked for
 * ahead. Work is time on a processor and sleep. All threads that can run share N processors evenly: each advances at
 * min(1, N / threads that can run). A batch is pickled by another thread of its worker, and unpickled by the loop; both
 * take their time without a processor, since most of it are waits of processes for each other. Without workers the loop
 * makes the batch itself.
 *
 *     struct loader_case loader = {.batches = batches, .count = count, .workers = 2, .prefetch = 4, .processors = 2};
 *     double step_ns = loader_model_step(&loader);
 */
#ifndef REPLAY_LOADER_MODEL_H
#define REPLAY_LOADER_MODEL_H

#include <stdint.h>

#define LOADER_MOST_WORKERS 64u
#define LOADER_MOST_PREFETCH 63u

struct loader_batch {
	double fetch_cpu_ns, fetch_sleep_ns; /* making it */
	double loop_cpu_ns, loop_sleep_ns;   /* the loop's work with it, to its next wait */
};

struct loader_case {
	const struct loader_batch *batches;
	uint32_t count;
	uint32_t workers;              /* at most LOADER_MOST_WORKERS; 0: the loop makes the batches */
	uint32_t prefetch;             /* batches that are asked for ahead, of each worker */
	double processors;             /* that the run has */
	double pickle_ns, unpickle_ns; /* of a batch, in its worker and in the loop */
};

/* Returns the mean time from one batch to the next; the first batches do not count, in which workers start. There must
 * be two batches. */
double loader_model_step(const struct loader_case *loader);

#endif
