/* SPDX-License-Identifier: Apache-2.0
 *
 * python_source.c: see the header. A recording may name any file, so only regular files that end in .py are opened,
 * and no large ones.
 */
#include "analysis/operators/python_source.h"

#include "analysis/shared/python_places.h"
#include "base/memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST ((off_t)4 << 20)
#define LONGEST 160

bool python_lines_are_of_functions(const struct model *model)
{
	return model_meta(model, MODEL_NONE, "trace.python_lines") != NULL;
}

void python_source_init(struct python_source *source, const struct model *model)
{
	*source = (struct python_source){.started_s = INT64_MAX,
	                                 .is_of_functions = python_lines_are_of_functions(model)};
	arena_init(&source->arena, 0);
	const char *folder = python_folder(model);
	source->folder = folder ? arena_dup(&source->arena, folder) : NULL;
	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];
		if (!process->has_times)
			continue;
		int64_t started_s = (process->first_ns + process->realtime_offset_ns) / 1000000000;
		source->started_s = started_s < source->started_s ? started_s : source->started_s;
		source->has_time = true;
	}
}

void python_source_release(struct python_source *source)
{
	for (uint32_t i = 0; i < source->count; i++)
		free(source->files[i].text);
	free(source->files);
	arena_release(&source->arena);
}

static bool source_read_all(int fd, struct source_file *file, off_t size)
{
	file->text = memory_resize(NULL, (size_t)size + 1, 1);
	while (file->length < (size_t)size) {
		ssize_t bytes = read(fd, file->text + file->length, (size_t)size - file->length);
		if (bytes <= 0)
			break;
		file->length += (size_t)bytes;
	}
	file->text[file->length] = 0;
	return file->length == (size_t)size;
}

static const char *source_open_file(const struct python_source *source, struct source_file *file, const char *path)
{
	static const char not_here[] = "its file is not on this machine";
	size_t length = strlen(path);
	struct stat info;
	if (length < 3 || strcmp(path + length - 3, ".py") != 0)
		return "the frame has no source file";
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return not_here;
	const char *reason = NULL;
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
		reason = not_here;
	else if (source->has_time && info.st_mtim.tv_sec > source->started_s)
		reason = "its file has changed since the run";
	else if (info.st_size > LARGEST)
		reason = "its file is larger than 4 MiB";
	else if (!source_read_all(fd, file, info.st_size))
		reason = "its file cannot be read";
	close(fd);
	return reason;
}

static const struct source_file *find_file(struct python_source *source, const char *name)
{
	for (uint32_t i = 0; i < source->count; i++)
		if (!strcmp(source->files[i].name, name))
			return &source->files[i];
	MEMORY_GROW(source->files, source->count, source->capacity, 16);
	struct source_file *file = &source->files[source->count++];
	*file = (struct source_file){.name = arena_dup(&source->arena, name)};
	const char *path = name;
	if (*name != '/' && source->folder)
		path = arena_printf(&source->arena, "%s/%s", source->folder, name);
	file->reason = source_open_file(source, file, path);
	return file;
}

const char *python_source_line(struct python_source *source, const char *file, uint32_t line, const char **reason)
{
	*reason = "the trace records the start of the function, not the calling line";
	if (source->is_of_functions)
		return NULL;
	const struct source_file *found = find_file(source, file);
	*reason = line ? found->reason : "the line is unknown";
	if (*reason)
		return NULL;
	const char *at = found->text;
	for (uint32_t number = 1; number < line && at; number++) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	*reason = "its file has fewer lines";
	if (!at || !*at)
		return NULL;
	at += strspn(at, " \t");
	size_t length = strcspn(at, "\r\n");
	while (length && (at[length - 1] == ' ' || at[length - 1] == '\t'))
		length--;
	return arena_dup_n(&source->arena, at, length < LONGEST ? length : LONGEST);
}
