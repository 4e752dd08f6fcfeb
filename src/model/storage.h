/* SPDX-License-Identifier: Apache-2.0
 *
 * storage.h: memory for chunks of columns: anonymous up to a limit, then an unlinked temporary file that is mapped. What is
 * handed out is zeroed, aligned to 64 bytes, and stays at its address until storage_free(). Private to model/.
 */
#ifndef MODEL_STORAGE_H
#define MODEL_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct storage;

struct storage *storage_new(uint64_t limit_bytes);
void storage_free(struct storage *storage); /* accepts NULL */

/* Never NULL. Without room for the temporary file it goes on in anonymous memory. */
void *storage_alloc(struct storage *storage, size_t bytes);

/* Tells that these bytes are not needed for now: they leave our resident memory when they are in the file. */
void storage_idle(const struct storage *storage, const void *start, size_t bytes);

uint64_t storage_memory_bytes(const struct storage *storage);
uint64_t storage_file_bytes(const struct storage *storage);

#endif
