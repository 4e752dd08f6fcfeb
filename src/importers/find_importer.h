/* SPDX-License-Identifier: Apache-2.0
 *
 * find_importer.h: finds the importer for a file by the file's contents.
 */
#ifndef IMPORTERS_FIND_IMPORTER_H
#define IMPORTERS_FIND_IMPORTER_H

#include "importers/importer.h"

/* The path and the first bytes that importers look at. */
struct importer_source {
	const char *path;
	bool is_directory;
	char head[4096]; /* first bytes of a file */
	size_t length;   /* bytes in head; 0: the file is empty, or a directory */
};

/* Returns true for standard input, a pipe or a device: their bytes can be read only once, so no importer looks at them
 * first. */
bool importer_source_is_stream(const char *path);
enum status importer_source_read(struct importer_source *source, const char *path, struct error *err) MUST_CHECK;

/* Returns the first importer of the registry that recognises the source; NULL: no importer does. */
const struct importer *importer_find(const struct importer_source *source);
/* Like importer_find(), for a file. Also returns NULL for a directory, a stream or an unreadable file. */
const struct importer *importer_of_file(const char *path);
/* Finds the importer by a file's first bytes, decompressed, and its name ("": unknown). Pass INPUT_LONG_HEAD_BYTES of
 * them if possible. Returns NULL if no importer's begins() accepts them. */
const struct importer *importer_of_bytes(const char *name, const char *head, size_t length);
/* Finds the importer by the model's fact trace.format. Returns NULL if the model was recorded or no importer has that
 * name. */
const struct importer *importer_of_format(const char *format);

/* Describes a file for errors that expected a trace or a recording, such as "an export of nsys (SQLite)". Returns NULL
 * if the file is unknown or a trace. */
const char *other_kind(const char *head, size_t length);
const char *other_kind_of_file(const char *path);

#endif
