/* SPDX-License-Identifier: Apache-2.0
 *
 * storage.h: memory for what grows with the size of a trace: anonymous up to a limit, then unlinked temporary files that are mapped.
 * Analyses, tables and importers use it for arrays with an element per event; for everything else there is malloc.
 *
 * Dirty pages of a shared mapping may leave our page table at any time: the page cache keeps them, and the kernel writes them out when
 * it must. So memory is bounded by telling it so (storage_sweep.c), not by copying, and whoever uses the memory need not know.
 *
 *     STORAGE_GROW(model->storage, items, count, capacity, 64);
 *     items[count++] = item;
 *     storage_release(model->storage, items);
 *
 * Where no temporary file can be made or the disk is full, it goes on in anonymous memory; storage_problem() says why. One thread.
 */
#ifndef BASE_STORAGE_H
#define BASE_STORAGE_H

#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct storage;

struct storage *storage_new(uint64_t limit_bytes);
void storage_free(struct storage *storage); /* accepts NULL */

/* Zeroed, aligned to 64 bytes; stays at its address until storage_free(). Never NULL. */
void *storage_alloc(struct storage *storage, size_t bytes);

/* Tells that these bytes are not needed for now: they leave our resident memory when they are in a file. */
void storage_idle(const struct storage *storage, const void *start, size_t bytes);

/* An array that grows or shrinks to n elements, as memory_resize(): its contents stay, what is new is not zeroed. storage NULL: malloc.
 * Aligned to 64 bytes when it is large, to 16 else. */
void *storage_resize(struct storage *storage, void *old, size_t n, size_t element_bytes);
void storage_release(struct storage *storage, void *array); /* accepts NULL */

/* MEMORY_GROW() of such an array. */
#define STORAGE_GROW(storage, items, count, capacity, first)                                                           \
	MEMORY_GROW_BY(items, count, capacity, first, storage_resize((storage), (items), grown_, sizeof((items)[0])))

uint64_t storage_memory_bytes(const struct storage *storage);
uint64_t storage_file_bytes(const struct storage *storage);
/* Why memory was used beyond the limit; NULL: it was not. */
const struct error *storage_problem(const struct storage *storage);

#endif
