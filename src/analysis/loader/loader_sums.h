/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_sums.h: sums over the loops of one data loader: the waits, and the cost of its batches.
 *
 *     struct loader_sums sums;
 *     struct loader_worker worker = {0};
 *     loader_sums_compute(&sums, &part, model);            // part: of loader_batches_next()
 *     while (loader_sums_next_worker(&sums, &part, &worker))
 *             worker.work.count ...
 */
#ifndef ANALYSIS_LOADER_LOADER_SUMS_H
#define ANALYSIS_LOADER_LOADER_SUMS_H

#include "analysis/loader/loader_batches.h"
#include "base/statistics.h"

struct loader_work { /* of workers, or in the loop */
	int64_t count, dataset_ns, collate_ns;
	int64_t window_ns; /* of a worker: from its first batch to its last; in the loop: loop_ns */
	uint32_t workers;
};

struct loader_sums {
	uint32_t process, number;
	int64_t batches, wait_ns;
	int64_t loop_ns; /* from the first wait to the last, loop by loop, without steps that lack waits */
	int64_t span_ns; /* the same with these steps */
	int64_t first_batches, first_wait_ns; /* waits for batches of workers that start */
	int64_t starting_ns;                  /* in iter(), if there are workers */
	int64_t workers_ns;                   /* of that, starting them, without the sampler */
	/* the sampler: in the waits, in those of first_wait_ns, in iter() */
	int64_t sampler_ns, first_sampler_ns, starting_sampler_ns;
	int64_t pinned; /* batches */
	int64_t pin_ns;
	int64_t pin_window_ns; /* of the threads that pin, which loops with workers have */
	uint32_t loops, starts;
	int processors; /* that the process may use; 0: unknown */
	struct summary wait;
	struct loader_work work; /* of all its workers, or in the loop if it has none */
	bool has_ready, has_sampler;
	bool has_rest; /* see loader_wait.is_of_rest */
	double ready;  /* batches that were ready at a wait: mean */
};

struct loader_worker {
	uint32_t process;
	int64_t first_ns; /* start of its first batch */
	struct loader_work work;
	uint32_t next_fetch; /* of the search */
};

/* Sums up the loader of this part of the batches. */
void loader_sums_compute(struct loader_sums *sums, const struct loader_batches *part, const struct model *model);

/* Finds the next worker of the loader. `worker` is {0} before the first. Returns false if there are no more. */
bool loader_sums_next_worker(const struct loader_sums *sums, const struct loader_batches *part,
                             struct loader_worker *worker);

#endif
