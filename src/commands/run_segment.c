/* SPDX-License-Identifier: Apache-2.0
 *
 * run_segment.c: looks at both ends of a file with the segment reader, which finds the next good block by itself.
 */
#include "commands/run_segment.h"

#include "base/memory.h"
#include "format/segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define END_BYTES 65536

static bool on_header(void *context, const struct stepscope_segment_header *header)
{
	struct run_segment *segment = context;

	segment->header = *header;
	return true;
}

static bool on_meta(void *context, const char *key, const char *value)
{
	struct run_segment *segment = context;

	if (!strcmp(key, "pool"))
		snprintf(segment->pool, sizeof(segment->pool), "%s", value);
	else if (!strcmp(key, "capture"))
		snprintf(segment->capture, sizeof(segment->capture), "%s", value);
	return true;
}

static bool look(struct run_segment *segment, const char *bytes, size_t length)
{
	const struct segment_visitor visitor = {.context = segment, .header = on_header, .meta = on_meta};
	struct segment_stats stats;
	struct error err;

	if (segment_read_memory(bytes, length, "segment", &visitor, &stats, &err))
		return false;
	segment->has_events = segment->has_events || stats.events > 0;
	segment->is_closed = stats.is_closed;
	return true;
}

static bool look_at_file(struct run_segment *segment, int fd, char *bytes)
{
	const size_t header = sizeof(struct stepscope_segment_header);
	struct stat status;
	ssize_t length = pread(fd, bytes, END_BYTES, 0);

	if (length <= 0 || fstat(fd, &status) != 0 || !look(segment, bytes, (size_t)length))
		return false;
	if (status.st_size <= length)
		return true;
	/* the header again, then the end */
	length = pread(fd, bytes + header, END_BYTES, status.st_size - (END_BYTES - (off_t)header));
	return length <= 0 || look(segment, bytes, header + (size_t)length);
}

bool run_segment_read(struct run_segment *segment, int directory_fd, const char *name)
{
	int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *bytes;
	bool is_good;

	*segment = (struct run_segment){.pool = ""};
	if (fd < 0)
		return false;
	bytes = memory_resize(NULL, END_BYTES + sizeof(struct stepscope_segment_header), 1);
	is_good = look_at_file(segment, fd, bytes);
	free(bytes);
	close(fd);
	return is_good;
}

/* The number between the dot before `end` and `end`; moves `end` to that dot. */
static bool number_before(const char *name, const char **end, uint64_t *number)
{
	const char *dot = *end;
	char *stop;

	while (dot > name && dot[-1] != '.')
		dot--;
	if (dot == name || dot == *end || *dot < '0' || *dot > '9')
		return false;
	*number = strtoull(dot, &stop, 10);
	if (stop != *end)
		return false;
	*end = dot - 1;
	return true;
}

bool run_segment_parse_name(struct run_segment_name *parts, const char *name)
{
	size_t length = strlen(name);
	const char *end = name + length - 4;
	uint64_t number, start_time, pid;

	if (length < 5 || strcmp(end, ".ssr") != 0)
		return false;
	if (!number_before(name, &end, &number))
		return false;
	parts->stem_length = (int)(end - name);
	if (!number_before(name, &end, &start_time) || !number_before(name, &end, &pid) || end == name)
		return false;
	if (pid > INT32_MAX || number > UINT32_MAX)
		return false;
	parts->number = (uint32_t)number;
	parts->start_time = start_time;
	parts->pid = (int64_t)pid;
	return true;
}
