/* SPDX-License-Identifier: Apache-2.0
 *
 * run_path.h: which run an operand of a command means.
 */
#ifndef LOAD_RUN_PATH_H
#define LOAD_RUN_PATH_H

#include "base/error.h"

/* Resolves an operand that names a run: a path, "latest", or a name inside $STEPSCOPE_DIR (default ./stepscope-runs). */
const char *command_run_path(const char *operand, struct error *err);

#endif
