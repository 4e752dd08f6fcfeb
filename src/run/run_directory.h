/* SPDX-License-Identifier: Apache-2.0
 *
 * run_directory.h: the directory of one run, where every process of it writes its recording: its name, who may write into
 * it, the link `latest`. An inherited STEPSCOPE_RUN_DIR wins, then --out, then the name of the launcher's job, then
 * <time>_<program>_<pid> below $STEPSCOPE_DIR (./stepscope-runs).
 */
#ifndef RUN_RUN_DIRECTORY_H
#define RUN_RUN_DIRECTORY_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>

struct run_directory {
	int fd;               /* of the directory; -1: there is none */
	char path[PATH_MAX];  /* absolute */
	char shown[PATH_MAX]; /* as the user would type it */
	char run_id[33];      /* 32 hexadecimal digits */
	char job[160];        /* of the launcher; "" none */
	bool is_inherited;    /* STEPSCOPE_RUN_DIR named it */
	bool is_nested;       /* and a `stepscope run` above us made it, which also says what was captured */
	bool is_default;      /* made below $STEPSCOPE_DIR */
	bool is_shared;       /* other `stepscope run` may write into it too */
};

/* Finds or makes the directory for the program argv[0]. `out` is that of --out, NULL when not given. STATUS_USAGE: --out
 * holds another run. Any other failure means that this run cannot be recorded. */
enum status run_directory_open(struct run_directory *directory, const char *out, char *const *argv,
                               struct error *err) MUST_CHECK;
void run_directory_release(struct run_directory *directory);

/* Lets `latest` in the directory of runs point to it, in one step, wherever it is. A directory of that name is left alone. */
void run_directory_link_latest(const struct run_directory *directory);

/* Of a program that could not be started: removes the directory unless there is something of others in it. */
void run_directory_discard(struct run_directory *directory);

/* Whether a recording of anybody lies in it. */
bool run_directory_has_recordings(const struct run_directory *directory);

/* False when somebody removed the directory. */
bool run_directory_exists(const struct run_directory *directory);

#endif
