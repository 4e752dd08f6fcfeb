/* SPDX-License-Identifier: Apache-2.0
 *
 * segment_file.h: the recording's file: append only, in whole blocks, rotated. Used by the drainer alone. A write that fails
 * leaves the file as it was before it and is reported once; the caller keeps its data and tries again.
 */
#ifndef RECORDER_SEGMENT_FILE_H
#define RECORDER_SEGMENT_FILE_H

#include "recorder/own_fd.h"

#include <stdbool.h>
#include <stddef.h>
#include <stepscope/format.h>

#define SEGMENT_KEEP_MAX 64 /* segments of this session that rotation remembers */

struct segment_file {
	struct own_fd file; /* fd -1: closed */
	char directory[1024];
	char stem[320]; /* <host>.<pid>.<starttime> */
	char path[1400];
	struct stepscope_segment_header identity;
	uint64_t bytes;
	bool is_failing; /* the last write failed */
	bool is_lost;    /* removed by somebody, or beyond repair */
	bool is_removed; /* so that no rescue can add to it either */
	bool was_reported;
	int64_t opened_ns;
	struct {
		uint32_t first, last; /* numbers; more than one when the table was full */
		uint64_t bytes;
		int64_t closed_ns;
	} kept[SEGMENT_KEEP_MAX]; /* closed segments, oldest first */
	uint32_t kept_count;
};

/* Prepares names; opens nothing. */
void segment_file_init(struct segment_file *file, const char *directory,
                       const struct stepscope_segment_header *identity);

/* Creates the next free <stem>.<n>.ssr and writes its header and an anchor. 0 or an errno. */
int segment_file_open(struct segment_file *file);
/* Opens the file it had before again (a session that goes on). 0 or an errno. */
int segment_file_reopen(struct segment_file *file);
void segment_file_close(struct segment_file *file);

/* Appends whole blocks in one write. False when that failed: nothing of them is in the file then. */
bool segment_file_append(struct segment_file *file, const void *first, size_t first_bytes, const void *second,
                         size_t second_bytes);

/* Once a second: was the file or its directory taken away? */
void segment_file_check(struct segment_file *file);

/* Begins the next segment, remembers this one and removes the oldest ones beyond keep_bytes and keep_ns (0: no limit). 0, or an
 * errno: no new file could be made and this one goes on; or a negative one: neither, the recording has no file. */
int segment_file_rotate(struct segment_file *file, int64_t keep_bytes, int64_t keep_ns, int64_t now_ns);

/* One line on stderr. */
void recorder_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
