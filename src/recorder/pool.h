/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h: the memory that events go to first, in a file of /dev/shm so that it survives the process. See format.h for its
 * layout. Chunks are handed out and taken back without locks by any thread, also in signal handlers.
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
	struct own_fd file; /* holds the lock that says "my process lives" */
	char path[128];     /* POOL_SHM */
	size_t bytes;
	struct stepscope_pool_header *header;
	struct stepscope_slot *slots;
	uint8_t *symbols;
	struct stepscope_chunk *chunks;
	bool is_lazy;       /* memory is reserved with the pages, below; else it was at the start */
	bool is_full;       /* /dev/shm had no more; atomic */
	uint32_t fresh;     /* chunks [fresh, chunk_count) were never used; atomic */
	uint32_t taken;     /* chunks that are not free, atomic */
	bool is_unlocked;   /* the lock could not be taken again yet */
	uint32_t populated; /* chunks [0, populated) have their pages; atomic */
};

/* Makes a pool of about `bytes`: at most 1/16 of what /dev/shm has free, in a memfd when that is too little or there is
 * none, in anonymous memory when even that fails (then a kill loses the tail). False when there is no memory at all. */
bool pool_create(struct pool *pool, size_t bytes, unsigned pid, uint64_t start_time);
/* Opens and locks the file again when the program has closed our descriptor, and the lock went with it. */
void pool_mend(struct pool *pool);
void pool_destroy(struct pool *pool, bool is_unmapping); /* removes the file */
/* Leaves it to the rescue: the file stays, locked until the process ends. */
void pool_abandon(struct pool *pool, bool is_unmapping);
const char *pool_kind_text(enum pool_kind kind);

/* Room for more symbols than a start needs: by the drainer, once. Without it those are in the file alone. */
void pool_grow_symbols(struct pool *pool);

/* Gives pages to the next chunks, so that the training threads take no page fault: by the drainer. Who needs a chunk before that
 * does it itself. */
void pool_populate(struct pool *pool, uint32_t chunks);
bool pool_is_populated(const struct pool *pool); /* or never will be */

/* A zeroed chunk, or NULL. Any thread, also in signal handlers. */
struct stepscope_chunk *pool_pop(struct pool *pool);
/* The same, but leaves `reserve` chunks to those who call pool_pop(). */
struct stepscope_chunk *pool_pop_above(struct pool *pool, uint32_t reserve);
/* Zeroes the chunk and gives it back. */
void pool_push(struct pool *pool, struct stepscope_chunk *chunk);

static inline uint32_t pool_chunk_index(const struct pool *pool, const struct stepscope_chunk *chunk)
{
	return (uint32_t)(chunk - pool->chunks);
}

/* Is another copy of this library recording in this process already? */
bool pool_exists_in_process(unsigned pid, uint64_t start_time);

#endif
