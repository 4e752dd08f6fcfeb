/* SPDX-License-Identifier: Apache-2.0
 *
 * session.h: the recording of this process: start, flush, stop. Each process has one; its state is the only mutable
 * global data of the recorder (session.c).
 */
#ifndef RECORDER_SESSION_H
#define RECORDER_SESSION_H

#include "recorder/options.h"
#include "recorder/start_problem.h"

#include <stdbool.h>
#include <stepscope/format.h>

struct session_start {
	const char *options; /* list of options; NULL: environment only */
	enum stepscope_role role;
	const char *run_directory; /* NULL: STEPSCOPE_RUN_DIR, or a new one under stepscope-runs/ */
	bool is_explicit;          /* started by a call, not by the first event: failures are returned, not printed */
};

/* Starts the session. Returns START_OK, or the reason why it did not start, with its text in session_problem(). If the
 * session runs already or is switched off, returns START_OK without effect. */
enum start_problem session_start(const struct session_start *how);
const char *session_problem(void);
void session_flush(void);
void session_stop(const char *reason); /* writes everything, and an END block with the reason */

/* ---- for the recorder's files -------- */

/* Returns true if this process is recording, or starts recording now. The first event of every thread calls this, and
 * waits while another thread starts the recorder. */
bool session_enter(void);
/* Emits the facts of the recording, once. Called by the first thread that has a stream. */
void session_tell_start(void);

#endif
