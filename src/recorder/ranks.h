/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h: which process of a job this is, from the variables that launchers set, and whether it is to be recorded in
 * full. Pure: reads only what it is given.
 */
#ifndef RECORDER_RANKS_H
#define RECORDER_RANKS_H

#include "recorder/options.h"

#include <stdbool.h>
#include <stdint.h>

struct job_identity {
	bool has_rank; /* false: no launcher said one; rank is 0 then */
	int32_t rank;
	int32_t local_rank;    /* on its machine; -1: not known */
	int32_t world_size;    /* -1: not known */
	int32_t restart_count; /* how often the launcher started the job again; 0 when not known */
	const char *launcher; /* constant text: torchrun, environment, openmpi, mvapich2, pmi, pmix, slurm, "" for none */
	char role[32];        /* ROLE_NAME of torchrun, cut to fit; "" when not given */
};

/* Fills the identity from an environment ("NAME=value" texts, NULL at the end; NULL is an empty one). */
void job_identity_read(struct job_identity *identity, char *const *environment);

/* Does the selection want this process in full? A process without a rank counts as rank 0. */
bool ranks_selected(const struct record_options *options, const struct job_identity *identity);

#endif
