/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_files.c: see rank_files.h.
 */
#include "importers/rank_files.h"

#include "base/memory.h"
#include "base/text.h"
#include "importers/kineto_set.h"
#include "importers/text_lines.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 10000u

/* ---- which files ---- */

/* False: it is of another kind than those before. */
static bool add(struct rank_files *files, const char *path, const struct importer *importer)
{
	if (files->importer && importer != files->importer)
		return false;
	files->importer = importer;
	if (files->count == files->capacity) {
		files->capacity = files->capacity ? 2 * files->capacity : 16;
		files->paths = memory_resize(files->paths, files->capacity, sizeof *files->paths);
	}
	if (!(files->paths[files->count] = strdup(path)))
		memory_exhausted(strlen(path) + 1);
	files->count++;
	return true;
}

bool rank_files_find(struct rank_files *files, const char *directory, find_importer find)
{
	struct dirent **entries = NULL;
	bool is_one_kind = true;
	int count = scandir(directory, &entries, NULL, versionsort);
	for (int i = 0; i < count; i++) {
		char path[4096];
		struct stat info;
		bool is_named = *entries[i]->d_name != '.' &&
		                snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name) < (int)sizeof path;
		is_one_kind &= !text_ends_with(entries[i]->d_name, ".ssr");
		free(entries[i]);
		if (!is_one_kind || !is_named || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
			continue;
		const struct importer *importer = files->count < FILES_MAX ? find(path) : NULL;
		if (importer && importer->is_of_a_rank)
			is_one_kind = add(files, path, importer);
		else
			files->others++;
	}
	free(entries);
	return is_one_kind && files->count;
}

bool rank_files_take(struct rank_files *files, const char *const *paths, uint32_t count, find_importer find)
{
	bool is_one_kind = true;
	for (uint32_t i = 0; i < count && is_one_kind; i++) {
		const struct importer *importer = find(paths[i]);
		is_one_kind = importer && importer->is_of_a_rank && add(files, paths[i], importer);
	}
	return is_one_kind;
}

void rank_files_release(struct rank_files *files)
{
	for (uint32_t i = 0; i < files->count; i++)
		free(files->paths[i]);
	free(files->paths);
	*files = (struct rank_files){0};
}

/* ---- loading ---- */

static bool is_taken(const struct model *model, int64_t rank)
{
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model->processes[i].rank == rank)
			return true;
	return false;
}

static void name_processes(struct model *model, uint32_t first, const char *path)
{
	int64_t rank = kineto_rank_of_name(path);
	bool is_known = rank >= 0 && rank <= INT32_MAX && !is_taken(model, rank);
	for (uint32_t i = first; i < model->processes_count; i++) {
		struct process *process = &model->processes[i];
		if (is_known)
			process->rank = (int32_t)rank;
		if (!process->name)
			process->name = intern_add(&model->strings, file_name_of(path));
	}
	if (is_known)
		model_add_ledger(model, LEDGER_OTHER, first, file_name_of(path), 1,
		                 "the rank is not in the file: it is taken from the file's name");
}

enum status rank_files_load(const struct rank_files *files, const char *directory, const struct model_filter *filter,
                            struct model *model, struct error *err)
{
	struct error problem, first = {.status = STATUS_INPUT};
	uint32_t loaded = 0, failed = 0;
	for (uint32_t i = 0; i < files->count; i++) {
		uint32_t before = model->processes_count;
		if (files->importer->load(files->paths[i], filter, model, &problem) == STATUS_OK) {
			name_processes(model, before, files->paths[i]);
			loaded++;
			continue;
		}
		model_add_ledger(model, LEDGER_DAMAGED, MODEL_NONE, file_name_of(files->paths[i]), 1, problem.text);
		if (!failed++)
			first = problem;
	}
	if (files->others)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, file_name_of(directory), files->others,
		                 "files that are of another kind were not read");
	if (!loaded)
		*err = first;
	return loaded ? STATUS_OK : first.status;
}
