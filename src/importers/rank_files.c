/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_files.c: see rank_files.h.
 */
#include "importers/rank_files.h"

#include "base/archive_reader.h"
#include "base/memory.h"
#include "base/text.h"
#include "importers/file_order.h"
#include "importers/find_importer.h"
#include "importers/kineto/kineto_set.h"
#include "importers/recording/converted.h"
#include "importers/text_lines.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 10000u

/* ---- finding files ---- */

static void rank_files_add(struct rank_files *files, const char *path, const struct importer *importer)
{
	MEMORY_GROW(files->files, files->count, files->capacity, 16);
	struct rank_file *file = &files->files[files->count++];
	*file = (struct rank_file){strdup(path), importer && importer->is_rank ? importer : NULL};
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
		has_recording |= text_ends_with(entries[i]->d_name, ".ssr") && !(is_named && converted_is_file(path));
		free(entries[i]);
		if (!has_recording && is_named && stat(path, &info) == 0 && S_ISREG(info.st_mode))
			rank_files_add(files, path, files->count < FILES_MAX ? find(path) : NULL);
	}
	free(entries);
	return !has_recording && files->importer;
}

static int rank_files_compare_files(const void *left, const void *right)
{
	const struct rank_file *a = left, *b = right;
	return strverscmp(a->path, b->path);
}

/* Sorts by name, as in a directory: the first file determines the time line. */
bool rank_files_take(struct rank_files *files, const char *const *paths, uint32_t count, find_importer find)
{
	bool is_one_kind = true;
	for (uint32_t i = 0; i < count && is_one_kind; i++) {
		rank_files_add(files, paths[i], find(paths[i]));
		is_one_kind = files->importer && files->files[i].importer == files->importer;
	}
	qsort(files->files, files->count, sizeof *files->files, rank_files_compare_files);
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

struct rank_files_loading {
	struct model *model;
	bool are_members; /* the files are members of an archive */
	struct file_order order;
	uint32_t loaded, failed, others, beyond; /* files after the first FILES_MAX */
	struct error first;                      /* the problem of the file whose name sorts first */
	uint32_t first_file;
};

static bool is_taken(const struct model *model, uint32_t before, int64_t rank)
{
	for (uint32_t i = 0; i < before; i++)
		if (model->processes[i].rank == rank)
			return true;
	return false;
}

/* The folder in an archive may name the rank: "rank3/snapshot.pickle". */
static int64_t rank_files_rank_of(const char *name, bool is_member)
{
	const char *file = file_name_of(name);
	int64_t rank = kineto_rank_of_name(name);
	char folder[4096];
	if (rank >= 0 || file == name || !is_member)
		return rank;
	snprintf(folder, sizeof folder, "%.*s", (int)(file - 1 - name < 4095 ? file - 1 - name : 4095), name);
	return kineto_rank_of_name(folder);
}

static void name_processes(struct model *model, uint32_t first, uint32_t end, const char *path, int64_t rank)
{
	assert(first <= end && end <= model->processes_count);
	bool is_known = first < end && rank >= 0 && rank <= INT32_MAX && !is_taken(model, model->processes_count, rank);
	for (uint32_t i = first; i < end; i++) {
		int32_t told = model->processes[i].rank;
		is_known &= told < 0;
		if (told >= 0 && is_taken(model, first, told))
			model_add_ledger(model, LEDGER_OTHER, i, file_name_of(path), 1,
			                 "another file has the same rank");
	}
	for (uint32_t i = first; i < end; i++) {
		struct process *process = &model->processes[i];
		if (is_known)
			process->rank = (int32_t)rank;
		if (!process->name)
			process->name = intern_add(&model->strings, file_name_of(path));
	}
	if (is_known)
		model_add_ledger(model, LEDGER_OTHER, first, file_name_of(path), 1,
		                 "the file does not contain its rank; the rank is from the file's name");
}

static void note_problem(struct rank_files_loading *loading, const char *path, const struct error *problem)
{
	model_add_ledger(loading->model, LEDGER_DAMAGED, MODEL_NONE, file_name_of(path), 1, problem->text);
	if (!loading->failed++ || file_order_is_before(&loading->order, loading->first_file)) {
		loading->first = *problem;
		loading->first_file = loading->order.count - 1;
	}
}

/* kind: in words; NULL: a kind that need not be listed. */
static void pass_over(struct rank_files_loading *loading, const char *path, const char *kind)
{
	char text[256];
	snprintf(text, sizeof text, "%s, which was not read together with the others: pass it separately",
	         kind ? kind : "");
	if (kind)
		model_add_ledger(loading->model, LEDGER_OTHER, MODEL_NONE, file_name_of(path), 1, text);
	else
		loading->others++;
}

static void name_all(const struct rank_files_loading *loading)
{
	const struct file_order *order = &loading->order;
	for (uint32_t i = 0; i < order->count; i++) {
		const struct ordered_file *file = &order->files[i];
		uint32_t end = i + 1 < order->count ? file[1].place.processes : loading->model->processes_count;
		name_processes(loading->model, file->place.processes, end, file->name,
		               rank_files_rank_of(file->name, loading->are_members));
	}
}

/* Reads to the end, for the checksum. */
static enum status pass_through(struct input_stream *input, struct error *problem)
{
	char bytes[65536];
	size_t length;
	enum status status;
	do
		status = input_read(input, bytes, sizeof bytes, &length, problem);
	while (status == STATUS_OK && length);
	return status;
}

static enum status load_either(const struct importer *importer, const char *name, struct input_stream *input,
                               const struct model_filter *filter, struct model *model, struct error *problem)
{
	if (importer->load_input)
		return importer->load_input(input, name, filter, model, problem);
	enum status status = pass_through(input, problem);
	return status == STATUS_OK ? importer->load(name, filter, model, problem) : status;
}

/* Loads the latest file. A copy is not a rank, unless the names have different ranks: files without times may well be
 * identical. */
static enum status rank_files_load_input(struct rank_files_loading *loading, const struct importer *importer,
                                         const char *name, struct input_stream *input,
                                         const struct model_filter *filter, struct error *problem)
{
	struct file_order *order = &loading->order;
	input_sum(input);
	enum status status = load_either(importer, name, input, filter, loading->model, problem);
	if (status != STATUS_OK)
		return status;
	int64_t rank = importer->load_input ? rank_files_rank_of(name, loading->are_members) : -1;
	if (file_order_has_text(order, input_summed(input), rank)) {
		model_forget(loading->model, &order->files[order->count - 1].place);
		file_order_note_copy(order, loading->model);
	} else {
		loading->loaded++;
	}
	return STATUS_OK;
}

static enum status load_path(struct rank_files_loading *loading, const struct importer *importer, const char *path,
                             const struct model_filter *filter, struct error *problem)
{
	struct input_stream *input;
	enum status status = input_open(path, &input, problem);
	if (status != STATUS_OK)
		return status;
	status = rank_files_load_input(loading, importer, path, input, filter, problem);
	input_close(input);
	return status;
}

static enum status rank_files_finish(struct rank_files_loading *loading, const char *path, struct error *err)
{
	file_order_settle(&loading->order, loading->model);
	name_all(loading);
	file_order_release(&loading->order);
	if (loading->others)
		model_add_ledger(loading->model, LEDGER_OTHER, MODEL_NONE, file_name_of(path), loading->others,
		                 "files of another kind were not read");
	if (loading->beyond)
		model_add_ledger(loading->model, LEDGER_OTHER, MODEL_NONE, file_name_of(path), loading->beyond,
		                 "files after the first 10,000 were not read");
	if (!loading->loaded)
		*err = loading->first;
	if (!loading->loaded && loading->are_members) { /* the members' names alone do not identify the archive */
		error_set(err, loading->first.status, "'%s': %s", path, loading->first.text);
		error_hint(err, "%s", loading->first.hint);
	}
	return loading->loaded ? STATUS_OK : loading->first.status;
}

enum status rank_files_load(const struct rank_files *files, const char *directory, const struct model_filter *filter,
                            struct model *model, struct error *err)
{
	struct rank_files_loading loading = {.model = model, .first = {.status = STATUS_INPUT}};
	struct error problem;
	for (uint32_t i = 0; i < files->count; i++) {
		const char *path = files->files[i].path;
		if (i >= FILES_MAX) {
			loading.beyond++;
			continue;
		}
		file_order_begin(&loading.order, model, path);
		if (files->files[i].importer != files->importer) {
			pass_over(&loading, path, other_kind_of_file(path));
		} else if (load_path(&loading, files->importer, path, filter, &problem) != STATUS_OK) {
			note_problem(&loading, path, &problem);
		}
	}
	return rank_files_finish(&loading, directory, err);
}

/* ---- archives ---- */

struct archive_loading {
	struct rank_files_loading loading;
	const struct model_filter *filter;
	find_importer_here find;
	const struct importer *importer; /* the kind that is loaded: that of the first member by name that has one */
	char *first;                     /* the name of that member */
};

/* Returns the importer that reads the stream as a rank; NULL if there is none. */
static const struct importer *importer_of(const struct archive_loading *archive, const char *name, const char *head,
                                          size_t length)
{
	const struct importer *importer = archive->find(name, head, length);
	return importer && importer->is_rank && importer->load_input ? importer : NULL;
}

/* Ignores errors: loading the member reports them. */
static void look_at_member(struct archive_loading *archive, struct archive_reader *reader, const char *name)
{
	struct input_stream *input;
	struct error ignored;
	const char *head;
	size_t length;
	if ((archive->first && strverscmp(name, archive->first) > 0) ||
	    input_open_member(reader, name, &input, &ignored) != STATUS_OK)
		return;
	bool is_readable = input_peek_long(input, &head, &length, &ignored) == STATUS_OK;
	const struct importer *importer = is_readable ? importer_of(archive, name, head, length) : NULL;
	if (importer) {
		free(archive->first);
		archive->first = strdup(name);
		archive->importer = importer;
	}
	input_close(input);
}

static enum status rank_files_load_stream(struct archive_loading *archive, const char *name, struct input_stream *input,
                                          struct error *problem)
{
	const char *head;
	size_t length;
	enum status status = input_peek_long(input, &head, &length, problem);
	if (status != STATUS_OK)
		return status;
	if (!archive->importer || importer_of(archive, name, head, length) != archive->importer) {
		pass_over(&archive->loading, name, other_kind(head, length));
		return STATUS_OK;
	}
	return rank_files_load_input(&archive->loading, archive->importer, name, input, archive->filter, problem);
}

static void load_member(struct archive_loading *archive, struct archive_reader *reader, const char *name)
{
	struct input_stream *input;
	struct error problem;
	file_order_begin(&archive->loading.order, archive->loading.model, name);
	enum status status = input_open_member(reader, name, &input, &problem);
	if (status == STATUS_OK) {
		status = rank_files_load_stream(archive, name, input, &problem);
		input_close(input);
	}
	if (status != STATUS_OK)
		note_problem(&archive->loading, name, &problem);
}

/* Visits each member, except hidden ones and those after the first FILES_MAX. *broken says why the archive could not be
 * read further; its status is OK at the end. */
static enum status visit_members(struct archive_loading *archive, const char *path,
                                 void (*visit)(struct archive_loading *, struct archive_reader *, const char *),
                                 struct error *broken, struct error *err)
{
	struct archive_reader *reader;
	const char *name;
	enum status status = archive_open(path, NULL, &reader, err);
	*broken = (struct error){.status = STATUS_OK};
	if (status != STATUS_OK)
		return status;
	archive->loading.beyond = 0;
	for (uint32_t i = 0; archive_next(reader, &name, broken) == STATUS_OK && name; i++) {
		if (*file_name_of(name) == '.') /* hidden, as in directories */
			continue;
		if (i < FILES_MAX)
			visit(archive, reader, name);
		else
			archive->loading.beyond++;
	}
	archive_close(reader);
	return STATUS_OK;
}

enum status rank_files_load_archive(const char *path, find_importer_here find, const struct model_filter *filter,
                                    struct model *model, bool *is_found, struct error *err)
{
	struct archive_loading archive = {
		.loading = {.model = model, .are_members = true, .first = {.status = STATUS_INPUT}},
		.filter = filter,
		.find = find};
	struct error broken;
	enum status status = visit_members(&archive, path, look_at_member, &broken, err);
	free(archive.first);
	if (status == STATUS_OK)
		status = visit_members(&archive, path, load_member, &broken, err);
	*is_found = status == STATUS_OK && archive.importer;
	if (status != STATUS_OK)
		return status;
	if (broken.status != STATUS_OK) {
		file_order_begin(&archive.loading.order, model, path);
		note_problem(&archive.loading, path, &broken);
	}
	return rank_files_finish(&archive.loading, path, err);
}
