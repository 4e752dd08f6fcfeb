/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.h: one line on stderr for work that takes more than half a second. On a terminal it is a bar, redrawn at
 * most ten times a second and wiped at the end. Otherwise it is a plain line every ten seconds. It is silent with
 * --quiet, --no-progress or STEPSCOPE_NO_PROGRESS in the environment.
 */
#ifndef COMMANDS_PROGRESS_H
#define COMMANDS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what; /* "Exporting" */
	const char *unit; /* "events" */
	bool is_off, is_terminal, is_shown;
	int64_t start_ns, next_ns;
};

void progress_begin(struct progress *progress, const char *what, const char *unit, bool is_off);
/* May be called any number of times; each call reads the clock. total 0: unknown. */
void progress_update(struct progress *progress, uint64_t done, uint64_t total);
void progress_end(struct progress *progress);
double progress_seconds(const struct progress *progress); /* since progress_begin() */

#endif
