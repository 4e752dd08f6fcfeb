/* SPDX-License-Identifier: Apache-2.0
 *
 * run_closing.h: the last lines of `stepscope run`, on stderr: the death of the program, its recordings and losses,
 * and the command for the report. run_closing_find() gathers all facts in one value. run_words.c makes lines of these
 * facts alone.
 *
 *     struct run_closing closing;
 *     run_closing_find(&closing, run);
 *     run_closing_print(&closing);
 *     run_closing_release(&closing);
 */
#ifndef RUN_RUN_CLOSING_H
#define RUN_RUN_CLOSING_H

#include "run/run_captured.h"
#include "run/run_end.h"
#include "run/run_process.h"
#include "run/run_unseen.h"

struct run;

enum closing_kind {
	CLOSING_SILENT,   /* --quiet, a nested run, or no run directory: an error was already printed */
	CLOSING_OFF,      /* recording was turned off: off_reason */
	CLOSING_REMOVED,  /* the run directory is gone: directory */
	CLOSING_CAPTURED, /* the run was recorded: all fields but off_reason are set */
};

struct run_usage { /* of the program and the processes it waited for */
	int64_t wall_ns, cpu_ns;
	int64_t peak_bytes; /* of the largest process */
	struct process_io io;
};

struct run_closing {
	enum closing_kind kind;
	const char *off_reason; /* belongs to the run, like `directory` */
	const char *directory;  /* as the user would type it */
	bool was_killed;        /* a signal killed the program: `end` is filled in */
	struct run_end end;
	struct run_captured captured; /* owned */
	struct run_usage usage;
	struct unseen_found unseen;
	bool has_recordings; /* of any process: a report can be made */
};

void run_closing_find(struct run_closing *closing, struct run *run);
void run_closing_print(const struct run_closing *closing);
void run_closing_release(struct run_closing *closing);

#endif
