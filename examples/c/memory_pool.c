/* SPDX-License-Identifier: Apache-2.0 */
/* Caching allocator by exact size, with one stepscope event per take and give. Not a general purpose allocator: the
 * search through kept blocks is linear, which suits a few dozen sizes. */
#include "memory_pool.h"

#include <stdlib.h>
#include <string.h>

struct memory_block {
	struct memory_block *next, *previous;
	size_t bytes;
	char padding[40]; /* the data starts on a cache line of its own */
};

_Static_assert(sizeof(struct memory_block) == 64, "data must stay aligned to 64 bytes");

void memory_pool_init(struct memory_pool *pool)
{
	memset(pool, 0, sizeof(*pool));
	pthread_mutex_init(&pool->lock, NULL);
}

static void blocks_free(struct memory_block *block)
{
	while (block != NULL) {
		struct memory_block *next = block->next;
		free(block);
		block = next;
	}
}

void memory_pool_release(struct memory_pool *pool)
{
	for (struct memory_block *block = pool->used; block != NULL; block = block->next)
		stepscope_memory_free(block + 1, STEPSCOPE_DEVICE_CPU);
	blocks_free(pool->used);
	blocks_free(pool->kept);
	pthread_mutex_destroy(&pool->lock);
	memset(pool, 0, sizeof(*pool));
}

static struct memory_block *kept_block(struct memory_pool *pool, size_t bytes)
{
	for (struct memory_block **link = &pool->kept; *link != NULL; link = &(*link)->next) {
		struct memory_block *block = *link;
		if (block->bytes == bytes) {
			*link = block->next;
			return block;
		}
	}
	return NULL;
}

static void use_block(struct memory_pool *pool, struct memory_block *block)
{
	block->previous = NULL;
	block->next = pool->used;
	if (pool->used != NULL)
		pool->used->previous = block;
	pool->used = block;
	pool->used_bytes += block->bytes;
	if (pool->used_bytes > pool->peak_bytes)
		pool->peak_bytes = pool->used_bytes;
}

void *memory_take(struct memory_pool *pool, size_t bytes, enum stepscope_memory category)
{
	if (bytes > SIZE_MAX - 2 * sizeof(struct memory_block))
		return NULL;
	bytes = (bytes + 63) & ~(size_t)63;
	pthread_mutex_lock(&pool->lock);
	struct memory_block *block = kept_block(pool, bytes);
	if (block == NULL) {
		block = aligned_alloc(64, sizeof(*block) + bytes);
		if (block != NULL)
			block->bytes = bytes;
	}
	if (block != NULL)
		use_block(pool, block);
	pthread_mutex_unlock(&pool->lock);
	if (block == NULL)
		return NULL;
	stepscope_memory_alloc(block + 1, bytes, category, STEPSCOPE_DEVICE_CPU);
	return block + 1;
}

void *memory_take_zeroed(struct memory_pool *pool, size_t bytes, enum stepscope_memory category)
{
	void *address = memory_take(pool, bytes, category);
	if (address != NULL)
		memset(address, 0, bytes);
	return address;
}

void memory_give(struct memory_pool *pool, void *address)
{
	if (address == NULL)
		return;
	struct memory_block *block = (struct memory_block *)address - 1;
	stepscope_memory_free(address, STEPSCOPE_DEVICE_CPU);
	pthread_mutex_lock(&pool->lock);
	if (block->next != NULL)
		block->next->previous = block->previous;
	if (block->previous != NULL)
		block->previous->next = block->next;
	else
		pool->used = block->next;
	pool->used_bytes -= block->bytes;
	block->next = pool->kept;
	pool->kept = block;
	pthread_mutex_unlock(&pool->lock);
}
