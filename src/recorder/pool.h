/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h: the memory that events are written to first, in a file of /dev/shm so that it survives the process. format.h
 * describes its layout. Any thread, also in signal handlers, takes and returns chunks without locks.
 */
#ifndef RECORDER_POOL_H
#define RECORDER_POOL_H

#include "recorder/own_fd.h"

#include <stdbool.h>
#include <stddef.h>
#include <stepscope/format.h>

enum pool_kind {
	POOL_NONE,
	POOL_SHM,
	POOL_MEMFD,
	POOL_ANONYMOUS
};

struct pool {
	enum pool_kind kind;
	struct own_fd file; /* holds the lock that shows that the process lives */
	char path[128];     /* POOL_SHM */
	size_t bytes;
	struct stepscope_pool_header *header;
	struct stepscope_slot *slots;
	uint8_t *symbols;
	struct stepscope_chunk *chunks;
	bool is_lazy;       /* pages are reserved by pool_populate(); otherwise all were at the start */
	bool is_full;       /* /dev/shm had no more memory; atomic */
	uint32_t fresh;     /* chunks [fresh, chunk_count) were never used; atomic */
	uint32_t taken;     /* chunks that are not free, atomic */
	bool is_unlocked;   /* the lock could not be taken again yet */
	uint32_t populated; /* chunks [0, populated) have their pages; atomic */
};

/* Creates a pool of about `bytes`, limited to 1/16 of the free space of /dev/shm. If that is too little or /dev/shm is
 * missing, the pool is a memfd. If that fails, it is anonymous memory, and a kill loses the last events. Returns false
 * if there is no memory. */
bool pool_create(struct pool *pool, size_t bytes, unsigned pid, uint64_t start_time);
/* Opens and locks the file again if the program has closed our descriptor, which released the lock. */
void pool_mend(struct pool *pool);
void pool_destroy(struct pool *pool, bool is_unmapping); /* removes the file */
/* Leaves the pool to the rescue: the file stays, locked until the process ends. */
void pool_abandon(struct pool *pool, bool is_unmapping);
const char *pool_kind_text(enum pool_kind kind);

/* Makes room for more symbols than a start needs. Called once by the drainer. On failure later symbols are in the
 * segment file only. */
void pool_grow_symbols(struct pool *pool);

/* Gives pages to the next chunks, so that training threads take no page faults. Called by the drainer, and by a thread
 * that needs a chunk before the drainer has done so. */
void pool_populate(struct pool *pool, uint32_t chunks);
bool pool_is_populated(const struct pool *pool); /* true if all chunks have pages, or cannot get them */

/* Returns a zeroed chunk, or NULL if the pool is full. Any thread, also in signal handlers. */
struct stepscope_chunk *pool_pop(struct pool *pool);
/* Like pool_pop(), but leaves `reserve` chunks for callers of pool_pop(). */
struct stepscope_chunk *pool_pop_above(struct pool *pool, uint32_t reserve);
/* Zeroes the chunk and returns it to the pool. */
void pool_push(struct pool *pool, struct stepscope_chunk *chunk);

static inline uint32_t pool_chunk_index(const struct pool *pool, const struct stepscope_chunk *chunk)
{
	return (uint32_t)(chunk - pool->chunks);
}

/* Returns true if another copy of this library is recording in this process. */
bool pool_exists_in_process(unsigned pid, uint64_t start_time);

#endif
