/* SPDX-License-Identifier: Apache-2.0
 *
 * segment_file.c: see segment_file.h.
 */
#include "recorder/segment_file.h"

#include "base/file_limit.h"
#include "format/block.h"
#include "recorder/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

void recorder_say(const char *format, ...)
{
	char line[1024] = "stepscope: ";
	size_t length = strlen(line);
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(line + length, sizeof(line) - length - 1, format, arguments);
	va_end(arguments);
	if (n < 0)
		return;
	length += (size_t)n < sizeof(line) - length - 1 ? (size_t)n : sizeof(line) - length - 2;
	line[length++] = '\n';
	struct file_limit limit;
	file_limit_enter(&limit); /* stderr may be a file too */
	if (write(STDERR_FILENO, line, length) < 0)
		length = 0; /* this cannot be reported */
	file_limit_leave(&limit);
}

/* Host names may contain dots, which separate the parts of a file name. */
static void put_host(char *out, size_t bytes)
{
	if (gethostname(out, bytes) != 0 || out[0] == 0)
		snprintf(out, bytes, "host");
	out[bytes - 1] = 0;
	for (char *at = out; *at; at++)
		if (*at == '.' || *at == '/')
			*at = '-';
}

void segment_file_init(struct segment_file *file, const char *directory,
                       const struct stepscope_segment_header *identity)
{
	char host[256];
	memset(file, 0, sizeof(*file));
	file->file.fd = -1;
	file->identity = *identity;
	put_host(host, sizeof(host));
	snprintf(file->directory, sizeof(file->directory), "%s", directory);
	snprintf(file->stem, sizeof(file->stem), "%s.%u.%" PRIu64, host, identity->pid, identity->start_time);
}

static void set_path(struct segment_file *file, char *path, size_t bytes, uint32_t number)
{
	snprintf(path, bytes, "%s/%s.%u.ssr", file->directory, file->stem, number);
}

/* Writes the header and an anchor. Without the anchor, the time of a process that ends before its first pass would be
 * unknown. */
static bool write_start(struct segment_file *file)
{
	uint8_t block[sizeof(struct stepscope_block) + sizeof(struct stepscope_anchor)];
	struct stepscope_anchor anchor;
	clock_anchor(&anchor);
	size_t bytes = block_write(block, STEPSCOPE_BLOCK_CLOCK, 0, &anchor, sizeof(anchor));
	return segment_file_append(file, &file->identity, sizeof(file->identity), block, bytes);
}

int segment_file_open(struct segment_file *file)
{
	for (uint32_t n = file->identity.segment; n < 1000000; n++) {
		set_path(file, file->path, sizeof(file->path), n);
		int fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return errno;
		own_fd_take(&file->file, fd);
		file->identity.segment = n;
		file->identity.first_tick = clock_ticks();
		segment_header_seal(&file->identity);
		file->bytes = 0;
		file->opened_ns = clock_raw_ns();
		bool was_reported = file->was_reported;
		file->was_reported = true; /* the caller reports a failure */
		bool is_written = write_start(file);
		int reason = errno;
		file->was_reported = was_reported;
		if (is_written)
			return 0;
		segment_file_close(file);
		unlink(file->path);
		return reason;
	}
	return EEXIST;
}

int segment_file_reopen(struct segment_file *file)
{
	int fd = open(file->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno;
	own_fd_take(&file->file, fd);
	return 0;
}

void segment_file_close(struct segment_file *file)
{
	own_fd_close(&file->file);
}

static void report_failure(struct segment_file *file, int reason)
{
	file->is_failing = true;
	if (file->was_reported)
		return;
	file->was_reported = true;
	recorder_say("cannot write '%s': %s; training continues, but events are only counted, not kept, "
	             "until the disk has space",
	             file->path, strerror(reason));
}

static bool segment_file_add(struct segment_file *file, const void *first, size_t first_bytes, const void *second,
                             size_t second_bytes)
{
	size_t done = 0, total = first_bytes + second_bytes;
	if (file->file.fd < 0)
		return false;
	if (!own_fd_is_ours(&file->file) && !own_fd_reopen(&file->file, file->path, O_WRONLY | O_APPEND)) {
		if (errno == EMFILE || errno == ENFILE) { /* the program uses all descriptors for now */
			report_failure(file, errno);
			return false;
		}
		file->file.fd = -1;
		file->is_lost = true;
		recorder_say("the program closed the descriptor of '%s', and the file no longer exists; training "
		             "continues, but recording has stopped",
		             file->path);
		return false;
	}
	while (done < total) {
		struct iovec parts[2] = {
			{(char *)(uintptr_t)first + (done < first_bytes ? done : first_bytes),
		         done < first_bytes ? first_bytes - done : 0},
			{(char *)(uintptr_t)second + (done > first_bytes ? done - first_bytes : 0),
		         done > first_bytes ? total - done : second_bytes},
		};
		ssize_t n = writev(file->file.fd, parts, 2);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int reason = n < 0 ? errno : ENOSPC;
			if (done && ftruncate(file->file.fd, (off_t)file->bytes) != 0)
				file->bytes += done; /* a torn block stays; readers skip it */
			report_failure(file, reason);
			errno = reason;
			return false;
		}
		done += (size_t)n;
	}
	file->bytes += total;
	file->is_failing = false;
	return true;
}

bool segment_file_append(struct segment_file *file, const void *first, size_t first_bytes, const void *second,
                         size_t second_bytes)
{
	struct file_limit limit;
	file_limit_enter(&limit);
	bool is_written = segment_file_add(file, first, first_bytes, second, second_bytes);
	file_limit_leave(&limit);
	return is_written;
}

void segment_file_check(struct segment_file *file)
{
	struct stat info;
	if (file->is_lost || !own_fd_is_ours(&file->file) || fstat(file->file.fd, &info) != 0 || info.st_nlink > 0)
		return;
	file->is_lost = file->is_removed = true;
	recorder_say("'%s' was removed during the recording; training continues, but recording has stopped",
	             file->path);
}

static void forget_oldest(struct segment_file *file)
{
	char path[1400];
	for (uint32_t n = file->kept[0].first; n <= file->kept[0].last; n++) {
		set_path(file, path, sizeof(path), n);
		(void)unlink(path);
	}
	memmove(&file->kept[0], &file->kept[1], (file->kept_count - 1) * sizeof(file->kept[0]));
	file->kept_count--;
}

/* Remembers a closed segment. If the table is full, the two oldest become one entry and are removed together. */
static void keep(struct segment_file *file, uint32_t number, uint64_t bytes, int64_t now_ns)
{
	if (file->kept_count == SEGMENT_KEEP_MAX) {
		file->kept[1].first = file->kept[0].first;
		file->kept[1].bytes += file->kept[0].bytes;
		memmove(&file->kept[0], &file->kept[1], (file->kept_count - 1) * sizeof(file->kept[0]));
		file->kept_count--;
	}
	file->kept[file->kept_count].first = file->kept[file->kept_count].last = number;
	file->kept[file->kept_count].bytes = bytes;
	file->kept[file->kept_count++].closed_ns = now_ns;
}

/* Continues with the previous segment after the next one could not be opened. */
static int go_back(struct segment_file *file, uint32_t number, uint64_t bytes)
{
	file->identity.segment = number;
	set_path(file, file->path, sizeof(file->path), number);
	file->bytes = bytes;
	return segment_file_reopen(file);
}

int segment_file_rotate(struct segment_file *file, int64_t keep_bytes, int64_t keep_ns, int64_t now_ns)
{
	uint32_t number = file->identity.segment;
	uint64_t sum = 0, bytes = file->bytes;
	segment_file_close(file);
	file->identity.segment++;
	int reason = segment_file_open(file);
	if (reason)
		return go_back(file, number, bytes) == 0 ? reason : -reason;
	keep(file, number, bytes, now_ns);
	for (uint32_t i = 0; i < file->kept_count; i++)
		sum += file->kept[i].bytes;
	while (file->kept_count && ((keep_bytes && sum > (uint64_t)keep_bytes) ||
	                            (keep_ns && now_ns - file->kept[0].closed_ns > keep_ns))) {
		sum -= file->kept[0].bytes;
		forget_oldest(file);
	}
	return 0;
}
