/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares batches ahead of the training loop, in threads of its own, into a bounded queue. Batch n has the same
 * contents whatever the number of threads and their timing.
 *
 *     loader_init(&loader, &options, &corpus, &pool, &failure);
 *     struct batch *batch = loader_take(&loader, &blocked_ns, &failure);
 *     ...
 *     loader_give(&loader);
 *     loader_release(&loader);
 */
#ifndef TRAINER_LOADER_H
#define TRAINER_LOADER_H

#include "corpus.h"

#include <stdbool.h>

struct loader_options {
	int rows;       /* windows per batch */
	int threads;    /* 1.. */
	int capacity;   /* batches in the queue, at least `threads` */
	uint64_t seed;  /* of this rank's stream of batches */
	long first;     /* number of the first batch, for resumed runs */
	int slow_ms;    /* fault: a batch takes this much longer ... */
	int slow_every; /* ... and only every k-th one does; 1 is every one */
};

struct loader_slot {
	struct batch batch;
	bool is_ready;
};

struct loader {
	struct loader_options options;
	const struct corpus *corpus;
	struct memory_pool *pool;
	pthread_mutex_t lock;
	pthread_cond_t room, ready;
	struct loader_slot *slots; /* batch n lies in slot n % capacity */
	pthread_t *threads;
	int started; /* threads running */
	int named;   /* threads that took their number */
	long next;   /* next batch a thread will prepare */
	long taken;  /* batches the training loop is through with */
	int queued;  /* batches ready */
	bool stop;
	struct failure failure; /* of a thread; its text is not empty when one failed */
};

int loader_init(struct loader *loader, const struct loader_options *options, const struct corpus *corpus,
                struct memory_pool *pool, struct failure *failure);
void loader_release(struct loader *loader);

/* The next batch, waiting for it if necessary; adds the time spent blocked to *blocked_ns. The batch stays valid until
 * loader_give(), and one can be out at a time. NULL when a loader thread failed. */
struct batch *loader_take(struct loader *loader, int64_t *blocked_ns, struct failure *failure);
void loader_give(struct loader *loader);

#endif
