/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_fold.c: the rescue on a pool of any bytes. The path of the segment in it is always put right, or an input could choose a file.
 * A second rescue of the same pool must write the same bytes, and the segment stays readable without damage.
 */
#include "format/fold.h"
#include "format/segment.h"
#include "pool_sample.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[64];
static char segment[128], pool_path[128];

static void remove_all(void)
{
	unlink(segment);
	unlink(pool_path);
	rmdir(directory);
}

static void set_up(void)
{
	if (segment[0])
		return;
	/* in memory where there is some: each rescue waits for the disk */
	snprintf(directory, sizeof(directory), "%s/stepscope-fuzz-XXXXXX",
	         access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(directory))
		abort();
	snprintf(segment, sizeof(segment), "%s/host.4242.99.0.ssr", directory);
	snprintf(pool_path, sizeof(pool_path), "%s/pool", directory);
	atexit(remove_all);
}

static uint8_t *load_segment(size_t *length)
{
	struct stat info;
	int fd = open(segment, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &info) != 0)
		abort();
	uint8_t *bytes = malloc((size_t)info.st_size + 1);
	*length = (size_t)info.st_size;
	if (!bytes || read(fd, bytes, *length) != info.st_size)
		abort();
	close(fd);
	return bytes;
}

static enum status fold(const uint8_t *bytes, size_t size)
{
	struct fold_result result;
	struct error err;

	pool_sample_write(pool_path, bytes, size);
	return fold_pool(pool_path, false, &result, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct segment_visitor visitor = {0};
	struct segment_stats stats;
	struct error err;
	size_t once_length, twice_length;

	set_up();
	uint8_t *copy = malloc(size + 1);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (size >= sizeof(struct stepscope_pool_header)) {
		memcpy(copy, STEPSCOPE_POOL_MAGIC, 8);
		memset(copy + offsetof(struct stepscope_pool_header, segment_path), 0, 1400);
		memcpy(copy + offsetof(struct stepscope_pool_header, segment_path), segment, strlen(segment));
	}
	pool_sample_write_segment(segment, 42);
	enum status status = fold(copy, size);
	uint8_t *once = load_segment(&once_length);
	if (fold(copy, size) != status)
		abort();
	uint8_t *twice = load_segment(&twice_length);
	if (once_length != twice_length || memcmp(once, twice, once_length) != 0)
		abort();
	if (segment_read(segment, &visitor, &stats, &err) != STATUS_OK || stats.damaged_places + stats.torn_bytes)
		abort();
	free(once);
	free(twice);
	free(copy);
	return 0;
}
