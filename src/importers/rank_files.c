/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_files.c: see rank_files.h.
 */
#include "importers/rank_files.h"

#include "base/archive_reader.h"
#include "base/memory.h"
#include "base/text.h"
#include "importers/kineto_set.h"
#include "importers/other_kinds.h"
#include "importers/text_lines.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 10000u

/* ---- which files ---- */

static void add(struct rank_files *files, const char *path, const struct importer *importer)
{
	if (files->count == files->capacity) {
		files->capacity = files->capacity ? 2 * files->capacity : 16;
		files->files = memory_resize(files->files, files->capacity, sizeof *files->files);
	}
	struct rank_file *file = &files->files[files->count++];
	*file = (struct rank_file){strdup(path), importer && importer->load_input ? importer : NULL};
	if (!file->path)
		memory_exhausted(strlen(path) + 1);
	if (!files->importer)
		files->importer = file->importer;
}

bool rank_files_find(struct rank_files *files, const char *directory, find_importer find)
{
	struct dirent **entries = NULL;
	bool has_recording = false;
	int count = scandir(directory, &entries, NULL, versionsort);
	for (int i = 0; i < count; i++) {
		char path[4096];
		struct stat info;
		bool is_named = *entries[i]->d_name != '.' &&
		                snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name) < (int)sizeof path;
		has_recording |= text_ends_with(entries[i]->d_name, ".ssr");
		free(entries[i]);
		if (!has_recording && is_named && stat(path, &info) == 0 && S_ISREG(info.st_mode))
			add(files, path, files->count < FILES_MAX ? find(path) : NULL);
	}
	free(entries);
	return !has_recording && files->importer;
}

bool rank_files_take(struct rank_files *files, const char *const *paths, uint32_t count, find_importer find)
{
	bool is_one_kind = true;
	for (uint32_t i = 0; i < count && is_one_kind; i++) {
		add(files, paths[i], find(paths[i]));
		is_one_kind = files->importer && files->files[i].importer == files->importer;
	}
	return is_one_kind;
}

void rank_files_release(struct rank_files *files)
{
	for (uint32_t i = 0; i < files->count; i++)
		free(files->files[i].path);
	free(files->files);
	*files = (struct rank_files){0};
}

/* ---- loading ---- */

struct loading {
	struct model *model;
	uint32_t loaded, failed, others, beyond; /* beyond: FILES_MAX */
	struct error first;                      /* problem */
};

static bool is_taken(const struct model *model, int64_t rank)
{
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model->processes[i].rank == rank)
			return true;
	return false;
}

static void name_processes(struct model *model, uint32_t first, const char *path, int64_t rank)
{
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

static void note_problem(struct loading *loading, const char *path, const struct error *problem)
{
	model_add_ledger(loading->model, LEDGER_DAMAGED, MODEL_NONE, file_name_of(path), 1, problem->text);
	if (!loading->failed++)
		loading->first = *problem;
}

/* kind: in words; NULL: none that anybody would want to see. */
static void pass_over(struct loading *loading, const char *path, const char *kind)
{
	char text[256];
	snprintf(text, sizeof text, "%s, which is not read together with the others: give it by itself",
	         kind ? kind : "");
	if (kind)
		model_add_ledger(loading->model, LEDGER_OTHER, MODEL_NONE, file_name_of(path), 1, text);
	else
		loading->others++;
}

static enum status finish(struct loading *loading, const char *path, struct error *err)
{
	if (loading->others)
		model_add_ledger(loading->model, LEDGER_OTHER, MODEL_NONE, file_name_of(path), loading->others,
		                 "files that are of another kind were not read");
	if (loading->beyond)
		model_add_ledger(loading->model, LEDGER_OTHER, MODEL_NONE, file_name_of(path), loading->beyond,
		                 "files behind the first 10,000 were not read");
	if (!loading->loaded)
		*err = loading->first;
	return loading->loaded ? STATUS_OK : loading->first.status;
}

enum status rank_files_load(const struct rank_files *files, const char *directory, const struct model_filter *filter,
                            struct model *model, struct error *err)
{
	struct loading loading = {.model = model, .first = {.status = STATUS_INPUT}};
	struct error problem;
	for (uint32_t i = 0; i < files->count; i++) {
		const char *path = files->files[i].path;
		uint32_t before = model->processes_count;
		if (i >= FILES_MAX) {
			loading.beyond++;
		} else if (files->files[i].importer != files->importer) {
			pass_over(&loading, path, other_kind_of_file(path));
		} else if (importer_load(files->importer, path, filter, model, &problem) == STATUS_OK) {
			name_processes(model, before, path, kineto_rank_of_name(path));
			loading.loaded++;
		} else {
			note_problem(&loading, path, &problem);
		}
	}
	return finish(&loading, directory, err);
}

/* ---- archives ---- */

/* "rank3/snapshot.pickle" says it, too. */
static int64_t rank_of_member(const char *name)
{
	const char *file = file_name_of(name);
	int64_t rank = kineto_rank_of_name(name);
	char folder[4096];
	if (rank >= 0 || file == name)
		return rank;
	snprintf(folder, sizeof folder, "%.*s", (int)(file - 1 - name < 4095 ? file - 1 - name : 4095), name);
	return kineto_rank_of_name(folder);
}

struct archive_loading {
	struct loading loading;
	const struct model_filter *filter;
	find_importer_here find;
	const struct importer *importer; /* the kind that counts: that of the first member of such a one */
};

static enum status load_stream(struct archive_loading *archive, const char *name, struct input_stream *input,
                               struct error *problem)
{
	struct model *model = archive->loading.model;
	const char *head;
	size_t length;
	enum status status = input_peek_long(input, &head, &length, problem);
	if (status != STATUS_OK)
		return status;
	const struct importer *importer = archive->find(name, head, length);
	if (!archive->importer && importer && importer->load_input)
		archive->importer = importer;
	if (!importer || importer != archive->importer) {
		pass_over(&archive->loading, name, other_kind(head, length));
		return STATUS_OK;
	}
	uint32_t before = model->processes_count;
	status = importer->load_input(input, name, archive->filter, model, problem);
	if (status == STATUS_OK) {
		name_processes(model, before, name, rank_of_member(name));
		archive->loading.loaded++;
	}
	return status;
}

static void load_member(struct archive_loading *archive, struct archive_reader *reader, const char *name)
{
	struct input_stream *input;
	struct error problem;
	enum status status = input_open_member(reader, name, &input, &problem);
	if (status == STATUS_OK) {
		status = load_stream(archive, name, input, &problem);
		input_close(input);
	}
	if (status != STATUS_OK)
		note_problem(&archive->loading, name, &problem);
}

enum status rank_files_load_archive(const char *path, find_importer_here find, const struct model_filter *filter,
                                    struct model *model, bool *is_found, struct error *err)
{
	struct archive_loading archive = {
		.loading = {.model = model, .first = {.status = STATUS_INPUT}}, .filter = filter, .find = find};
	struct archive_reader *reader;
	struct error broken;
	const char *name;
	enum status status = archive_open(path, NULL, &reader, err);
	*is_found = false;
	if (status != STATUS_OK)
		return status;
	for (uint32_t i = 0;; i++) {
		status = archive_next(reader, &name, &broken);
		if (status != STATUS_OK || !name)
			break;
		if (*file_name_of(name) == '.') /* as in directories */
			continue;
		if (i < FILES_MAX)
			load_member(&archive, reader, name);
		else
			archive.loading.beyond++;
	}
	archive_close(reader);
	if (status != STATUS_OK)
		note_problem(&archive.loading, path, &broken);
	*is_found = archive.importer;
	return finish(&archive.loading, path, err);
}
