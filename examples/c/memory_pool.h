/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where the trainer gets memory for tensors, and where each allocation and release is told to stepscope.
 * Released blocks are kept for the next request of the same size (training asks for the same sizes in every step), so
 * a step does not pay for page faults. memory_take() and memory_give() may be called from any thread.
 *
 *     struct memory_pool pool = {0};
 *     memory_pool_init(&pool);
 *     float *x = memory_take(&pool, bytes, STEPSCOPE_MEMORY_ACTIVATION);
 *     memory_give(&pool, x);
 *     memory_pool_release(&pool);
 */
#ifndef TRAINER_MEMORY_POOL_H
#define TRAINER_MEMORY_POOL_H

#include <pthread.h>
#include <stddef.h>
#include <stepscope/stepscope.h>

struct memory_block;

struct memory_pool {
	pthread_mutex_t lock;
	struct memory_block *used; /* doubly linked */
	struct memory_block *kept; /* singly linked, any order */
	size_t used_bytes, peak_bytes;
};

void memory_pool_init(struct memory_pool *pool);

/* Frees everything, also what was never given back. An all-zero pool is fine. */
void memory_pool_release(struct memory_pool *pool);

/* `bytes` bytes aligned to 64, contents undefined; NULL when there is no memory. */
void *memory_take(struct memory_pool *pool, size_t bytes, enum stepscope_memory category);

/* The same, filled with zeros. */
void *memory_take_zeroed(struct memory_pool *pool, size_t bytes, enum stepscope_memory category);

/* Gives a block back; NULL is fine. */
void memory_give(struct memory_pool *pool, void *address);

#endif
