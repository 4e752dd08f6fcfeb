/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h: identifies the process within its job from the variables that launchers set, and decides if it is recorded
 * in full. Pure: reads only its arguments.
 */
#ifndef RECORDER_RANKS_H
#define RECORDER_RANKS_H

#include "recorder/options.h"

#include <stdbool.h>
#include <stdint.h>

struct job_identity {
	bool has_rank; /* false: no launcher gave a rank; rank is 0 then */
	int32_t rank;
	int32_t local_rank;    /* rank on its machine; -1: unknown */
	int32_t world_size;    /* -1: unknown */
	int32_t restart_count; /* number of restarts of the job by the launcher; 0 if unknown */
	/* Constant text: torchrun, environment, openmpi, mvapich2, pmi, pmix, slurm; "": no launcher. */
	const char *launcher;
	char role[32]; /* ROLE_NAME of torchrun, cut to fit; "" if not given */
};

/* Fills the identity from an environment ("NAME=value" texts, NULL at the end; a NULL pointer is an empty
 * environment). */
void job_identity_read(struct job_identity *identity, char *const *environment);

/* Returns true if the selection records this process in full. A process without a rank counts as rank 0. */
bool ranks_selected(const struct record_options *options, const struct job_identity *identity);

#endif
