/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer's own times, independent of stepscope, for comparing the two. Times are CLOCK_MONOTONIC nanoseconds. */
#ifndef TRAINER_STAMPS_H
#define TRAINER_STAMPS_H

#include "failure.h"

#include <stdint.h>

struct stamp {
	long step;
	int64_t begin_ns, end_ns;
	int64_t begin_cpu_ns;     /* of the thread */
	int64_t data_wait_ns;     /* blocked on the loader's queue */
	int64_t communication_ns; /* averaging gradients, waiting for ranks included */
	int64_t evaluation_ns, checkpoint_ns;
	int64_t tokens;
	double loss, gradient_norm;
};

struct stamps {
	struct stamp *stamps;
	long count, capacity;
};

int stamps_init(struct stamps *stamps, long capacity, struct failure *failure);
void stamps_release(struct stamps *stamps);

/* The next step's stamp, all zero; the caller fills it. At most `capacity` times. */
struct stamp *stamps_next(struct stamps *stamps);

/* Writes {"schema", "rank", "steps": [...], "totals": {...}}. */
int stamps_write(const struct stamps *stamps, const char *path, int rank, struct failure *failure);

#endif
