/* SPDX-License-Identifier: Apache-2.0
 *
 * host_share.h: a few words of memory that the processes of one run directory on one machine share. With them they
 * agree on the steps that have operators. For each stretch of 64 steps the words hold the largest wish of all
 * processes; each process writes its wish one stretch ahead. A stretch for which no process wrote a wish has none, so
 * the wishes of a dead process expire. Only opening and closing make system calls.
 */
#ifndef RECORDER_HOST_SHARE_H
#define RECORDER_HOST_SHARE_H

#include <stdint.h>

struct host_share {
	uint64_t *words; /* NULL: not shared; each process decides alone */
};

/* Does nothing on failure. Do not call it again without host_share_close(). */
void host_share_open(struct host_share *share, const char *directory);
/* Closes and removes the file; processes that have it open keep using it. */
void host_share_close(struct host_share *share, const char *directory);
/* In a forked child: unmaps the words and leaves the parent's file. */
void host_share_forget(struct host_share *share);
/* Removes a file that killed processes left. */
void host_share_remove(const char *directory);

void host_share_put(struct host_share *share, int64_t stretch, unsigned wish);
int host_share_get(const struct host_share *share, int64_t stretch); /* -1: no process wrote a wish */

#endif
