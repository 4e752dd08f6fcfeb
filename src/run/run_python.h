/* SPDX-License-Identifier: Apache-2.0
 *
 * run_python.h: what a Python child needs to find us: the folder of our sitecustomize.py and the library.
 */
#ifndef RUN_RUN_PYTHON_H
#define RUN_RUN_PYTHON_H

#include <limits.h>
#include <stdbool.h>

struct run_python {
	char startup[PATH_MAX]; /* folder that goes first on PYTHONPATH; "" when we cannot find it */
	char library[PATH_MAX]; /* libstepscope.so.0 */
	char program[PATH_MAX]; /* ourselves: what a script asks for its results */
};

/* Looks beside the running program: in the tree it was built in, or where it was installed. False: not both are there. */
bool run_python_find(struct run_python *python);

#endif
