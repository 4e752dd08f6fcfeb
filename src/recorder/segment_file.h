/* SPDX-License-Identifier: Apache-2.0
 *
 * segment_file.h: the segment file: append only, in whole blocks, rotated. Used by the drainer only. A write that fails
 * leaves the file unchanged and is reported once; the caller keeps its data and tries again.
 */
#ifndef RECORDER_SEGMENT_FILE_H
#define RECORDER_SEGMENT_FILE_H

#include "recorder/own_fd.h"

#include <stdbool.h>
#include <stddef.h>
#include <stepscope/format.h>

#define SEGMENT_KEEP_MAX 64 /* closed segments of this session that rotation remembers */

struct segment_file {
	struct own_fd file; /* fd -1: closed */
	char directory[1024];
	char stem[320]; /* <host>.<pid>.<starttime> */
	char path[1400];
	struct stepscope_segment_header identity;
	uint64_t bytes;
	bool is_failing; /* the last write failed */
	bool is_lost;    /* removed by another process, or beyond repair */
	bool is_removed; /* removed, so a rescue cannot append to it either */
	bool was_reported;
	int64_t opened_ns;
	struct {
		uint32_t first, last; /* numbers; more than one if the table was full */
		uint64_t bytes;
		int64_t closed_ns;
	} kept[SEGMENT_KEEP_MAX]; /* closed segments, oldest first */
	uint32_t kept_count;
};

/* Prepares the names; opens nothing. */
void segment_file_init(struct segment_file *file, const char *directory,
                       const struct stepscope_segment_header *identity);

/* Creates the next free <stem>.<n>.ssr and writes its header and an anchor. Returns 0 or an errno. */
int segment_file_open(struct segment_file *file);
/* Opens the previous file again, for a session that continues. Returns 0 or an errno. */
int segment_file_reopen(struct segment_file *file);
void segment_file_close(struct segment_file *file);

/* Appends whole blocks in one write. On failure returns false, and the file contains no part of them. */
bool segment_file_append(struct segment_file *file, const void *first, size_t first_bytes, const void *second,
                         size_t second_bytes);

/* Once a second: checks whether the file or its directory was removed. */
void segment_file_check(struct segment_file *file);

/* Starts the next segment, remembers this one and removes the oldest ones beyond keep_bytes and keep_ns (0: no limit).
 * Returns 0, or an errno if no new file could be created and this one continues. Returns a negative errno if this one
 * cannot continue either: the recording has no file. */
int segment_file_rotate(struct segment_file *file, int64_t keep_bytes, int64_t keep_ns, int64_t now_ns);

/* Writes one line to stderr. */
void recorder_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
