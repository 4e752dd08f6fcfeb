/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_files.c: see the header.
 */
#include "importers/recording/recording_files.h"

#include "base/memory.h"
#include "base/text.h"
#include "format/fold.h"
#include "importers/find_importer.h"
#include "importers/recording/converted.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILES 1000000u

/* Returns the host in "<host>.<pid>.<start time>.<n>.ssr", or "" for other names. Parses from the end, since a host's
 * name may contain dots. */
static char *host_of_name(const char *name)
{
	const char *end = name + strlen(name) - strlen(".ssr");
	if (end < name || strcmp(end, ".ssr") != 0)
		return strdup("");
	for (int numbers = 0; numbers < 3; numbers++) {
		const char *dot = end;
		while (dot > name && dot[-1] >= '0' && dot[-1] <= '9')
			dot--;
		if (dot == end || dot == name || dot[-1] != '.')
			return strdup("");
		end = dot - 1;
	}
	return strndup(name, (size_t)(end - name));
}

struct recorded_file *recording_add_file(struct recording *recording, const char *name)
{
	MEMORY_GROW(recording->files, recording->file_count, recording->file_capacity, 16);
	struct recorded_file *file = &recording->files[recording->file_count++];
	const char *base = strrchr(name, '/');
	*file = (struct recorded_file){.name = arena_dup(&recording->model->arena, base ? base + 1 : name)};
	file->host = host_of_name(file->name);
	return file;
}

struct directory_count {
	uint64_t segments, folders, others;
};

static char *path_in(const char *directory, const char *name)
{
	char *path;
	if (asprintf(&path, "%s/%s", directory, name) < 0)
		memory_exhausted(strlen(directory));
	return path;
}

static bool is_folder_at(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Counts the entries of the directory, and adds the segments of the run. */
static enum status scan_directory(const char *path, struct recording *recording, struct directory_count *count,
                                  struct error *err)
{
	*count = (struct directory_count){0};
	DIR *directory = opendir(path);
	if (!directory)
		return error_errno(err, STATUS_INPUT, errno, "cannot read the directory '%s'", path);
	const struct dirent *entry;
	while ((entry = readdir(directory)) && count->segments < MAX_FILES) {
		if (entry->d_name[0] == '.')
			continue;
		char *name = path_in(path, entry->d_name);
		bool is_recording = text_ends_with(entry->d_name, ".ssr"), is_folder = is_folder_at(name);
		bool is_converted = is_recording && converted_is_file(name), is_segment = is_recording && !is_converted;
		count->segments += is_segment;
		count->folders += !is_segment && is_folder;
		count->others += !is_segment && !is_folder;
		if (is_converted)
			model_add_ledger(
				recording->model, LEDGER_OTHER, MODEL_NONE, entry->d_name, 1,
				"a recording made by 'stepscope convert' is not part of the run: pass it separately");
		if (is_segment)
			recording_add_file(recording, entry->d_name)->path = name;
		else
			free(name);
	}
	closedir(directory);
	return STATUS_OK;
}

/* Finds the first file in the directory that can be read alone. */
static bool find_other(const char *path, char *name, size_t size, const char **kind)
{
	struct dirent **entries = NULL;
	int count = scandir(path, &entries, NULL, alphasort);
	bool is_found = false;
	for (int i = 0; i < count; i++) {
		char file[PATH_MAX];
		struct stat info;
		if (!is_found && snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name) < (int)sizeof file &&
		    stat(file, &info) == 0 && S_ISREG(info.st_mode) && (*kind = other_kind_of_file(file))) {
			snprintf(name, size, "%s", entries[i]->d_name);
			is_found = true;
		}
		free(entries[i]);
	}
	free(entries);
	return is_found;
}

static enum status nothing_found(const char *path, const struct directory_count *count, struct error *err)
{
	char name[256], folders[64] = "";
	const char *kind;
	if (count->folders)
		snprintf(folders, sizeof folders, " and %" PRIu64 " folders, which are not searched", count->folders);
	error_set(err, STATUS_INPUT,
	          "no recording in '%s': looked for *.ssr and traces of torch.profiler, found %" PRIu64
	          " other files%s",
	          path, count->others, folders);
	if (count->others && find_other(path, name, sizeof name, &kind))
		error_hint(err, "'%s' is %s: pass that file by path", name, kind);
	else if (count->folders)
		error_hint(err, "pass the folder of one run, or the traces of several ranks as files: "
		                "'stepscope report DIR/*/*.json'");
	else
		error_hint(err, "'stepscope run -- PROGRAM' makes a recording; pass its run directory");
	return STATUS_INPUT;
}

enum status recording_read(struct recorded_file *file, const struct segment_visitor *visitor, struct error *err)
{
	if (file->path)
		return segment_read(file->path, visitor, &file->stats, err);
	return segment_read_memory(file->data, file->bytes, file->name, visitor, &file->stats, err);
}

/* A fold_problem callback. */
static void note_unfolded(void *context, const struct fold_result *result, const struct error *err)
{
	struct recording *recording = context;
	recording->unfolded = memory_resize(recording->unfolded, recording->unfolded_count + 1,
	                                    sizeof *recording->unfolded);
	struct unfolded *entry = &recording->unfolded[recording->unfolded_count++];
	entry->pid = result->pid;
	snprintf(entry->problem, sizeof entry->problem, "%.*s", (int)sizeof entry->problem - 1, err->text);
}

static enum status find_in_directory(const char *path, struct recording *recording, struct error *err)
{
	struct directory_count count;
	fold_stale_pools(path, note_unfolded, recording);
	enum status status = scan_directory(path, recording, &count, err);
	if (status == STATUS_OK && recording->file_count == 0)
		status = nothing_found(path, &count, err);
	return status;
}

static void find_one_file(const char *path, struct recording *recording)
{
	const char *slash = strrchr(path, '/');
	char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	struct recorded_file *file = recording_add_file(recording, path);
	file->path = strdup(path);
	if (!directory || !file->path)
		memory_exhausted(strlen(path));
	fold_stale_pools(directory, note_unfolded, recording);
	free(directory);
}

enum status recording_find_files(const char *path, bool is_directory, struct recording *recording, struct error *err)
{
	if (is_directory)
		return find_in_directory(path, recording, err);
	find_one_file(path, recording);
	return STATUS_OK;
}
