/* SPDX-License-Identifier: Apache-2.0
 *
 * run_path.h: finds the run that an operand of a command names.
 */
#ifndef LOAD_RUN_PATH_H
#define LOAD_RUN_PATH_H

#include "base/error.h"

/* Resolves an operand that names a run: a path, "latest", or a name in $STEPSCOPE_DIR (default ./stepscope-runs). */
const char *command_run_path(const char *operand, struct error *err);

#endif
