/* SPDX-License-Identifier: Apache-2.0
 *
 * own_fd.h: file descriptors of the recorder in a process that belongs to the program. The program may close all
 * descriptors that it does not know (daemons do) and reuse their numbers for its own files. Therefore ours have high
 * numbers, and each use first checks that the number still refers to our file.
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

/* Takes a descriptor over, moving it to a high number if possible. -1 stays -1. */
void own_fd_take(struct own_fd *own, int fd);
/* Returns true if a copy of this library may have taken a descriptor in this process. */
bool own_fd_was_taken(void);
/* Returns true if the number still refers to our file. */
bool own_fd_is_ours(const struct own_fd *own);
/* Opens our file again by its path, after the program has closed the descriptor. Returns false if the file is gone. */
bool own_fd_reopen(struct own_fd *own, const char *path, int flags);
/* Closes it if it is ours. */
void own_fd_close(struct own_fd *own);

#endif
