/* SPDX-License-Identifier: Apache-2.0
 *
 * own_fd.h: descriptors in somebody else's process. A program may close all descriptors it does not know (daemons do) and get
 * our numbers for its own files; so ours are high, and before each use we look whether the number still means our file.
 */
#ifndef RECORDER_OWN_FD_H
#define RECORDER_OWN_FD_H

#include <stdbool.h>
#include <sys/types.h>

struct own_fd {
	int fd; /* -1: none */
	dev_t device;
	ino_t inode;
};

/* Takes a descriptor over, under a high number where there is room. -1 stays -1. */
void own_fd_take(struct own_fd *own, int fd);
/* May there be one that a copy of this library has taken? */
bool own_fd_was_taken(void);
/* Does the number still mean our file? */
bool own_fd_is_ours(const struct own_fd *own);
/* Opens our file again under its path, after the program has closed the descriptor. False: it is not there. */
bool own_fd_reopen(struct own_fd *own, const char *path, int flags);
/* Closes it if it is ours. */
void own_fd_close(struct own_fd *own);

#endif
