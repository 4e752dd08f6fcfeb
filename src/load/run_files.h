/* SPDX-License-Identifier: Apache-2.0
 *
 * run_files.h: the recordings of a run as a table: one row per segment file, with the facts in its header.
 */
#ifndef LOAD_RUN_FILES_H
#define LOAD_RUN_FILES_H

#include "table/table.h"

/* Initialises and fills `table`. `path` is a directory or a file. */
void run_files_table(struct table *table, const char *path);

#endif
