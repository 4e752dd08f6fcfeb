/* SPDX-License-Identifier: Apache-2.0
 *
 * run_segment.h: the few facts about a recording that `stepscope run` needs: its owner, from its name, and the facts
 * its process wrote about itself. run_scan_*() reads the heads of all blocks after the process has ended.
 */
#ifndef RUN_RUN_SEGMENT_H
#define RUN_RUN_SEGMENT_H

#include "format/own_facts.h"

#include <stdbool.h>
#include <stepscope/format.h>

/* All recordings of one process, added newest first:
 *
 *     struct run_scan scan = {.blocks_left = 1000000, .pid_namespace = 0};
 *     run_scan_add(&scan, fd, "host.1.2.7.ssr"); run_scan_add(&scan, fd, "host.1.2.6.ssr");
 *     run_scan_finish(&scan);   -> dropped, dropped_coarse; releases the memory
 *
 * The scan of a file stops at the first damage. */
struct run_scan {
	uint64_t blocks_left;    /* blocks that may still be read; 0: there may be more */
	uint64_t pid_namespace;  /* of the process: one in another namespace may use the same file names */
	bool has_segment;        /* the fields up to `capture` are valid */
	uint32_t session;        /* of the newest file */
	uint32_t newest;         /* number of the newest file; the file of coarse copies does not count */
	bool is_closed;          /* the newest file ends with an END block */
	bool is_rescued;         /* the newest file ends with blocks that a rescue wrote */
	char capture[1024];      /* META "capture" of that session; "": missing */
	struct own_facts own;    /* of any session */
	uint64_t dropped;        /* events */
	uint64_t dropped_coarse; /* dropped events of steps and phases */
	struct run_drops *drops; /* per session and stream */
	uint32_t drops_count;
};
void run_scan_add(struct run_scan *scan, int directory_fd, const char *name);
void run_scan_finish(struct run_scan *scan);

/* "<host>.<pid>.<start time>.<n>.ssr". Returns false for other names. */
struct run_segment_name {
	int stem_length; /* length of the name through the start time */
	int64_t pid;
	uint64_t start_time;
	uint32_t number;
};
bool run_segment_parse_name(struct run_segment_name *parts, const char *name);

#endif
