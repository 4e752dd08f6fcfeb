/* SPDX-License-Identifier: Apache-2.0
 *
 * run_state.h: everything about one `stepscope run`, for its own files.
 */
#ifndef RUN_RUN_STATE_H
#define RUN_RUN_STATE_H

#include "host/host.h"
#include "run/run_child.h"
#include "run/run_directory.h"
#include "run/run_options.h"
#include "run/run_signals.h"
#include "run/run_unseen.h"
#include "run/run_watch.h"

struct run {
	char *const *argv;
	struct run_settings settings;
	const char *off_reason;         /* why the user turned recording off; NULL: it is on */
	struct run_directory directory; /* fd -1: nothing is recorded */
	struct run_signals signals;
	struct run_child child;
	struct run_watch watch;
	struct run_unseen unseen;
	struct host_recording *host; /* NULL: not recorded */
	int epoll, timer;
	uint32_t named;        /* dead processes that a message named */
	uint32_t unnamed;      /* dead processes beyond the limit of messages */
	uint32_t unknown;      /* the same, with unknown exit status */
	bool was_asked_to_end; /* by a signal to us */
};

/* Runs until the program has ended, and a little longer for descendants that still record. */
void run_supervise(struct run *run);

/* Writes facts about the program and its processes into our own recording. */
void run_record_facts(struct run *run);

#endif
