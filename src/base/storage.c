/* SPDX-License-Identifier: Apache-2.0
 *
 * storage.c: regions, of which pieces are handed out for good, and blocks, arrays that grow. Both are anonymous memory first, then files:
 * large ones have a file of their own, so that disk space comes back when they are released. A large block keeps its file open to grow in
 * place; small ones are pieces of regions then, of which there may be many: series of values, of hundreds of quantities.
 */
#include "base/storage.h"

#include "base/memory.h"
#include "base/storage_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION_BYTES ((size_t)16 << 20)
#define LARGE_BYTES ((size_t)1 << 20) /* blocks of pages of their own */
#define PIECE_BYTES ((size_t)4 << 10) /* what is smaller is not counted */
#define PIECE_SIZES 96
#define FILES_MAX 64u /* that are kept open: a program may have 1,024, or fewer */
#define HUGE_BYTES ((size_t)2 << 20)
#define KEPT_BLOCKS 16u
#define KEPT_BYTES ((uint64_t)32 << 20)
#define REGIONS_OPEN 8u /* the last ones: where a piece does not fit into one, a smaller one may */

struct region {
	char *start;
	size_t bytes, used;
	bool is_file;
	bool is_reused; /* a block that was released: counted as a whole, its bytes are any */
};

struct storage_block { /* stands before the array */
	size_t bytes;  /* of both */
	size_t wanted; /* of these; one that was kept may have more */
	int fd;        /* its file, -1: none that is open */
	bool is_file;
	bool is_piece;              /* of a region */
	struct storage_block *next; /* of a piece that is free */
	char padding[64 - 2 * sizeof(size_t) - sizeof(int) - 2 * sizeof(bool) - sizeof(struct storage_block *) - 2];
};
static_assert(sizeof(struct storage_block) == 64, "arrays are aligned");

struct storage {
	uint64_t limit_bytes, memory_bytes, file_bytes;
	struct region *regions;
	uint32_t count, capacity;
	uint32_t open_files;
	bool has_no_file; /* it failed once: what grows stays in memory */
	bool is_beyond;   /* and memory was used for it */
	/* Blocks of memory that were released, none beside another: analyses take arrays of about the same sizes one after the other, and the
	 * first touch of a page costs more than what most of them do with it; in a virtual machine ten times as much, as it gives free memory
	 * back to its host. */
	struct storage_block *kept[KEPT_BLOCKS];
	uint32_t kept_count;
	uint64_t kept_bytes;
	struct error problem;
	struct storage_sweep sweep;
	struct storage_block *free_pieces[PIECE_SIZES]; /* by size */
};

struct storage *storage_new(uint64_t limit_bytes)
{
	struct storage *storage = memory_resize(NULL, 1, sizeof *storage);
	*storage = (struct storage){.limit_bytes = limit_bytes};
	storage_sweep_init(&storage->sweep);
	return storage;
}

static void drop_kept(struct storage *storage)
{
	while (storage->kept_count) {
		struct storage_block *block = storage->kept[--storage->kept_count];
		munmap(block, block->bytes);
	}
	storage->kept_bytes = 0;
}

/* Two that lie side by side as one; NULL: they do not. */
static struct storage_block *storage_join(struct storage_block *a, struct storage_block *b)
{
	struct storage_block *first = a < b ? a : b, *second = a < b ? b : a;
	if ((char *)first + first->bytes != (char *)second)
		return NULL;
	first->bytes += second->bytes;
	return first;
}

static bool keep(struct storage *storage, struct storage_block *block)
{
	uint64_t bytes = storage->kept_bytes + block->bytes;
	if (storage->kept_count == KEPT_BLOCKS || bytes > KEPT_BYTES ||
	    storage->memory_bytes + bytes > storage->limit_bytes)
		return false;
	for (uint32_t i = storage->kept_count; i-- > 0;) {
		struct storage_block *joined = storage_join(storage->kept[i], block);
		if (joined) {
			storage->kept[i] = storage->kept[--storage->kept_count];
			block = joined;
		}
	}
	storage->kept[storage->kept_count++] = block;
	storage->kept_bytes = bytes;
	return true;
}

/* What is beyond `bytes`, in whole huge pages, goes on being kept. */
static void storage_split(struct storage *storage, struct storage_block *block, size_t bytes)
{
	bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	if (block->bytes < bytes + LARGE_BYTES)
		return;
	struct storage_block *rest = (struct storage_block *)((char *)block + bytes);
	*rest = (struct storage_block){.bytes = block->bytes - bytes, .fd = -1};
	block->bytes = bytes;
	storage->kept[storage->kept_count++] = rest;
}

/* The smallest that is large enough; KEPT_BLOCKS: there is none. */
static uint32_t find_kept(const struct storage *storage, size_t bytes)
{
	uint32_t best = KEPT_BLOCKS;
	for (uint32_t i = 0; i < storage->kept_count; i++)
		if (storage->kept[i]->bytes >= bytes &&
		    (best == KEPT_BLOCKS || storage->kept[i]->bytes < storage->kept[best]->bytes))
			best = i;
	return best;
}

/* One that is large enough, of which no more than `most` is taken; NULL: there is none. */
static struct storage_block *take_kept(struct storage *storage, size_t bytes, size_t most)
{
	uint32_t best = find_kept(storage, bytes);
	if (best == KEPT_BLOCKS)
		return NULL;
	struct storage_block *block = storage->kept[best];
	storage->kept[best] = storage->kept[--storage->kept_count];
	storage_split(storage, block, most);
	storage->kept_bytes -= block->bytes;
	return block;
}

void storage_free(struct storage *storage)
{
	if (!storage)
		return;
	storage_sweep_release(&storage->sweep);
	drop_kept(storage);
	for (uint32_t i = 0; i < storage->count; i++)
		munmap(storage->regions[i].start, storage->regions[i].bytes);
	free(storage->regions);
	free(storage);
}

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return (bytes + page - 1) / page * page;
}

/* More memory is wanted: is it for a file? */
static bool storage_is_over(struct storage *storage, size_t bytes)
{
	if (storage->memory_bytes + storage->kept_bytes + bytes > storage->limit_bytes)
		drop_kept(storage);
	bool is = storage->memory_bytes + bytes > storage->limit_bytes;
	storage->is_beyond |= is && storage->has_no_file;
	return is && !storage->has_no_file;
}

/* A fault for 2 MiB in place of 512; it may be refused. */
static void want_huge_pages(char *start, size_t bytes)
{
	if (bytes >= HUGE_BYTES)
		madvise(start, bytes, MADV_HUGEPAGE);
}

static char *map_memory(size_t bytes)
{
	char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED)
		memory_exhausted(bytes);
	want_huge_pages(start, bytes);
	return start;
}

/* A file of its own, mapped; *fd may be closed. NULL: there is no room for it. */
static char *map_file(struct storage *storage, size_t bytes, int *fd)
{
	*fd = storage_file_open(bytes, &storage->problem);
	char *start = *fd < 0 ? NULL : storage_file_map(*fd, bytes, &storage->problem);
	if (!start) {
		storage->has_no_file = storage->is_beyond = true;
		if (*fd >= 0)
			close(*fd);
		return NULL;
	}
	storage->file_bytes += bytes;
	storage_sweep_add(&storage->sweep, start, bytes);
	return start;
}

/* ---- regions ---- */

static char *map_region(struct storage *storage, size_t bytes)
{
	int fd;
	char *start = map_file(storage, bytes, &fd);
	if (start)
		close(fd);
	return start;
}

static struct region *add_region(struct storage *storage, size_t wanted)
{
	size_t bytes = wanted > REGION_BYTES ? whole_pages(wanted) : REGION_BYTES;
	struct region region = {.bytes = bytes};
	if (storage_is_over(storage, wanted)) {
		region.start = map_region(storage, bytes);
		region.is_file = region.start != NULL;
	}
	struct storage_block *block = region.start ? NULL : take_kept(storage, wanted, bytes);
	if (block) {
		region = (struct region){.start = (char *)block, .bytes = block->bytes, .is_reused = true};
		storage->memory_bytes += region.bytes;
	}
	if (!region.start)
		region.start = map_memory(bytes);
	MEMORY_GROW(storage->regions, storage->count, storage->capacity, 16);
	assert(storage->regions);
	storage->regions[storage->count] = region;
	return &storage->regions[storage->count++];
}

/* Where the piece fits and may be; NULL: nowhere. */
static struct region *find_region(struct storage *storage, size_t bytes)
{
	uint32_t first = storage->count < REGIONS_OPEN ? 0 : storage->count - REGIONS_OPEN;
	for (uint32_t i = storage->count; i-- > first;) {
		struct region *region = &storage->regions[i];
		if (region->bytes - region->used >= bytes)
			return region->is_file || region->is_reused || !storage_is_over(storage, bytes) ? region : NULL;
	}
	return NULL;
}

void *storage_alloc(struct storage *storage, size_t bytes)
{
	bytes = (bytes + 63) / 64 * 64;
	struct region *region = find_region(storage, bytes);
	if (!region)
		region = add_region(storage, bytes);
	void *start = region->start + region->used;
	region->used += bytes;
	if (region->is_reused)
		memset(start, 0, bytes);
	else if (!region->is_file)
		storage->memory_bytes += bytes;
	return start;
}

void storage_idle(const struct storage *storage, const void *start, size_t bytes)
{
	for (uint32_t i = 0; i < storage->count && storage->file_bytes; i++) {
		/* regions are in no order of address; their number is small (one per 16 MiB) */
		const struct region *region = &storage->regions[i];
		if (!region->is_file || (const char *)start < region->start ||
		    (const char *)start >= region->start + region->bytes)
			continue;
		uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = whole_pages((uintptr_t)start),
			  end = ((uintptr_t)start + bytes) / page * page;
		if (first < end)
			madvise((void *)first, end - first, MADV_DONTNEED);
		return;
	}
}

/* ---- blocks ---- */

static struct storage_block *block_of(void *array)
{
	return array ? (struct storage_block *)((char *)array - sizeof(struct storage_block)) : NULL;
}

/* Linux puts what is whole huge pages where these fit, also when it moves; else a move takes them apart. old_bytes: those it has. */
static size_t memory_block_bytes(const struct storage *storage, size_t old_bytes, size_t bytes)
{
	size_t whole = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	bool has_room = storage->memory_bytes - old_bytes + whole <= storage->limit_bytes;
	return bytes >= HUGE_BYTES && has_room ? whole : bytes;
}

static struct storage_block *new_memory_block(struct storage *storage, size_t bytes)
{
	struct storage_block *block = take_kept(storage, bytes, bytes);
	if (!block) {
		size_t whole = memory_block_bytes(storage, 0, bytes);
		block = (struct storage_block *)map_memory(whole);
		*block = (struct storage_block){.bytes = whole, .fd = -1};
	}
	block->wanted = bytes;
	storage->memory_bytes += block->bytes;
	return block;
}

/* NULL: there is no room for it. */
static struct storage_block *new_file_block(struct storage *storage, size_t bytes)
{
	int fd;
	struct storage_block *block = (struct storage_block *)map_file(storage, bytes, &fd);
	if (!block)
		return NULL;
	*block = (struct storage_block){.bytes = bytes, .fd = fd, .is_file = true};
	if (storage->open_files < FILES_MAX) {
		storage->open_files++;
	} else { /* it will be copied when it grows */
		close(fd);
		block->fd = -1;
	}
	return block;
}

/* What a piece of so many bytes takes: steps of a quarter of a power of two. *size: its number. */
static size_t piece_bytes(size_t bytes, unsigned *size)
{
	unsigned shift = 61 - (unsigned)__builtin_clzl(bytes);
	size_t quarters = (bytes + ((size_t)1 << shift) - 1) >> shift;

	*size = 4 * shift + (unsigned)quarters;
	return quarters << shift;
}

static void count_small(struct storage *storage, size_t old_bytes, size_t bytes)
{
	storage->memory_bytes -= old_bytes >= PIECE_BYTES ? old_bytes : 0;
	storage->memory_bytes += bytes >= PIECE_BYTES ? bytes : 0;
}

static struct storage_block *new_small(struct storage *storage, size_t bytes)
{
	struct storage_block *block;
	unsigned size;
	if (bytes < PIECE_BYTES || !storage_is_over(storage, bytes)) {
		block = memory_resize(NULL, bytes, 1);
		*block = (struct storage_block){.bytes = bytes, .fd = -1};
		count_small(storage, 0, bytes);
		return block;
	}
	size_t whole = piece_bytes(bytes, &size);
	block = storage->free_pieces[size];
	if (block)
		storage->free_pieces[size] = block->next;
	else
		block = storage_alloc(storage, whole);
	*block = (struct storage_block){.bytes = bytes, .fd = -1, .is_piece = true};
	return block;
}

static void free_small(struct storage *storage, struct storage_block *block)
{
	unsigned size;
	if (!block->is_piece) {
		count_small(storage, block->bytes, 0);
		free(block);
		return;
	}
	piece_bytes(block->bytes, &size);
	block->next = storage->free_pieces[size];
	storage->free_pieces[size] = block;
}

static void free_block(struct storage *storage, struct storage_block *block)
{
	if (!block)
		return;
	if (block->bytes < LARGE_BYTES) {
		free_small(storage, block);
		return;
	}
	if (block->fd >= 0) {
		close(block->fd);
		storage->open_files--;
	}
	if (block->is_file) {
		storage_sweep_remove(&storage->sweep, (char *)block);
		storage->file_bytes -= block->bytes;
	} else {
		storage->memory_bytes -= block->bytes;
		if (keep(storage, block))
			return;
	}
	munmap(block, block->bytes);
}

/* Into another one, of which so many bytes are wanted. */
static struct storage_block *move_block(struct storage *storage, struct storage_block *old, struct storage_block *block,
                                        size_t bytes)
{
	size_t moved = old->bytes < bytes ? old->bytes : bytes;
	memcpy(block + 1, old + 1, moved - sizeof *block);
	free_block(storage, old);
	return block;
}

/* A large one in place, with its own pages, or where pages are that were released. NULL: it has to be copied. */
static struct storage_block *stretch(struct storage *storage, struct storage_block *block, size_t bytes)
{
	size_t old_bytes = block->bytes, wanted = bytes;
	char *start;
	if (!block->is_file) {
		if (bytes >= block->wanted && bytes <= old_bytes) {
			block->wanted = bytes;
			return block;
		}
		if (bytes > old_bytes && find_kept(storage, bytes) < KEPT_BLOCKS)
			return move_block(storage, block, new_memory_block(storage, bytes), bytes);
		if (bytes > old_bytes && storage_is_over(storage, bytes - old_bytes))
			return NULL;
		bytes = memory_block_bytes(storage, old_bytes, bytes);
		start = mremap(block, old_bytes, bytes, MREMAP_MAYMOVE);
		if (start == MAP_FAILED) /* two that were joined may be mappings of their own */
			return NULL;
		want_huge_pages(start, bytes);
		storage->memory_bytes += bytes - old_bytes;
	} else {
		int fd = block->fd;
		if (bytes <= old_bytes)
			return block; /* its file stays as long as it is */
		if (fd < 0)
			return NULL;
		storage_sweep_remove(&storage->sweep, (char *)block);
		start = storage_file_grow(fd, (char *)block, old_bytes, bytes, &storage->problem);
		storage_sweep_add(&storage->sweep, start ? start : (char *)block, start ? bytes : old_bytes);
		if (!start)
			return NULL; /* another folder may have room */
		storage->file_bytes += bytes - old_bytes;
	}
	block = (struct storage_block *)start;
	block->bytes = bytes;
	block->wanted = wanted;
	return block;
}

static struct storage_block *new_block(struct storage *storage, size_t bytes)
{
	struct storage_block *block = storage_is_over(storage, bytes) ? new_file_block(storage, bytes) : NULL;
	return block ? block : new_memory_block(storage, bytes);
}

/* Where it is. NULL: it has to be copied. */
static struct storage_block *resize_small(struct storage *storage, struct storage_block *block, size_t bytes)
{
	size_t old_bytes = block->bytes;
	unsigned size, old_size;
	if (block->is_piece) {
		piece_bytes(old_bytes, &old_size);
		piece_bytes(bytes, &size);
		if (size != old_size)
			return NULL;
		block->bytes = bytes;
		return block;
	}
	if (bytes >= PIECE_BYTES && bytes > old_bytes && storage_is_over(storage, bytes - old_bytes))
		return NULL;
	block = memory_resize(block, bytes, 1);
	block->bytes = bytes;
	count_small(storage, old_bytes, bytes);
	return block;
}

static struct storage_block *make_block(struct storage *storage, size_t bytes)
{
	return bytes < LARGE_BYTES ? new_small(storage, bytes) : new_block(storage, bytes);
}

void *storage_resize(struct storage *storage, void *array, size_t n, size_t element_bytes)
{
	struct storage_block *old = block_of(array), *block = NULL;
	size_t bytes;
	if (!storage)
		return memory_resize(array, n, element_bytes);
	if (__builtin_mul_overflow(n, element_bytes, &bytes) ||
	    __builtin_add_overflow(bytes, sizeof *block + HUGE_BYTES, &bytes))
		memory_exhausted(SIZE_MAX);
	bytes -= HUGE_BYTES; /* which is what it may be rounded up to */
	if (bytes >= LARGE_BYTES)
		bytes = whole_pages(bytes);
	bool is_large = bytes >= LARGE_BYTES, was_large = old && old->bytes >= LARGE_BYTES;
	if (!old)
		block = make_block(storage, bytes);
	else if (!is_large && !was_large)
		block = resize_small(storage, old, bytes);
	else if (is_large && was_large)
		block = stretch(storage, old, bytes);
	if (!block) /* from small to large or back, from memory to a file or back */
		block = move_block(storage, old, make_block(storage, bytes), bytes);
	return block + 1;
}

void storage_release(struct storage *storage, void *array)
{
	if (storage)
		free_block(storage, block_of(array));
	else
		free(array);
}

uint64_t storage_memory_bytes(const struct storage *storage)
{
	return storage->memory_bytes;
}

uint64_t storage_file_bytes(const struct storage *storage)
{
	return storage->file_bytes;
}

const struct error *storage_problem(const struct storage *storage)
{
	return storage->is_beyond ? &storage->problem : NULL;
}
