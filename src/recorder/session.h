/* SPDX-License-Identifier: Apache-2.0
 *
 * session.h: the recording of this process: start, flush, stop. There is one per process; its state is the only
 * mutable global data of the recorder (session.c).
 */
#ifndef RECORDER_SESSION_H
#define RECORDER_SESSION_H

#include "recorder/options.h"
#include "recorder/start_problem.h"

#include <stdbool.h>
#include <stepscope/format.h>

struct session_start {
	const char *options; /* list, NULL: environment only */
	enum stepscope_role role;
	const char *run_directory; /* NULL: STEPSCOPE_RUN_DIR, or a new one under stepscope-runs/ */
	bool is_explicit;          /* started by a call, not by the first event: failures are returned, not printed */
};

/* START_OK, or why not, with session_problem(). Starting a session that runs, or is switched off, is a success without
 * effect. */
enum start_problem session_start(const struct session_start *how);
const char *session_problem(void);
void session_flush(void);
void session_stop(const char *reason); /* writes everything, END block with the reason */

/* ---- for the recorder's own files ---- */

/* Returns true if this process is recording, or starts that now. The first event of every thread comes here, and waits
 * while another thread starts the recorder. */
bool session_enter(void);
/* Emits the facts of the recording, once; the first thread that has a stream calls it. */
void session_tell_start(void);

#endif
