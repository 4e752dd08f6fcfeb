/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_files.h: files of one kind as one run, one per rank: snapshots of memory, profiles of stacks, recordings that were converted. Each is
 * read by its importer as if it was alone, and the order is that of their names; the rank is that of its name unless it says one. Where there are several such kinds that of the first file counts;
 * what is left out is said.
 */
#ifndef IMPORTERS_RANK_FILES_H
#define IMPORTERS_RANK_FILES_H

#include "importers/importer.h"

struct rank_files {
	struct rank_file {
		char *path;
		const struct importer *importer; /* NULL: of no kind that is read so */
	} * files;
	uint32_t count, capacity;
	const struct importer *importer; /* the kind that counts */
};

/* Who reads the file, or NULL. */
typedef const struct importer *(*find_importer)(const char *path);
/* The same of a member of an archive. */
typedef const struct importer *(*find_importer_here)(const char *name, const char *head, size_t length);

/* Those of a directory, by their contents. False: there are none, or a recording is there. */
bool rank_files_find(struct rank_files *files, const char *directory, find_importer find);
/* False: they are not all of one such kind. */
bool rank_files_take(struct rank_files *files, const char *const *paths, uint32_t count, find_importer find);
/* What is wrong with one goes into the ledger; the others are read anyway. STATUS_INPUT when nothing was loaded. */
enum status rank_files_load(const struct rank_files *files, const char *directory, const struct model_filter *filter,
                            struct model *model, struct error *err) MUST_CHECK;
void rank_files_release(struct rank_files *files);

/* The same of the members of an archive. *is_found false: none of them is of such a kind. */
enum status rank_files_load_archive(const char *path, find_importer_here find, const struct model_filter *filter,
                                    struct model *model, bool *is_found, struct error *err) MUST_CHECK;

#endif
