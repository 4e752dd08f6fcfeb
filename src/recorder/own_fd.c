/* SPDX-License-Identifier: Apache-2.0
 *
 * own_fd.c: see own_fd.h.
 */
#include "recorder/own_fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_NUMBER 200

void own_fd_take(struct own_fd *own, int fd)
{
	struct stat info = {0};
	int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, FIRST_NUMBER) : -1;
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (fd >= 0)
		(void)fstat(fd, &info);
	*own = (struct own_fd){fd, info.st_dev, info.st_ino};
}

bool own_fd_was_taken(void)
{
	struct rlimit limit;
	return fcntl(FIRST_NUMBER, F_GETFD) >= 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	       limit.rlim_cur <= FIRST_NUMBER;
}

bool own_fd_is_ours(const struct own_fd *own)
{
	struct stat info;
	return own->fd >= 0 && fstat(own->fd, &info) == 0 && info.st_dev == own->device && info.st_ino == own->inode;
}

bool own_fd_reopen(struct own_fd *own, const char *path, int flags)
{
	struct stat info;
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (fstat(fd, &info) != 0 || info.st_dev != own->device || info.st_ino != own->inode) {
		close(fd);
		return false;
	}
	own_fd_take(own, fd);
	return true;
}

void own_fd_close(struct own_fd *own)
{
	if (own_fd_is_ours(own))
		close(own->fd);
	own->fd = -1;
}
