/* SPDX-License-Identifier: Apache-2.0
 *
 * job_files.h: which of the files that were given as runs are ranks of one job. Ranks wait for one another, so they take as long as each other
 * whatever the next run of the job will take: they are one run, no repeats of it.
 *
 * Two files are of one job when each is of one rank (which it says, or its name), of different ones of as many, and both were recorded at the
 * same time; where they do not tell the time, when they lie in one folder.
 */
#ifndef LOAD_JOB_FILES_H
#define LOAD_JOB_FILES_H

#include "model/model.h"

struct job_file {
	const char *path; /* as given; borrowed */
	int64_t rank;     /* -1: no file, of several ranks, or nothing says which */
	int32_t world_size;
	bool has_clock;
	int64_t first_ns, last_ns; /* by the wall clock */
};

/* Of a model that was read from `operand` alone. */
void job_file_init(struct job_file *file, const char *operand, const struct model *model);
bool job_files_are_one(const struct job_file *one, const struct job_file *other);

/* For each of the files from `first` on the place of the first one of its job, often its own. Of two files of one rank the one in the
 * folder of that first file is of its job: runs that were made at the same time stay apart. */
void job_files_find(const struct job_file *files, int first, int end, int *job);

/* The paths of the job that begins at `first`, as many as are returned; `paths` has room for all files behind it. */
uint32_t job_files_of(const struct job_file *files, int first, int end, const int *job, const char **paths);
/* What a run of so many files is called that is named after its first: "rank0.json and 3 more ranks". */
const char *job_files_name(struct arena *arena, const char *name, uint32_t count);

#endif
