/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_files.h: finds the files of a recording, and reads one of them.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_FILES_H
#define IMPORTERS_RECORDING_RECORDING_FILES_H

#include "importers/recording/recording.h"

/* Adds the segments at the path, a run directory or one file. Before that, folds the pools of dead processes beside
 * them into their files. A directory without a segment is an error that describes its contents. */
enum status recording_find_files(const char *path, bool is_directory, struct recording *recording,
                                 struct error *err) MUST_CHECK;
/* Adds a file by its name; the caller sets its path or its bytes. */
struct recorded_file *recording_add_file(struct recording *recording, const char *name);
/* Reads a file or its bytes. */
enum status recording_read(struct recorded_file *file, const struct segment_visitor *visitor,
                           struct error *err) MUST_CHECK;

#endif
