/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_directory.c: where sets of traces come from: the files of a directory, the members of a zip or tar, names on the command line. In the
 * first two what is no trace is passed over.
 */
#include "base/archive_reader.h"
#include "base/memory.h"
#include "importers/kineto_import.h"
#include "importers/kineto_set.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct listed_file {
	char *path;
	uint64_t bytes;
};

struct listing {
	struct listed_file *files;
	uint32_t count, capacity;
	uint64_t bytes;
	bool has_recording; /* of ours: that is what counts there */
};

static bool ends_with(const char *name, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);
	return length > tail && strcmp(name + length - tail, suffix) == 0;
}

static bool may_be_trace(const char *path, struct stat *info)
{
	return (ends_with(path, ".json") || ends_with(path, ".gz") || ends_with(path, ".zst")) &&
	       stat(path, info) == 0 && S_ISREG(info->st_mode);
}

static void add_file(struct listing *listing, const char *path, uint64_t bytes)
{
	if (listing->count == listing->capacity) {
		listing->capacity = listing->capacity ? 2 * listing->capacity : 16;
		listing->files = memory_resize(listing->files, listing->capacity, sizeof *listing->files);
	}
	listing->files[listing->count] = (struct listed_file){.path = strdup(path), .bytes = bytes};
	if (!listing->files[listing->count].path)
		memory_exhausted(strlen(path) + 1);
	listing->count++;
	listing->bytes += bytes;
}

static int compare_files(const void *left, const void *right)
{
	const struct listed_file *a = left, *b = right;
	return strverscmp(a->path, b->path);
}

static void find_files(struct listing *listing, const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	while (directory && (entry = readdir(directory)) && listing->count < KINETO_SET_MAX) {
		char name[4096];
		struct stat info;
		listing->has_recording |= ends_with(entry->d_name, ".ssr");
		if (snprintf(name, sizeof name, "%s/%s", path, entry->d_name) < (int)sizeof name &&
		    may_be_trace(name, &info))
			add_file(listing, name, (uint64_t)info.st_size);
	}
	if (directory)
		closedir(directory);
	if (listing->count)
		qsort(listing->files, listing->count, sizeof *listing->files, compare_files);
}

static void release(struct listing *listing)
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
		is_found = kineto_is_trace(listing.files[i].path);
	release(&listing);
	return is_found;
}

/* ---- loading ---- */

/* False: it is no trace, or cannot be opened. */
static bool load_file(struct kineto_set *set, const char *path)
{
	struct input_stream *input;
	struct error ignored;
	if (input_open(path, &input, &ignored) != STATUS_OK)
		return false;
	bool is_trace = kineto_is_trace_here(input);
	if (is_trace)
		kineto_set_load(set, path, input);
	input_close(input);
	return is_trace;
}

enum status kineto_load_directory(const char *path, struct model *model, struct error *err)
{
	struct listing listing = {0};
	struct kineto_set set;
	find_files(&listing, path);
	kineto_set_init(&set, model);
	set.total_bytes = listing.bytes;
	for (uint32_t i = 0; i < listing.count; i++) {
		load_file(&set, listing.files[i].path);
		set.done_bytes += listing.files[i].bytes;
	}
	release(&listing);
	return kineto_set_finish(&set, path, err);
}

enum status kineto_load_files(const char *const *paths, uint32_t count, struct model *model, struct error *err)
{
	struct kineto_set set;
	struct stat info;
	enum status status = STATUS_OK;
	kineto_set_init(&set, model);
	for (uint32_t i = 0; i < count; i++)
		set.total_bytes += stat(paths[i], &info) == 0 ? (uint64_t)info.st_size : 0;
	for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
		if (!load_file(&set, paths[i])) {
			status = error_set(
				err, STATUS_INPUT,
				"'%s' is no trace: only traces of torch.profiler (JSON) are read together as one",
				paths[i]);
			error_hint(err, "give one recording, or the directory of a run");
		}
		set.done_bytes += stat(paths[i], &info) == 0 ? (uint64_t)info.st_size : 0;
	}
	struct error ignored;
	enum status finished = kineto_set_finish(&set, paths[0], status == STATUS_OK ? err : &ignored);
	return status == STATUS_OK ? finished : status;
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

static void load_member(struct kineto_set *set, struct archive_reader *archive, const char *name)
{
	struct input_stream *input;
	struct error err;
	if (input_open_member(archive, name, &input, &err) != STATUS_OK) {
		model_add_ledger(set->model, LEDGER_DAMAGED, MODEL_NONE, name, 1, err.text);
		return;
	}
	if (kineto_is_trace_here(input))
		kineto_set_load(set, name, input);
	input_close(input);
}

enum status kineto_load_archive(const char *path, struct model *model, struct error *err)
{
	struct kineto_set set;
	struct archive_reader *archive;
	struct error broken;
	const char *name;
	struct stat info;
	enum status status = archive_open(path, &archive, err);
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
		model_add_ledger(model, LEDGER_DAMAGED, MODEL_NONE, path, 1, broken.text);
		*err = broken;
	}
	bool is_empty = !set.loaded;
	enum status finished = kineto_set_finish(&set, path, is_empty && status != STATUS_OK ? &broken : err);
	return is_empty && status != STATUS_OK ? status : finished;
}
