/* SPDX-License-Identifier: Apache-2.0
 *
 * run_segment.h: the few facts about a recording that `stepscope run` needs while it is being written: whose it is, and what
 * its process said about itself. Reads only the first and the last 64 KiB.
 */
#ifndef COMMANDS_RUN_SEGMENT_H
#define COMMANDS_RUN_SEGMENT_H

#include <stdbool.h>
#include <stepscope/format.h>

struct run_segment {
	struct stepscope_segment_header header;
	bool has_events;
	bool is_closed;    /* ends with an END block */
	char pool[64];     /* META "pool": "memfd:7"; "" not said */
	char capture[512]; /* META "capture": what was captured in one sentence; "" not said */
};

/* False when it is no recording (yet). */
bool run_segment_read(struct run_segment *segment, int directory_fd, const char *name);

/* "<host>.<pid>.<start time>.<n>.ssr". False for other names. */
struct run_segment_name {
	int stem_length; /* up to the start time */
	int64_t pid;
	uint64_t start_time;
	uint32_t number;
};
bool run_segment_parse_name(struct run_segment_name *parts, const char *name);

#endif
