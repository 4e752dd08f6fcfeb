/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_directory.c: the traces of a directory, one per rank, as one model on one time line. Files that are no traces are passed over;
 * ranks that the files do not say come from their names.
 */
#include "importers/kineto_import.h"

#include "base/memory.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 100000u

struct set_file {
	char *path;
	uint64_t bytes;
	uint32_t process; /* of the model; MODEL_NONE: it is no trace */
	bool has_rank;
};

struct file_set {
	struct set_file *files;
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

static void add_file(struct file_set *set, const char *path, uint64_t bytes)
{
	if (set->count == set->capacity) {
		set->capacity = set->capacity ? 2 * set->capacity : 16;
		set->files = memory_resize(set->files, set->capacity, sizeof *set->files);
	}
	set->files[set->count] = (struct set_file){.path = strdup(path), .bytes = bytes, .process = MODEL_NONE};
	if (!set->files[set->count].path)
		memory_exhausted(strlen(path) + 1);
	set->count++;
	set->bytes += bytes;
}

static int compare_files(const void *left, const void *right)
{
	const struct set_file *a = left, *b = right;
	return strverscmp(a->path, b->path);
}

static void find_files(struct file_set *set, const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	while (directory && (entry = readdir(directory)) && set->count < FILES_MAX) {
		char name[4096];
		struct stat info;
		set->has_recording |= ends_with(entry->d_name, ".ssr");
		if (snprintf(name, sizeof name, "%s/%s", path, entry->d_name) < (int)sizeof name &&
		    may_be_trace(name, &info))
			add_file(set, name, (uint64_t)info.st_size);
	}
	if (directory)
		closedir(directory);
	if (set->count)
		qsort(set->files, set->count, sizeof *set->files, compare_files);
}

static void release(struct file_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		free(set->files[i].path);
	free(set->files);
}

bool kineto_has_traces(const char *path)
{
	struct file_set set = {0};
	bool is_found = false;
	find_files(&set, path);
	for (uint32_t i = 0; i < set.count && !is_found && !set.has_recording; i++)
		is_found = kineto_is_trace(set.files[i].path);
	release(&set);
	return is_found;
}

/* ---- ranks ---- */

/* "rank-3.json", "rank_3", "worker3_step": the number behind the word; -1: none. */
static int64_t rank_of_name(const char *path)
{
	static const char *const words[] = {"rank", "worker"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const char *at = strcasestr(name, words[i]);
		at = at ? at + strlen(words[i]) : "";
		at += *at == '-' || *at == '_';
		if (isdigit((unsigned char)*at))
			return strtoll(at, NULL, 10);
	}
	return -1;
}

static bool is_rank_taken(const struct model *model, const struct file_set *set, uint32_t before, int32_t rank)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (i != before && set->files[i].process != MODEL_NONE &&
		    model->processes[set->files[i].process].rank == rank)
			return true;
	return false;
}

static void settle_ranks(struct model *model, const struct file_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct set_file *file = &set->files[i];
		int64_t rank = rank_of_name(file->path);
		if (file->process == MODEL_NONE)
			continue;
		struct process *process = &model->processes[file->process];
		if (file->has_rank && is_rank_taken(model, set, i, process->rank)) {
			model_add_ledger(model, LEDGER_OTHER, file->process, strrchr(file->path, '/') + 1, 1,
			                 "another file says that it is of the same rank");
		} else if (!file->has_rank && rank >= 0 && rank <= INT32_MAX &&
		           !is_rank_taken(model, set, i, (int32_t)rank)) {
			process->rank = (int32_t)rank;
			model_add_ledger(model, LEDGER_OTHER, file->process, strrchr(file->path, '/') + 1, 1,
			                 "the rank is not in the file: it is taken from the file's name");
		}
	}
}

/* ---- all of them ---- */

static void load_one(struct file_set *set, struct set_file *file, struct kineto_import *first, uint64_t done)
{
	struct model *model = first->model;
	struct error err;
	struct kineto_import import = {.model = model,
	                               .path = file->path,
	                               .first_process = model->processes_count,
	                               .has_origin = first->has_origin,
	                               .origin_base_ns = first->origin_base_ns};
	if (!kineto_is_trace(file->path))
		return;
	if (kineto_load_file(&import, done, set->bytes, &err) != STATUS_OK) {
		model_add_ledger(model, LEDGER_DAMAGED, MODEL_NONE, strrchr(file->path, '/') + 1, 1, err.text);
		return;
	}
	first->has_origin = import.has_origin;
	first->origin_base_ns = import.origin_base_ns;
	file->process = import.main_process;
	file->has_rank = import.has_rank;
}

enum status kineto_load_directory(const char *path, struct model *model, struct error *err)
{
	struct file_set set = {0};
	struct kineto_import first = {.model = model};
	uint64_t done = 0;
	uint32_t loaded = 0;
	find_files(&set, path);
	for (uint32_t i = 0; i < set.count; i++) {
		load_one(&set, &set.files[i], &first, done);
		done += set.files[i].bytes;
		loaded += set.files[i].process != MODEL_NONE;
	}
	if (loaded > 1)
		settle_ranks(model, &set);
	release(&set);
	return loaded ? STATUS_OK
	              : error_set(err, STATUS_INPUT, "'%s' has no trace that can be read: none of its files has events",
	                          path);
}
