/* SPDX-License-Identifier: Apache-2.0
 *
 * run_directory.h: the directory of one run, where each process of the run writes its recording. This file chooses its
 * name, decides who may write into it, and sets the link `latest`. An inherited STEPSCOPE_RUN_DIR wins, then --out,
 * then the name of the launcher's job, then <time>_<program>_<pid> below $STEPSCOPE_DIR (./stepscope-runs).
 */
#ifndef RUN_RUN_DIRECTORY_H
#define RUN_RUN_DIRECTORY_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>

struct run_directory {
	int fd;               /* of the directory; -1: no directory */
	char path[PATH_MAX];  /* absolute */
	char shown[PATH_MAX]; /* as the user would type it */
	char run_id[33];      /* 32 hexadecimal digits */
	char job[160];        /* job of the launcher; "": no job */
	bool is_inherited;    /* STEPSCOPE_RUN_DIR named it */
	bool is_nested;       /* an outer `stepscope run` made it and prints the closing lines */
	bool is_default;      /* made below $STEPSCOPE_DIR */
	bool is_shared;       /* another `stepscope run` may write into it too */
};

/* Finds or makes the directory for the program argv[0]. `out` is the value of --out, or NULL. Returns STATUS_USAGE if
 * the directory of --out holds another run. Any other failure means that this run cannot be recorded. */
enum status run_directory_open(struct run_directory *directory, const char *out, char *const *argv,
                               struct error *err) MUST_CHECK;
void run_directory_release(struct run_directory *directory);

/* Points `latest` in the directory of runs to it, atomically, wherever the directory is. If `latest` is a directory,
 * it is left alone. */
void run_directory_link_latest(const struct run_directory *directory);

/* For a program that could not be started: removes the directory unless it has files of others. */
void run_directory_discard(struct run_directory *directory);

/* Returns true if the directory has a recording of any process. */
bool run_directory_has_recordings(const struct run_directory *directory);

/* Returns false if the directory was removed. */
bool run_directory_exists(const struct run_directory *directory);

#endif
