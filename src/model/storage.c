/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of anonymous memory first, then extents of an unlinked file. Dirty pages of a shared mapping may be dropped from
 * our page table at any time (MADV_DONTNEED): the page cache keeps them and the kernel writes them out when it must. So
 * resident memory is bounded by telling it so, not by copying.
 */
#include "model/storage.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

#define REGION_BYTES ((size_t)16 << 20)
#define REGIONS_BETWEEN_SWEEPS 4 /* 64 MiB of fresh pages at most before all of the file's pages leave */

struct region {
	char *start;
	size_t bytes, used;
	bool is_file;
};

struct storage {
	uint64_t limit_bytes, memory_bytes, file_bytes;
	struct region *regions;
	uint32_t count, capacity;
	uint32_t file_regions;
	int fd; /* -1: not opened yet */
	bool has_no_file;
};

/* /tmp may be memory itself, so it comes last. */
static int open_unlinked(void)
{
	const char *folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		if (!folders[i] || !*folders[i])
			continue;
		int fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
		char path[4096];
		int length = snprintf(path, sizeof path, "%s/stepscope.XXXXXX", folders[i]);
		if (length < 0 || (size_t)length >= sizeof path)
			continue;
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0) {
			unlink(path);
			return fd;
		}
	}
	return -1;
}

/* The blocks are reserved at once: a full disk must show here, not as SIGBUS at a store. */
static char *map_file_region(struct storage *storage, size_t bytes)
{
	if (storage->has_no_file)
		return NULL;
	if (storage->fd < 0)
		storage->fd = open_unlinked();
	off_t offset = (off_t)storage->file_bytes;
	if (storage->fd < 0 || posix_fallocate(storage->fd, offset, (off_t)bytes) != 0) {
		storage->has_no_file = true;
		return NULL;
	}
	char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, storage->fd, offset);
	if (start == MAP_FAILED) {
		storage->has_no_file = true;
		return NULL;
	}
	storage->file_bytes += bytes;
	return start;
}

static void sweep_file_regions(const struct storage *storage)
{
	for (uint32_t i = 0; i < storage->count && storage->regions; i++)
		if (storage->regions[i].is_file)
			madvise(storage->regions[i].start, storage->regions[i].bytes, MADV_DONTNEED);
}

static struct region *add_region(struct storage *storage, size_t wanted)
{
	size_t bytes = wanted > REGION_BYTES ? (wanted + 4095) / 4096 * 4096 : REGION_BYTES;
	struct region region = {.bytes = bytes};
	if (storage->memory_bytes + wanted > storage->limit_bytes) {
		if (++storage->file_regions % REGIONS_BETWEEN_SWEEPS == 0)
			sweep_file_regions(storage);
		region.start = map_file_region(storage, bytes);
		region.is_file = region.start != NULL;
	}
	if (!region.start) {
		region.start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (region.start == MAP_FAILED)
			memory_exhausted(bytes);
	}
	if (storage->count == storage->capacity) {
		storage->capacity = storage->capacity ? 2 * storage->capacity : 16;
		storage->regions = memory_resize(storage->regions, storage->capacity, sizeof *storage->regions);
	}
	assert(storage->regions);
	storage->regions[storage->count] = region;
	return &storage->regions[storage->count++];
}

struct storage *storage_new(uint64_t limit_bytes)
{
	struct storage *storage = memory_resize(NULL, 1, sizeof *storage);
	*storage = (struct storage){.limit_bytes = limit_bytes, .fd = -1};
	return storage;
}

void storage_free(struct storage *storage)
{
	if (!storage)
		return;
	for (uint32_t i = 0; i < storage->count; i++)
		munmap(storage->regions[i].start, storage->regions[i].bytes);
	free(storage->regions);
	if (storage->fd >= 0)
		close(storage->fd);
	free(storage);
}

void *storage_alloc(struct storage *storage, size_t bytes)
{
	bytes = (bytes + 63) / 64 * 64;
	struct region *region = storage->count ? &storage->regions[storage->count - 1] : NULL;
	bool is_over = region && !region->is_file && !storage->has_no_file &&
	               storage->memory_bytes + bytes > storage->limit_bytes;
	if (!region || region->bytes - region->used < bytes || is_over)
		region = add_region(storage, bytes);
	void *start = region->start + region->used;
	region->used += bytes;
	if (!region->is_file)
		storage->memory_bytes += bytes;
	return start;
}

void storage_idle(const struct storage *storage, const void *start, size_t bytes)
{
	if (!storage->file_bytes)
		return;
	for (uint32_t low = 0, high = storage->count; low < high;) {
		/* regions are in no order of address; their number is small (one per 16 MiB) */
		const struct region *region = &storage->regions[low++];
		if (!region->is_file || (const char *)start < region->start ||
		    (const char *)start >= region->start + region->bytes)
			continue;
		uintptr_t first = ((uintptr_t)start + 4095) / 4096 * 4096,
			  end = ((uintptr_t)start + bytes) / 4096 * 4096;
		if (first < end)
			madvise((void *)first, end - first, MADV_DONTNEED);
		return;
	}
}

uint64_t storage_memory_bytes(const struct storage *storage)
{
	return storage->memory_bytes;
}

uint64_t storage_file_bytes(const struct storage *storage)
{
	return storage->file_bytes;
}
