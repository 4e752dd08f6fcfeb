/* SPDX-License-Identifier: Apache-2.0
 *
 * run_launcher.h: the job of this process, if a launcher (Slurm, MPI, torchrun) starts many `stepscope run` at once.
 * All processes of a job get the same text, also on different machines, so that they make one run.
 */
#ifndef RUN_RUN_LAUNCHER_H
#define RUN_RUN_LAUNCHER_H

#include <stdbool.h>

struct run_launcher {
	char job[160]; /* "slurm-123.0": fit for a file name; "": no launcher, or only one process */
};

/* Reads the environment of this process. Returns false if there is no job of several processes. */
bool run_launcher_find(struct run_launcher *launcher);

/* Returns true if `name` is a variable of a launcher or a training framework that run.json keeps. */
bool run_launcher_is_variable(const char *name);

#endif
