/* SPDX-License-Identifier: Apache-2.0
 *
 * storage_file.c: unnamed temporary files, which disappear with their last mapping.
 */
#include "base/storage_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_in(const char *folder)
{
	char path[4096];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	int length = snprintf(path, sizeof path, "%s/stepscope.XXXXXX", folder);
	if (length < 0 || (size_t)length >= sizeof path)
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static bool storage_file_reserve(int fd, uint64_t offset, uint64_t bytes, struct error *err)
{
	int number = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
	if (number)
		error_errno(err, STATUS_IO, number, "cannot reserve %llu MiB in a temporary file",
		            (unsigned long long)(bytes >> 20));
	return number == 0;
}

/* /tmp comes last, because it may be in memory. */
int storage_file_open(size_t bytes, struct error *err)
{
	const char *folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	bool is_full = false;
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		int fd = folders[i] && *folders[i] ? open_in(folders[i]) : -1;
		if (fd < 0)
			continue;
		if (storage_file_reserve(fd, 0, bytes, err))
			return fd;
		is_full = true;
		close(fd);
	}
	if (!is_full)
		error_errno(err, STATUS_IO, errno, "cannot create a temporary file in $TMPDIR, /var/tmp or /tmp");
	return -1;
}

char *storage_file_map(int fd, size_t bytes, struct error *err)
{
	char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (start != MAP_FAILED)
		return start;
	error_errno(err, STATUS_IO, errno, "cannot map a temporary file");
	return NULL;
}

char *storage_file_grow(int fd, char *old, size_t old_bytes, size_t bytes, struct error *err)
{
	if (!storage_file_reserve(fd, old_bytes, bytes - old_bytes, err))
		return NULL;
	char *start = mremap(old, old_bytes, bytes, MREMAP_MAYMOVE);
	if (start != MAP_FAILED)
		return start;
	error_errno(err, STATUS_IO, errno, "cannot map a temporary file");
	return NULL;
}
