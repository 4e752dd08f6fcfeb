/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_directory.c: sets of traces: the files of a directory, the members of a zip or tar, names on the command line.
 * In a directory or an archive, other files are skipped. The ledger lists files that are named like a trace or that
 * cannot be opened.
 */
#include "base/archive_reader.h"
#include "base/input_stream.h"
#include "base/memory.h"
#include "base/text.h"
#include "importers/find_importer.h"
#include "importers/kineto/kineto_import.h"
#include "importers/kineto/kineto_set.h"
#include "importers/recording/converted.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHERS_MAX 10000u

struct listed_file {
	char *path;
	uint64_t bytes;
	bool is_named; /* may_be_trace(); otherwise it counts only if it looks like a trace */
};

struct listing {
	struct listed_file *files;
	uint32_t count, capacity, others; /* others: files not named like a trace */
	uint64_t bytes;
	uint32_t folders;   /* subdirectories, which are not searched */
	uint64_t beyond;    /* files after OTHERS_MAX and KINETO_SET_MAX */
	uint64_t closed;    /* others that this user may not read */
	bool has_recording; /* it has a recording of a run, which takes precedence */
};

/* Returns true for names of traces, and of archives and recordings, so that the ledger can say that these are not
 * opened. Files with other names are also examined, but must be certain. */
static bool may_be_trace(const char *name)
{
	static const char *const suffixes[] = {".json", ".gz", ".zst", ".zip", ".tar", ".tgz", ".ssr"};
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (text_ends_with(name, suffixes[i]))
			return true;
	return false;
}

/* Excludes the hidden files that macOS puts beside each file, under its name. */
static bool is_named_like_trace(const char *name)
{
	const char *slash = strrchr(name, '/');
	return (slash ? slash[1] : *name) != '.' &&
	       (text_ends_with(name, ".json") || text_ends_with(name, ".json.gz") || text_ends_with(name, ".json.zst"));
}

static void kineto_directory_add_file(struct listing *listing, const char *path, uint64_t bytes, bool is_named)
{
	if (is_named ? listing->count - listing->others >= KINETO_SET_MAX : listing->others >= OTHERS_MAX) {
		listing->beyond++;
		return;
	}
	MEMORY_GROW(listing->files, listing->count, listing->capacity, 16);
	listing->files[listing->count] = (struct listed_file){
		.path = strdup(path), .bytes = bytes, .is_named = is_named};
	if (!listing->files[listing->count].path)
		memory_exhausted(strlen(path) + 1);
	listing->count++;
	listing->others += !is_named;
}

static int kineto_directory_compare_files(const void *left, const void *right)
{
	const struct listed_file *a = left, *b = right;
	return strverscmp(a->path, b->path);
}

/* Pipes and devices are not files of a run, and are not opened. */
static void kineto_directory_add_entry(struct listing *listing, const char *path, const char *name,
                                       const struct stat *info)
{
	bool is_named = may_be_trace(name), is_hidden = *name == '.';
	listing->folders += S_ISDIR(info->st_mode) && !is_hidden;
	if (!S_ISREG(info->st_mode) || (is_hidden && !is_named))
		return;
	listing->has_recording |= text_ends_with(name, ".ssr") && !converted_is_file(path);
	kineto_directory_add_file(listing, path, (uint64_t)info->st_size, is_named);
}

static void find_files(struct listing *listing, const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	while (directory && (entry = readdir(directory))) {
		char name[4096];
		struct stat info;
		if (snprintf(name, sizeof name, "%s/%s", path, entry->d_name) < (int)sizeof name &&
		    stat(name, &info) == 0)
			kineto_directory_add_entry(listing, name, entry->d_name, &info);
	}
	if (directory)
		closedir(directory);
	if (listing->count)
		qsort(listing->files, listing->count, sizeof *listing->files, kineto_directory_compare_files);
}

static void kineto_directory_release(struct listing *listing)
{
	for (uint32_t i = 0; i < listing->count; i++)
		free(listing->files[i].path);
	free(listing->files);
}

bool kineto_has_traces(const char *path)
{
	struct listing listing = {0};
	bool is_found = false;
	find_files(&listing, path);
	for (uint32_t i = 0; i < listing.count && !is_found && !listing.has_recording; i++)
		is_found = (listing.files[i].is_named ? kineto_is_trace : kineto_is_sure)(listing.files[i].path);
	kineto_directory_release(&listing);
	return is_found;
}

/* Keeps files that are named like a trace, or are one by contents. */
static void keep_traces(struct listing *listing)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < listing->count; i++) {
		struct listed_file file = listing->files[i];
		if (file.is_named || kineto_is_sure(file.path)) {
			listing->files[kept++] = file;
			listing->bytes += file.bytes;
			continue;
		}
		listing->closed += access(file.path, R_OK) != 0;
		free(file.path);
	}
	listing->count = kept;
}

/* ---- loading ---- */

/* Reports files that are not traces, but should be or may hold some. */
static bool find_problem(const char *name, struct input_stream *input, struct error *problem)
{
	const char *head;
	size_t length;
	if (input_peek(input, &head, &length, problem) != STATUS_OK)
		return true;
	if (archive_is_here(head, length))
		error_set(problem, STATUS_INPUT, "'%s' is a nested archive and was not opened: pass it separately",
		          name);
	else if (!length && is_named_like_trace(name))
		error_set(problem, STATUS_INPUT, "'%s' is empty", name);
	else if (is_named_like_trace(name) && !kineto_begins_like_json(head, length))
		error_set(problem, STATUS_INPUT, "'%s' is not a trace: it does not start like JSON", name);
	else
		return false;
	return true;
}

/* Returns false if the file is of another kind, or is neither a trace nor named like one. */
static bool kineto_directory_load_input(struct kineto_set *set, const char *name, struct input_stream *input)
{
	struct error problem, ignored;
	const char *head, *kind = NULL;
	size_t length;
	if (input_peek_long(input, &head, &length, &ignored) == STATUS_OK)
		kind = other_kind(head, length);
	if (kind) {
		kineto_set_other(set, name, kind);
		return false;
	}
	if (find_problem(name, input, &problem)) {
		kineto_set_problem(set, name, &problem);
		return true;
	}
	if (!kineto_is_trace_here(input))
		return false;
	kineto_set_load(set, name, input);
	return true;
}

static bool load_file(struct kineto_set *set, const char *path)
{
	struct input_stream *input;
	struct error problem;
	kineto_set_begin(set, path);
	if (input_open(path, &input, &problem) != STATUS_OK) {
		kineto_set_problem(set, path, &problem);
		return true;
	}
	bool is_taken = kineto_directory_load_input(set, path, input);
	input_close(input);
	return is_taken;
}

/* Notes the files and folders that were not examined. */
static void note_rest(const struct listing *listing, const char *path, struct model *model)
{
	if (listing->folders)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, path, listing->folders,
		                 "folders in the directory were not searched");
	if (listing->closed)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, path, listing->closed,
		                 "files cannot be opened: they may be traces");
	if (listing->beyond)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, path, listing->beyond,
		                 "files were not examined: a directory is read up to 100,000 files with a trace's "
		                 "name and 10,000 other files");
}

enum status kineto_load_directory(const char *path, struct model *model, struct error *err)
{
	struct listing listing = {0};
	struct kineto_set set;
	find_files(&listing, path);
	keep_traces(&listing);
	kineto_set_init(&set, model);
	set.total_bytes = listing.bytes;
	for (uint32_t i = 0; i < listing.count; i++) {
		load_file(&set, listing.files[i].path);
		set.done_bytes += listing.files[i].bytes;
	}
	note_rest(&listing, path, model);
	kineto_directory_release(&listing);
	return kineto_set_finish(&set, path, err);
}

bool kineto_is_archive(const char *path)
{
	struct input_stream *input;
	struct error ignored;
	const char *head;
	size_t length;
	if (input_open(path, &input, &ignored) != STATUS_OK)
		return false;
	bool is_archive = input_peek(input, &head, &length, &ignored) == STATUS_OK && archive_is_here(head, length);
	input_close(input);
	return is_archive;
}

static int compare_paths(const void *left, const void *right)
{
	return strverscmp(*(const char *const *)left, *(const char *const *)right);
}

/* Sorts as in a directory, so that `rank10` comes after `rank9`, whatever the order of the command line. */
static const char **sorted_paths(const char *const *paths, uint32_t count)
{
	const char **sorted = memory_resize(NULL, count, sizeof *sorted);
	memcpy(sorted, paths, count * sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, compare_paths);
	return sorted;
}

enum status kineto_load_files(const char *const *given, uint32_t count, struct model *model, struct error *err)
{
	struct kineto_set set;
	struct stat info;
	enum status status = STATUS_OK;
	const char **paths = sorted_paths(given, count);
	kineto_set_init(&set, model);
	for (uint32_t i = 0; i < count; i++)
		set.total_bytes += stat(paths[i], &info) == 0 ? (uint64_t)info.st_size : 0;
	for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
		if (kineto_is_archive(paths[i]) || !load_file(&set, paths[i])) {
			const char *kind = other_kind_of_file(paths[i]);
			status = error_set(err, STATUS_INPUT,
			                   "'%s' is %s: it cannot be read together with other files. Traces of "
			                   "torch.profiler can, and .ssr files of 'convert', stack profiles or "
			                   "memory snapshots of several ranks",
			                   paths[i], kind ? kind : "not a trace");
			error_hint(err, kind ? "pass that file separately"
			                     : "pass one recording, or the directory of a "
			                       "run");
		}
		set.done_bytes += stat(paths[i], &info) == 0 ? (uint64_t)info.st_size : 0;
	}
	struct error ignored;
	enum status finished = kineto_set_finish(&set, given[0], status == STATUS_OK ? err : &ignored);
	free(paths);
	return status == STATUS_OK ? finished : status;
}

static void load_member(struct kineto_set *set, struct archive_reader *archive, const char *name)
{
	struct input_stream *input;
	struct error err;
	kineto_set_begin(set, name);
	if (input_open_member(archive, name, &input, &err) != STATUS_OK) {
		kineto_set_problem(set, name, &err);
		return;
	}
	kineto_directory_load_input(set, name, input);
	input_close(input);
}

enum status kineto_load_archive(const char *path, struct input_stream *input, struct model *model, struct error *err)
{
	struct kineto_set set;
	struct archive_reader *archive;
	struct error broken;
	const char *name;
	struct stat info;
	enum status status = archive_open(path, input, &archive, err);
	if (status != STATUS_OK)
		return status;
	kineto_set_init(&set, model);
	set.total_bytes = stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
	for (uint32_t i = 0; i < KINETO_SET_MAX; i++) {
		status = archive_next(archive, &name, &broken);
		if (status != STATUS_OK || !name)
			break;
		load_member(&set, archive, name);
	}
	archive_close(archive);
	if (status != STATUS_OK) {
		kineto_set_begin(&set, path);
		kineto_set_problem(&set, path, &broken);
	}
	return kineto_set_finish(&set, path, err);
}
