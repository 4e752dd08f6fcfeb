/* SPDX-License-Identifier: Apache-2.0
 *
 * run_segment.h: the few facts about a recording that `stepscope run` needs: whose it is, by its name, and what its process said
 * about itself. run_scan_*() goes over the heads of all blocks when the process has ended.
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
 * Stops in a file at the first damage. */
struct run_scan {
	uint64_t blocks_left;    /* what may still be looked at; 0: there was more */
	uint64_t pid_namespace;  /* of the process: one of another may have the same names of files */
	bool has_segment;        /* the rest is valid */
	uint32_t session;        /* of the newest one */
	uint32_t newest;         /* its number; the file of coarse copies does not count */
	bool is_closed;          /* it ends with an END block */
	bool is_rescued;         /* it ends with the work of a rescue */
	char capture[1024];      /* META "capture" of that session; "" not said */
	struct own_facts own;    /* of any session */
	uint64_t dropped;        /* events */
	uint64_t dropped_coarse; /* of these, of steps and phases */
	struct run_drops *drops; /* per session and stream */
	uint32_t drops_count;
};
void run_scan_add(struct run_scan *scan, int directory_fd, const char *name);
void run_scan_finish(struct run_scan *scan);

/* "<host>.<pid>.<start time>.<n>.ssr". False for other names. */
struct run_segment_name {
	int stem_length; /* up to the start time */
	int64_t pid;
	uint64_t start_time;
	uint32_t number;
};
bool run_segment_parse_name(struct run_segment_name *parts, const char *name);

#endif
