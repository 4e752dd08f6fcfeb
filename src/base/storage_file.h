/* SPDX-License-Identifier: Apache-2.0
 *
 * storage_file.h: pages in temporary files, and the thread that keeps few of them resident. Private to storage.c.
 */
#ifndef BASE_STORAGE_FILE_H
#define BASE_STORAGE_FILE_H

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens an unnamed file of that size, in the first of $TMPDIR, /var/tmp and /tmp that has room. Its blocks are
 * reserved, so that a full disk fails here and not as SIGBUS at a store. Returns a descriptor, or -1. */
int storage_file_open(size_t bytes, struct error *err);
/* Map the whole file, or grow the file and its mapping `old` of old_bytes to `bytes`. Return NULL if there is no
 * room. */
char *storage_file_map(int fd, size_t bytes, struct error *err);
char *storage_file_grow(int fd, char *old, size_t old_bytes, size_t bytes, struct error *err);

/* Drops file pages from our page table if there are many; checks every few milliseconds. */
struct sweep_range {
	char *start;
	size_t bytes;
};
struct storage_sweep {
	pthread_mutex_t lock; /* of ranges, count and capacity */
	pthread_cond_t stop;
	pthread_t thread;
	bool is_running, is_stopping;
	struct sweep_range *ranges;
	uint32_t count, capacity;
};
void storage_sweep_init(struct storage_sweep *sweep);
void storage_sweep_release(struct storage_sweep *sweep);
/* The first range starts the thread. A range in the list must not be unmapped or moved. */
void storage_sweep_add(struct storage_sweep *sweep, char *start, size_t bytes);
void storage_sweep_remove(struct storage_sweep *sweep, const char *start);

#endif
