/* SPDX-License-Identifier: Apache-2.0
 *
 * run_directory.h: where the recording of a process goes when `stepscope run` did not decide it.
 */
#ifndef RECORDER_RUN_DIRECTORY_H
#define RECORDER_RUN_DIRECTORY_H

#include "recorder/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Puts an absolute path into options->run_directory and makes the directory (0700): `wanted`, else STEPSCOPE_RUN_DIR, else the
 * option, else a new one in stepscope-runs/ with `latest` pointing to it. False with a line in `problem`. */
bool run_directory_get(struct record_options *options, const char *wanted, pid_t pid, char *problem, size_t bytes);

/* Have other processes recorded into it, too? */
bool run_directory_has_others(const char *directory, pid_t pid, uint64_t start_time);

#endif
