/* SPDX-License-Identifier: Apache-2.0
 *
 * run_python.h: the files a Python child needs to load stepscope: the folder of our sitecustomize.py, and the library.
 */
#ifndef RUN_RUN_PYTHON_H
#define RUN_RUN_PYTHON_H

#include <limits.h>
#include <stdbool.h>

struct run_python {
	char startup[PATH_MAX]; /* folder that goes first on PYTHONPATH; "" if not found */
	char library[PATH_MAX]; /* libstepscope.so.0 */
	char program[PATH_MAX]; /* the path of this program, which scripts run to get results */
};

/* Looks beside the running program: in the tree it was built in, or where it was installed. Returns false unless both
 * are found. */
bool run_python_find(struct run_python *python);

#endif
