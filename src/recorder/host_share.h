/* SPDX-License-Identifier: Apache-2.0
 *
 * host_share.h: a few words in memory that the processes of a run directory on one machine have in common, so that they agree on which steps
 * have operators. For each stretch of 64 steps they hold the largest wish of all; each process says its own one stretch ahead. A stretch
 * that nobody spoke of has none, so what a dead process wanted is forgotten by itself. No system call but to open and to close.
 */
#ifndef RECORDER_HOST_SHARE_H
#define RECORDER_HOST_SHARE_H

#include <stdint.h>

struct host_share {
	uint64_t *words; /* NULL: there are none; each process decides for itself */
};

/* Does nothing when it cannot. Not to be called again without host_share_close(). */
void host_share_open(struct host_share *share, const char *directory);
/* Also takes the file away: who has it open goes on with it. */
void host_share_close(struct host_share *share, const char *directory);
/* In a forked child: it is the parent's. */
void host_share_forget(struct host_share *share);
/* Takes the file away that killed processes left. */
void host_share_remove(const char *directory);

void host_share_put(struct host_share *share, int64_t stretch, unsigned wish);
int host_share_get(const struct host_share *share, int64_t stretch); /* -1: nobody said anything */

#endif
