/* SPDX-License-Identifier: Apache-2.0
 *
 * host_share.c: see the header. The file is in /dev/shm, not in the run directory. The run directory may be on another
 * machine, where memory is not shared and its loss kills the processes that access it.
 */
#include "recorder/host_share.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES 4096
#define STRETCHES 8 /* a process that is this many stretches behind another one gets no value, or only its own */

static bool write_path(char *path, size_t bytes, const char *directory)
{
	struct stat info;
	if (stat(directory, &info) != 0)
		return false;
	snprintf(path, bytes, "/dev/shm/stepscope.%u.share.%" PRIx64 ".%" PRIx64, (unsigned)getuid(),
	         (uint64_t)info.st_dev, (uint64_t)info.st_ino);
	return true;
}

/* Returns true if the file is ours and its page is allocated: a page that is not available later would end the
 * program. */
static bool is_usable(int fd)
{
	struct stat info;
	return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == getuid() &&
	       posix_fallocate(fd, 0, BYTES) == 0;
}

void host_share_open(struct host_share *share, const char *directory)
{
	char path[128];
	int error = errno;
	int fd = write_path(path, sizeof(path), directory)
	                 ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)
	                 : -1;
	if (fd >= 0) {
		void *page = is_usable(fd) ? mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
		share->words = page == MAP_FAILED ? NULL : page;
		close(fd);
	}
	errno = error;
}

void host_share_forget(struct host_share *share)
{
	if (share->words)
		(void)munmap(share->words, BYTES);
	share->words = NULL;
}

void host_share_close(struct host_share *share, const char *directory)
{
	if (share->words)
		host_share_remove(directory);
	host_share_forget(share);
}

void host_share_remove(const char *directory)
{
	char path[128];
	if (write_path(path, sizeof(path), directory))
		(void)unlink(path);
}

/* Returns the stretch part of a word. The low byte holds a wish + 1, so a word in use is never 0. */
static uint64_t tag(int64_t stretch)
{
	return (uint64_t)stretch << 8;
}

void host_share_put(struct host_share *share, int64_t stretch, unsigned wish)
{
	if (!share->words)
		return;
	uint64_t *word = &share->words[(uint64_t)stretch % STRETCHES], mine = tag(stretch) | (wish + 1);
	uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
	while ((seen & 0xff) == 0 || seen >> 8 != mine >> 8 || seen < mine)
		if (__atomic_compare_exchange_n(word, &seen, mine, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			break;
}

int host_share_get(const struct host_share *share, int64_t stretch)
{
	if (!share->words)
		return -1;
	uint64_t seen = __atomic_load_n(&share->words[(uint64_t)stretch % STRETCHES], __ATOMIC_RELAXED);
	return seen >> 8 == tag(stretch) >> 8 ? (int)(seen & 0xff) - 1 : -1;
}
