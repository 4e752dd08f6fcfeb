/* SPDX-License-Identifier: Apache-2.0
 *
 * export_files.h: which processes of a run go into which file of `stepscope export -o DIR/`, and what it is called.
 */
#ifndef OUTPUT_EXPORT_EXPORT_FILES_H
#define OUTPUT_EXPORT_EXPORT_FILES_H

#include "model/model.h"

struct export_file {
	int32_t rank;
	bool *processes; /* per process of the model: goes into this file */
	char name[256];  /* without directory and suffix: "rank0_node1_4242.1790857026000001123" */
};

struct export_files { /* one per rank, by rank; one in all when no rank is known */
	struct export_file *files;
	uint32_t count;
};

/* A process without a rank goes with its parent's, else with the first rank of its host. */
void export_files_init(struct export_files *files, const struct model *model);
void export_files_release(struct export_files *files);

/* Ranks that the model has processes of. */
uint32_t export_rank_count(const struct model *model);

#endif
