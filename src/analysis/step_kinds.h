/* SPDX-License-Identifier: Apache-2.0
 *
 * step_kinds.h: which steps are the program, where operators were recorded in some of its steps only. Recording them makes a step longer, so what
 * is said of durations, of outliers and of what recurs is of one kind.
 *
 * The program is the steps without operators, where a job has three of them, its first three steps not counted, and others with operators; else
 * it is all steps. A job's step is without operators when it is in all ranks: one rank that records makes the others wait.
 *
 * Phases that the program marks are of these steps, too. Those that are inferred from operators are of the steps with operators.
 */
#ifndef ANALYSIS_STEP_KINDS_H
#define ANALYSIS_STEP_KINDS_H

#include "analysis/step_times.h"

#define STEP_KINDS_LEAST 3 /* steps of a kind, to say anything of it */

/* No operators were recorded in any of it. */
static inline bool step_is_plain(const struct model_step *step)
{
	return !step->has_detail && !step->has_any_detail;
}

/* Phases are not known in the steps that lack the operators which tell them in others. Before the job's steps are filled. */
void step_kinds_drop_phases(struct step_times *times, const struct model *model);
/* Marks the steps that are the program. After the job's steps are filled. */
void step_kinds_find(struct step_times *times, const struct model *model);

/* How many steps of processes are measured: sums of tables of operators are over these. */
uint32_t step_kinds_measured(const struct step_times *times);
/* Steps of processes for one whose operators were recorded: what tables of operators hold is multiplied by it where a budget chose the steps, to be
 * that of the run. Of steps that somebody asked for they hold what was recorded: 1. */
double step_kinds_scale(const struct step_times *times);
/* Multiplies the columns that are sums, and says from how many steps the table is. Behind the last row and before other notes. */
void step_kinds_scale_table(struct table *table, const struct step_times *times);
/* From how many of the job's steps what lies in operators is; NULL: from all, or there are none. */
const char *step_kinds_operators_note(const struct step_times *times, struct arena *arena);
/* Does it tell how ranks share their time? Steps with known phases do, in all ranks; where there are none, all complete ones. */
bool step_kinds_tells_ranks(const struct step_times *times, uint32_t step);
/* Are the operators of all ranks there? -1: in no step. */
bool step_kinds_is_whole(const struct step_times *times, int32_t step);
/* How many steps that are; NULL: all. */
const char *step_kinds_whole_note(const struct step_times *times, struct arena *arena);
/* From which of the job's steps a table is, and how long the others take; NULL: from all of them. Of durations; of phases. */
const char *step_kinds_note(const struct step_times *times, struct arena *arena);
const char *step_kinds_phases_note(const struct step_times *times, struct arena *arena);

#endif
