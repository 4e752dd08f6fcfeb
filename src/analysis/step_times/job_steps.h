/* SPDX-License-Identifier: Apache-2.0
 *
 * job_steps.h: which processes are the ranks of a job, and the steps of the job, each with the mean over the ranks (see
 * step_times.h).
 */
#ifndef ANALYSIS_STEP_TIMES_JOB_STEPS_H
#define ANALYSIS_STEP_TIMES_JOB_STEPS_H

#include "analysis/step_times/step_times.h"

/* Sets is_rank of the spans. */
void job_steps_find_ranks(struct step_times *times, const struct model *model);
/* Fills the job's steps from those of its ranks. */
void job_steps_fill(struct step_times *times, const struct model *model);

#endif
