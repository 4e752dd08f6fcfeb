/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_files.h: files of one kind as one run, one per rank: snapshots of memory, profiles of stacks. Each is read by its importer as if it was
 * alone, in the order of their names; the rank is that of its name.
 */
#ifndef IMPORTERS_RANK_FILES_H
#define IMPORTERS_RANK_FILES_H

#include "importers/importer.h"

struct rank_files {
	char **paths;
	uint32_t count, capacity;
	uint32_t others; /* files that are of no such kind */
	const struct importer *importer;
};

/* Who reads the file, or NULL. */
typedef const struct importer *(*find_importer)(const char *path);

/* Those of a directory, by their contents. False: there are none, or of several kinds, or a recording. */
bool rank_files_find(struct rank_files *files, const char *directory, find_importer find);
/* False: they are not all of one such kind. */
bool rank_files_take(struct rank_files *files, const char *const *paths, uint32_t count, find_importer find);
/* What is wrong with one goes into the ledger; the others are read anyway. STATUS_INPUT when nothing was loaded. */
enum status rank_files_load(const struct rank_files *files, const char *directory, const struct model_filter *filter,
                            struct model *model, struct error *err) MUST_CHECK;
void rank_files_release(struct rank_files *files);

#endif
