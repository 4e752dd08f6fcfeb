/* SPDX-License-Identifier: Apache-2.0
 *
 * job_files.h: finds the files, among those given as runs, that are ranks of one job. Ranks wait for one another, so
 * their times agree, whatever the next run of the job will take. They are one run, not repeats of a run.
 *
 * Two files belong to one job if each holds one rank (from the file or its name), the ranks differ, and the world sizes
 * are equal. Both must also be recorded at the same time. If a file has no clock, they must be in one folder.
 */
#ifndef LOAD_JOB_FILES_H
#define LOAD_JOB_FILES_H

#include "model/model.h"

struct job_file {
	const char *path; /* as given; borrowed */
	int64_t rank;     /* -1: not a file, several ranks, or unknown */
	int32_t world_size;
	bool has_clock;
	int64_t first_ns, last_ns; /* on the wall clock */
};

/* Fills `file` from a model that was read from `operand` alone. */
void job_file_init(struct job_file *file, const char *operand, const struct model *model);
bool job_files_are_one(const struct job_file *one, const struct job_file *other);

/* Sets, for each file from `first` on, the index of the first file of its job, often its own. If two files hold the
 * same rank, the one in the folder of that first file belongs to its job. So runs made at the same time stay apart. */
void job_files_find(const struct job_file *files, int first, int end, int *job);

/* Returns the number of paths of the job that starts at `first`, and sets `paths`, which has room for all files from
 * `first` on. */
uint32_t job_files_of(const struct job_file *files, int first, int end, const int *job, const char **paths);
/* Returns the name of a run of `count` files, named after its first: "rank0.json and 3 more ranks". */
const char *job_files_name(struct arena *arena, const char *name, uint32_t count);

#endif
