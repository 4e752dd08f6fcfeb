/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_files.h: files of one kind as one run, one file per rank: memory snapshots, stack profiles, converted
 * recordings. Each file's importer reads it as if it were alone, and files are ordered by name. If a file does not
 * state its rank, the rank comes from its name. If there are several such kinds, the kind of the first file is used,
 * and the ledger lists the files left out.
 */
#ifndef IMPORTERS_RANK_FILES_H
#define IMPORTERS_RANK_FILES_H

#include "importers/importer.h"

struct rank_files {
	struct rank_file {
		char *path;
		const struct importer *importer; /* NULL: not a kind that can be a rank */
	} * files;
	uint32_t count, capacity;
	const struct importer *importer; /* the kind that is loaded */
};

/* Returns the importer of a file, or NULL. */
typedef const struct importer *(*find_importer)(const char *path);
/* Like find_importer, for a member of an archive. */
typedef const struct importer *(*find_importer_here)(const char *name, const char *head, size_t length);

/* Finds the files of a directory by their contents. Returns false if there are none, or if the directory holds a
 * recording. */
bool rank_files_find(struct rank_files *files, const char *directory, find_importer find);
/* Returns false if the files are not all of one such kind. */
bool rank_files_take(struct rank_files *files, const char *const *paths, uint32_t count, find_importer find);
/* Loads the files. The ledger lists the problems of a file; the others are still read. Returns STATUS_INPUT if nothing
 * was loaded. */
enum status rank_files_load(const struct rank_files *files, const char *directory, const struct model_filter *filter,
                            struct model *model, struct error *err) MUST_CHECK;
void rank_files_release(struct rank_files *files);

/* Like rank_files_load(), for the members of an archive. *is_found is false if no member is of such a kind. */
enum status rank_files_load_archive(const char *path, find_importer_here find, const struct model_filter *filter,
                                    struct model *model, bool *is_found, struct error *err) MUST_CHECK;

#endif
