/* SPDX-License-Identifier: Apache-2.0
 *
 * find_importer.h: which importer reads a file, by the file's contents.
 */
#ifndef IMPORTERS_FIND_IMPORTER_H
#define IMPORTERS_FIND_IMPORTER_H

#include "importers/importer.h"

/* What importers are asked by. */
struct importer_source {
	const char *path;
	bool is_directory;
	char head[4096]; /* of a file */
	size_t length;   /* of the head; 0: the file is empty, or a directory */
};

/* Returns true for standard input, a pipe or a device: its bytes can be read once only, so no importer looks at them first. */
bool importer_source_is_stream(const char *path);
enum status importer_source_read(struct importer_source *source, const char *path, struct error *err) MUST_CHECK;

/* The first importer of the registry that recognises the source; NULL: none does. */
const struct importer *importer_find(const struct importer_source *source);
/* The same for a file. NULL also for a directory, a stream, or a file that cannot be read. */
const struct importer *importer_of_file(const char *path);
/* By the first bytes of a file, decompressed, at best INPUT_LONG_HEAD_BYTES of them, and its name ("": unknown). NULL: no importer's begins()
 * takes them. */
const struct importer *importer_of_bytes(const char *name, const char *head, size_t length);
/* By the fact trace.format of a model; NULL: the model was recorded, or no importer has that name. */
const struct importer *importer_of_format(const char *format);

/* For errors where a trace or a recording is wanted: what else the file is, such as "an export of nsys (SQLite)"; NULL: unknown, or a trace. */
const char *other_kind(const char *head, size_t length);
const char *other_kind_of_file(const char *path);

#endif
