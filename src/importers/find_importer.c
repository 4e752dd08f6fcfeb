/* SPDX-License-Identifier: Apache-2.0
 *
 * find_importer.c: see the header.
 */
#include "importers/find_importer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool importer_source_is_stream(const char *path)
{
	struct stat info;
	return strcmp(path, "-") == 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

enum status importer_source_read(struct importer_source *source, const char *path, struct error *err)
{
	struct stat info;
	*source = (struct importer_source){.path = path};
	if (stat(path, &info) != 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", path);
	source->is_directory = S_ISDIR(info.st_mode);
	if (source->is_directory)
		return STATUS_OK;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot open '%s'", path);
	ssize_t n = read(fd, source->head, sizeof source->head);
	int number = errno;
	close(fd);
	source->length = n > 0 ? (size_t)n : 0;
	return n < 0 ? error_errno(err, STATUS_INPUT, number, "cannot read '%s'", path) : STATUS_OK;
}

const struct importer *importer_find(const struct importer_source *source)
{
	for (size_t i = 0; importers[i]; i++)
		if (importers[i]->recognises(source->path, source->is_directory, source->head, source->length))
			return importers[i];
	return NULL;
}

const struct importer *importer_of_file(const char *path)
{
	struct importer_source source;
	struct error ignored;
	if (importer_source_is_stream(path) || importer_source_read(&source, path, &ignored) != STATUS_OK ||
	    source.is_directory)
		return NULL;
	return importer_find(&source);
}

const struct importer *importer_of_bytes(const char *name, const char *head, size_t length)
{
	for (size_t i = 0; importers[i]; i++)
		if (importers[i]->begins && importers[i]->begins(name, head, length))
			return importers[i];
	return NULL;
}

const struct importer *importer_of_format(const char *format)
{
	for (size_t i = 0; format && importers[i]; i++)
		if (strcmp(importers[i]->format ? importers[i]->format : importers[i]->name, format) == 0)
			return importers[i];
	return NULL;
}

const char *other_kind(const char *head, size_t length)
{
	const struct importer *importer = importer_of_bytes("", head, length);
	return importer ? importer->kind : NULL;
}

const char *other_kind_of_file(const char *path)
{
	struct input_stream *input;
	struct error ignored;
	const char *head, *kind = NULL;
	size_t length;
	if (input_open(path, &input, &ignored) != STATUS_OK)
		return NULL;
	if (input_peek_long(input, &head, &length, &ignored) == STATUS_OK)
		kind = other_kind(head, length);
	input_close(input);
	return kind;
}
