/* SPDX-License-Identifier: Apache-2.0
 *
 * run_directory.h: chooses the directory of a process's recording if `stepscope run` did not.
 */
#ifndef RECORDER_RUN_DIRECTORY_H
#define RECORDER_RUN_DIRECTORY_H

#include "recorder/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Stores an absolute path in options->run_directory and creates the directory (0700). The path is the first one given
 * of `wanted`, STEPSCOPE_RUN_DIR and the option; otherwise it is a new directory in stepscope-runs/, and `latest`
 * points to it. On failure returns false, with one line in `problem`. */
bool run_directory_get(struct record_options *options, const char *wanted, pid_t pid, char *problem, size_t bytes);

/* Returns true if other processes have recorded into the directory too. */
bool run_directory_has_others(const char *directory, pid_t pid, uint64_t start_time);

#endif
