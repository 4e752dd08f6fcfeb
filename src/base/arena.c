/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.c: a list of blocks; the newest one is being filled. A piece larger than a quarter of a block gets a separate
 * block after the newest. So it does not waste the rest of the current block.
 */
#include "base/arena.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_WATCHED 1
#endif
#endif

/* Under AddressSanitizer, gaps between pieces are poisoned. */
#ifdef IS_WATCHED
#include <sanitizer/asan_interface.h>
#define GAP_BYTES ((size_t)16)
#define FORBID(start, bytes) ASAN_POISON_MEMORY_REGION(start, bytes)
#define ALLOW(start, bytes) ASAN_UNPOISON_MEMORY_REGION(start, bytes)
#else
#define GAP_BYTES ((size_t)0)
#define FORBID(start, bytes) ((void)0)
#define ALLOW(start, bytes) ((void)0)
#endif

#define ALIGNMENT ((size_t)16)
#define FIRST_BLOCK_BYTES ((size_t)16 * 1024)
#define LARGEST_BLOCK_BYTES ((size_t)1024 * 1024)

struct arena_block {
	struct arena_block *older;
	size_t capacity;
	size_t used;
	_Alignas(16) unsigned char data[];
};

void arena_init(struct arena *arena, size_t limit_bytes)
{
	arena->newest = NULL;
	arena->used_bytes = 0;
	arena->limit_bytes = limit_bytes;
}

void arena_release(struct arena *arena)
{
	struct arena_block *block = arena->newest;

	while (block) {
		struct arena_block *older = block->older;

		free(block);
		block = older;
	}
	arena->newest = NULL;
	arena->used_bytes = 0;
}

/* With a limit, callers check for NULL; without one, they do not. */
static void *arena_refuse(const struct arena *arena, size_t bytes)
{
	if (!arena->limit_bytes)
		memory_exhausted(bytes);
	return NULL;
}

static size_t next_block_bytes(const struct arena *arena)
{
	if (!arena->newest)
		return FIRST_BLOCK_BYTES;
	if (arena->newest->capacity >= LARGEST_BLOCK_BYTES / 2)
		return LARGEST_BLOCK_BYTES;
	return arena->newest->capacity < FIRST_BLOCK_BYTES ? FIRST_BLOCK_BYTES : arena->newest->capacity * 2;
}

static struct arena_block *block_new(size_t capacity)
{
	/* calloc, because fresh pages from the system are already zero */
	struct arena_block *block = calloc(1, sizeof(*block) + capacity);

	if (!block)
		return NULL;
	block->capacity = capacity;
	FORBID(block->data, capacity);
	return block;
}

/* The piece takes `room` bytes, of which the caller gets `bytes`. */
static void *arena_take(struct arena *arena, struct arena_block *block, size_t room, size_t bytes)
{
	void *taken = block->data + block->used;

	block->used += room;
	arena->used_bytes += room - GAP_BYTES;
	ALLOW(taken, bytes);
	return taken;
}

/* Adds a block with that much room. A block for one large piece goes after the newest block; otherwise it becomes the
 * newest. */
static struct arena_block *arena_add_block(struct arena *arena, size_t room)
{
	size_t usual = next_block_bytes(arena);
	bool is_own = room > usual / 4;
	struct arena_block *newest = arena->newest;
	struct arena_block *block = block_new(is_own ? room : usual);

	if (!block)
		return NULL;
	if (newest && is_own) {
		block->older = newest->older;
		newest->older = block;
	} else {
		block->older = newest;
		arena->newest = block;
	}
	return block;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	struct arena_block *block = arena->newest;
	size_t rounded;
	size_t room;

	if (bytes > PTRDIFF_MAX / 2)
		return arena_refuse(arena, bytes);
	rounded = bytes ? (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1) : ALIGNMENT;
	if (arena->limit_bytes && (rounded > arena->limit_bytes || arena->used_bytes > arena->limit_bytes - rounded))
		return NULL;
	room = rounded + GAP_BYTES;
	if (!block || block->capacity - block->used < room)
		block = arena_add_block(arena, room);
	return block ? arena_take(arena, block, room, bytes) : arena_refuse(arena, bytes);
}

void *arena_array(struct arena *arena, size_t n, size_t element_bytes)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, element_bytes, &bytes))
		return arena_refuse(arena, SIZE_MAX);
	return arena_alloc(arena, bytes);
}

char *arena_dup_n(struct arena *arena, const char *text, size_t length)
{
	char *copy = length < SIZE_MAX ? arena_alloc(arena, length + 1) : arena_refuse(arena, length);

	if (copy && length)
		memcpy(copy, text, length);
	return copy;
}

char *arena_dup(struct arena *arena, const char *text)
{
	return arena_dup_n(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list arguments;
	int length;
	char *text;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		return arena_dup(arena, "");
	text = arena_alloc(arena, (size_t)length + 1);
	if (!text)
		return NULL;
	va_start(arguments, format);
	vsnprintf(text, (size_t)length + 1, format, arguments);
	va_end(arguments);
	return text;
}
