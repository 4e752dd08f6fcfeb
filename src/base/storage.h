/* SPDX-License-Identifier: Apache-2.0
 *
 * storage.h: memory for data that grows with the size of a trace: anonymous up to a limit, then mapped, unlinked
 * temporary files. Analyses, tables and importers use it for arrays with an element per event; other data uses malloc.
 *
 * Dirty pages of a shared mapping may leave our page table at any time. The page cache keeps them, and the kernel
 * writes them out if needed. So storage_sweep.c bounds memory by advice to the kernel, not by copying, and users of the
 * memory do not notice.
 *
 *     STORAGE_GROW(model->storage, items, count, capacity, 64);
 *     items[count++] = item;
 *     storage_release(model->storage, items);
 *
 * If no temporary file can be created or the disk is full, it continues in anonymous memory; storage_problem() says
 * why. A storage may be used by one thread.
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

/* Returns memory that is zeroed, aligned to 64 bytes, and keeps its address until storage_free(). Never NULL. */
void *storage_alloc(struct storage *storage, size_t bytes);

/* Tells that these bytes are not needed for now. If they are in a file, they leave our resident memory. */
void storage_idle(const struct storage *storage, const void *start, size_t bytes);

/* Resizes an array to n elements, like memory_resize(): contents stay, new elements are not zeroed. storage NULL:
 * malloc. A large array is aligned to 64 bytes, a small one to 16. */
void *storage_resize(struct storage *storage, void *old, size_t n, size_t element_bytes);
void storage_release(struct storage *storage, void *array); /* accepts NULL */

/* MEMORY_GROW() for such an array. */
#define STORAGE_GROW(storage, items, count, capacity, first)                                                           \
	MEMORY_GROW_BY(items, count, capacity, first, storage_resize((storage), (items), grown_, sizeof((items)[0])))

uint64_t storage_memory_bytes(const struct storage *storage);
uint64_t storage_file_bytes(const struct storage *storage);
/* Returns why memory was used beyond the limit, or NULL if it was not. */
const struct error *storage_problem(const struct storage *storage);

#endif
