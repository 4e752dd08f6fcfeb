/* SPDX-License-Identifier: Apache-2.0
 *
 * export_files.h: distributes the processes of a run over the files of `stepscope export -o DIR/`, and names the
 * files.
 */
#ifndef OUTPUT_EXPORT_EXPORT_FILES_H
#define OUTPUT_EXPORT_EXPORT_FILES_H

#include "model/model.h"

struct export_file {
	int32_t rank;
	bool *processes; /* per process of the model: true if it goes into this file */
	char name[256];  /* without directory and suffix: "rank0_node1_4242.1790857026000001123" */
};

struct export_files { /* one per rank, sorted by rank; a single one if no rank is known */
	struct export_file *files;
	uint32_t count;
};

/* A process without a rank goes into the file of its parent, otherwise of the lowest rank on its host. */
void export_files_init(struct export_files *files, const struct model *model);
void export_files_release(struct export_files *files);

/* Returns the number of ranks with processes in the model. */
uint32_t export_rank_count(const struct model *model);

#endif
