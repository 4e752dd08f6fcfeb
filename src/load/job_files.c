/* SPDX-License-Identifier: Apache-2.0
 *
 * job_files.c: see the header.
 */
#include "load/job_files.h"

#include "importers/kineto/kineto_set.h"

#include <string.h>
#include <sys/stat.h>

/* Returns the rank; -1: there is none, or several. */
static int64_t job_files_rank_of(const struct model *model, int32_t *world_size)
{
	int64_t rank = -1;

	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];

		if (process->rank < 0)
			continue;
		if (rank >= 0 && rank != process->rank)
			return -1;
		rank = process->rank;
		*world_size = process->world_size;
	}
	return rank;
}

static bool has_any_rank(const struct model *model)
{
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model->processes[i].rank >= 0)
			return true;
	return false;
}

static void take_times(struct job_file *file, const struct model *model)
{
	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];
		int64_t first_ns = process->first_ns + process->realtime_offset_ns;
		int64_t last_ns = process->last_ns + process->realtime_offset_ns;

		if (!process->has_times || !process->realtime_offset_ns)
			continue;
		if (!file->has_clock || first_ns < file->first_ns)
			file->first_ns = first_ns;
		if (!file->has_clock || last_ns > file->last_ns)
			file->last_ns = last_ns;
		file->has_clock = true;
	}
}

void job_file_init(struct job_file *file, const char *operand, const struct model *model)
{
	struct stat info;

	*file = (struct job_file){.path = operand, .rank = -1, .world_size = -1};
	if (stat(operand, &info) != 0 || !S_ISREG(info.st_mode))
		return;
	file->rank = has_any_rank(model) ? job_files_rank_of(model, &file->world_size) : kineto_rank_of_name(operand);
	take_times(file, model);
}

static size_t folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

static bool share_folder(const struct job_file *one, const struct job_file *other)
{
	size_t length = folder_length(one->path);

	return length == folder_length(other->path) && !memcmp(one->path, other->path, length);
}

bool job_files_are_one(const struct job_file *one, const struct job_file *other)
{
	if (one->rank < 0 || other->rank < 0 || one->rank == other->rank || one->world_size != other->world_size)
		return false;
	if (one->has_clock && other->has_clock)
		return one->first_ns <= other->last_ns && other->first_ns <= one->last_ns;
	return share_folder(one, other);
}

static bool has_rank(const struct job_file *files, int end, const int *job, int leader, int64_t rank)
{
	for (int i = leader; i < end; i++)
		if (job[i] == leader && files[i].rank == rank)
			return true;
	return false;
}

/* Assigns files to the job of `leader`, unless they belong to an earlier job. */
static void find_job(const struct job_file *files, int leader, int end, int *job, bool is_of_folder)
{
	for (int i = leader + 1; i < end; i++)
		if (job[i] == i && job_files_are_one(&files[leader], &files[i]) &&
		    share_folder(&files[leader], &files[i]) == is_of_folder &&
		    !has_rank(files, end, job, leader, files[i].rank))
			job[i] = leader;
}

void job_files_find(const struct job_file *files, int first, int end, int *job)
{
	for (int i = first; i < end; i++)
		job[i] = i;
	for (int i = first; i < end; i++) {
		if (job[i] != i)
			continue;
		find_job(files, i, end, job, true);
		find_job(files, i, end, job, false);
	}
}

uint32_t job_files_of(const struct job_file *files, int first, int end, const int *job, const char **paths)
{
	uint32_t count = 0;

	for (int i = first; i < end; i++)
		if (job[i] == first)
			paths[count++] = files[i].path;
	return count;
}

const char *job_files_name(struct arena *arena, const char *name, uint32_t count)
{
	return arena_printf(arena, "%s and %u more rank%s", name, count - 1, count > 2 ? "s" : "");
}
