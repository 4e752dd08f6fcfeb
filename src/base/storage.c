/* SPDX-License-Identifier: Apache-2.0
 *
 * storage.c: regions, whose pieces are never released alone, and blocks, which are arrays that grow. Both use anonymous
 * memory first, then files. Large ones have separate files, so that releasing them frees disk space. A large block
 * keeps its file open to grow in place. Small blocks then become pieces of regions; there may be many, such as series
 * of values for hundreds of quantities.
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
#define LARGE_BYTES ((size_t)1 << 20) /* blocks of at least this size have separate pages */
#define PIECE_BYTES ((size_t)4 << 10) /* smaller blocks are not counted */
#define PIECE_SIZES 96
#define FILES_MAX 64u /* kept open at most: the limit of a program may be 1,024 or lower */
#define HUGE_BYTES ((size_t)2 << 20)
#define KEPT_BLOCKS 16u
#define KEPT_BYTES ((uint64_t)32 << 20)
#define REGIONS_OPEN                                                                                                   \
	8u /* number of last regions to search: a region without room for one piece may have room for a smaller one */

struct region {
	char *start;
	size_t bytes, used;
	bool is_file;
	bool is_reused; /* a released block: counted as a whole, and not zeroed */
};

struct storage_block { /* header before the array */
	size_t bytes;  /* of header and array */
	size_t wanted; /* bytes in use; a reused block may have more */
	int fd;        /* its file, -1: not open */
	bool is_file;
	bool is_piece;              /* piece of a region */
	struct storage_block *next; /* next free piece */
	char padding[64 - 2 * sizeof(size_t) - sizeof(int) - 2 * sizeof(bool) - sizeof(struct storage_block *) - 2];
};
static_assert(sizeof(struct storage_block) == 64, "arrays are aligned");

struct storage {
	uint64_t limit_bytes, memory_bytes, file_bytes;
	struct region *regions;
	uint32_t count, capacity;
	uint32_t open_files;
	bool has_no_file; /* a file failed once: data stays in memory from then on */
	bool is_beyond;   /* memory beyond the limit was used for that reason */
	/* Released blocks of memory, of which no two are adjacent. Analyses take arrays of similar sizes one after the
	 * other. The first touch of a page costs more than most of their work on it. It costs ten times as much in a
	 * virtual machine that returns free memory to its host. */
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

/* Joins two adjacent blocks. Returns NULL if they are not adjacent. */
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

/* Keeps the part beyond `bytes`, in whole huge pages. */
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

/* Returns the smallest kept block that is large enough, or KEPT_BLOCKS. */
static uint32_t find_kept(const struct storage *storage, size_t bytes)
{
	uint32_t best = KEPT_BLOCKS;
	for (uint32_t i = 0; i < storage->kept_count; i++)
		if (storage->kept[i]->bytes >= bytes &&
		    (best == KEPT_BLOCKS || storage->kept[i]->bytes < storage->kept[best]->bytes))
			best = i;
	return best;
}

/* Takes a kept block that is large enough, but at most `most` bytes of it. Returns NULL if there is none. */
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

/* Returns true if `bytes` more memory must come from a file. */
static bool storage_is_over(struct storage *storage, size_t bytes)
{
	if (storage->memory_bytes + storage->kept_bytes + bytes > storage->limit_bytes)
		drop_kept(storage);
	bool is = storage->memory_bytes + bytes > storage->limit_bytes;
	storage->is_beyond |= is && storage->has_no_file;
	return is && !storage->has_no_file;
}

/* One fault for 2 MiB instead of 512 faults. The kernel may refuse. */
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

/* Maps a new file. The caller may close *fd. Returns NULL if there is no room. */
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

/* Returns a region with room for the piece. NULL: none has room, or the piece must go to a file. */
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
		/* regions are not sorted by address, but their number is small (one per 16 MiB) */
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

/* Linux aligns a mapping to huge pages if its size is a multiple of them, also when it moves. Otherwise a move splits
 * them. old_bytes: the current size. */
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

/* Returns NULL if there is no room. */
static struct storage_block *new_file_block(struct storage *storage, size_t bytes)
{
	int fd;
	struct storage_block *block = (struct storage_block *)map_file(storage, bytes, &fd);
	if (!block)
		return NULL;
	*block = (struct storage_block){.bytes = bytes, .fd = fd, .is_file = true};
	if (storage->open_files < FILES_MAX) {
		storage->open_files++;
	} else { /* it is copied when it grows */
		close(fd);
		block->fd = -1;
	}
	return block;
}

/* Returns the bytes that a piece takes: steps of a quarter of a power of two. *size: the index of the step. */
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

/* Moves a block's contents into another block for `bytes` bytes. */
static struct storage_block *move_block(struct storage *storage, struct storage_block *old, struct storage_block *block,
                                        size_t bytes)
{
	size_t moved = old->bytes < bytes ? old->bytes : bytes;
	memcpy(block + 1, old + 1, moved - sizeof *block);
	free_block(storage, old);
	return block;
}

/* Resizes a large block in place, with its pages, or moves it to released pages. NULL: it must be copied. */
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
		if (start == MAP_FAILED) /* joined blocks may be separate mappings */
			return NULL;
		want_huge_pages(start, bytes);
		storage->memory_bytes += bytes - old_bytes;
	} else {
		int fd = block->fd;
		if (bytes <= old_bytes)
			return block; /* its file keeps its length */
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

/* Resizes a small block in place. NULL: it must be copied. */
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
	bytes -= HUGE_BYTES; /* bytes may be rounded up by this much */
	if (bytes >= LARGE_BYTES)
		bytes = whole_pages(bytes);
	bool is_large = bytes >= LARGE_BYTES, was_large = old && old->bytes >= LARGE_BYTES;
	if (!old)
		block = make_block(storage, bytes);
	else if (!is_large && !was_large)
		block = resize_small(storage, old, bytes);
	else if (is_large && was_large)
		block = stretch(storage, old, bytes);
	if (!block) /* changes between small and large, or between memory and file */
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
