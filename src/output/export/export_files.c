/* SPDX-License-Identifier: Apache-2.0
 *
 * export_files.c: see the header. Names follow the common pattern of the TensorBoard plugin, HTA and torch's own
 * handler.
 */
#include "output/export/export_files.h"

#include "base/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_known_before(const struct model *model, uint32_t process)
{
	for (uint32_t i = 0; i < process; i++)
		if (model->processes[i].rank == model->processes[process].rank)
			return true;
	return false;
}

uint32_t export_rank_count(const struct model *model)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < model->processes_count; i++)
		count += model->processes[i].rank >= 0 && !is_known_before(model, i);
	return count;
}

static const struct process *parent_of(const struct model *model, const struct process *process)
{
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (process->parent_pid && model->processes[i].pid == process->parent_pid &&
		    share_process_ids(&model->processes[i], process))
			return &model->processes[i];
	return NULL;
}

/* Returns the lowest rank on the host of a process, or of all hosts if it is NULL. */
static int32_t lowest_rank(const struct model *model, const struct process *beside)
{
	int32_t lowest = -1;

	assert(model->processes || !model->processes_count);
	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];

		if (process->rank >= 0 && (!beside || share_process_ids(process, beside)) &&
		    (lowest < 0 || process->rank < lowest))
			lowest = process->rank;
	}
	return lowest;
}

/* Returns the rank whose file the process goes into, -1 if no process has a rank. */
static int32_t export_files_rank_of(const struct model *model, uint32_t number)
{
	const struct process *process = &model->processes[number];
	int32_t lowest;

	for (int generation = 0; process && generation < 64; generation++) {
		if (process->rank >= 0)
			return process->rank;
		process = parent_of(model, process);
	}
	lowest = lowest_rank(model, &model->processes[number]);
	return lowest >= 0 ? lowest : lowest_rank(model, NULL);
}

/* Names the file after a process. Characters of the host's name that file names cannot hold become '-'. */
static void set_name(struct export_file *file, const struct model *model, uint32_t number)
{
	const struct process *process = &model->processes[number];
	char host[128];

	snprintf(host, sizeof(host), "%s", process->host ? model_text(model, process->host) : "host");
	for (char *at = host; *at; at++)
		if ((unsigned char)*at <= ' ' || strchr("/\\:*?\"<>|_", *at))
			*at = '-';
	snprintf(file->name, sizeof(file->name), "rank%d_%s_%" PRId64 ".%019" PRId64, file->rank < 0 ? 0 : file->rank,
	         host, process->pid, process->first_ns + process->realtime_offset_ns);
}

static struct export_file *file_of(struct export_files *files, const struct model *model, int32_t rank)
{
	struct export_file *file;

	for (uint32_t i = 0; i < files->count; i++)
		if (files->files[i].rank == rank)
			return &files->files[i];
	files->files = memory_resize(files->files, files->count + 1, sizeof(*files->files));
	file = &files->files[files->count++];
	*file = (struct export_file){.rank = rank};
	file->processes = memory_resize(NULL, model->processes_count + 1, sizeof(*file->processes));
	memset(file->processes, 0, (model->processes_count + 1) * sizeof(*file->processes));
	return file;
}

static int export_files_compare_files(const void *left, const void *right)
{
	const struct export_file *a = left, *b = right;

	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

void export_files_init(struct export_files *files, const struct model *model)
{
	*files = (struct export_files){0};
	for (uint32_t i = 0; i < model->processes_count; i++) {
		struct export_file *file = file_of(files, model, export_files_rank_of(model, i));

		file->processes[i] = true;
		if (!file->name[0] || model->processes[i].rank == file->rank) {
			bool is_better = !file->name[0] || model->processes[i].role == 0;

			if (is_better)
				set_name(file, model, i);
		}
	}
	if (files->count)
		qsort(files->files, files->count, sizeof(*files->files), export_files_compare_files);
}

void export_files_release(struct export_files *files)
{
	for (uint32_t i = 0; i < files->count; i++)
		free(files->files[i].processes);
	free(files->files);
	*files = (struct export_files){0};
}
