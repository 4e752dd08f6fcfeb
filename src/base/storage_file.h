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

/* A file of so many bytes without a name, in the first of $TMPDIR, /var/tmp and /tmp that has room for it. Its blocks are reserved: a
 * full disk must show here, not as SIGBUS at a store. A descriptor, or -1. */
int storage_file_open(size_t bytes, struct error *err);
/* Maps all of the file, or makes the mapping `old` of old_bytes and the file so long. NULL: no room. */
char *storage_file_map(int fd, size_t bytes, struct error *err);
char *storage_file_grow(int fd, char *old, size_t old_bytes, size_t bytes, struct error *err);

/* Drops the pages of files from our page table when they are many; looks every few milliseconds. */
struct sweep_range {
	char *start;
	size_t bytes;
};
struct storage_sweep {
	pthread_mutex_t lock; /* the list's */
	pthread_cond_t stop;
	pthread_t thread;
	bool is_running, is_stopping;
	struct sweep_range *ranges;
	uint32_t count, capacity;
};
void storage_sweep_init(struct storage_sweep *sweep);
void storage_sweep_release(struct storage_sweep *sweep);
/* With the first range the thread is started. Nothing may be unmapped or moved that is in the list. */
void storage_sweep_add(struct storage_sweep *sweep, char *start, size_t bytes);
void storage_sweep_remove(struct storage_sweep *sweep, const char *start);

#endif
