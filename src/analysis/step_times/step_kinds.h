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
#ifndef ANALYSIS_STEP_TIMES_STEP_KINDS_H
#define ANALYSIS_STEP_TIMES_STEP_KINDS_H

#include "analysis/step_times/step_times.h"

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

/* What tables of operators hold is that of the run where a budget chose the steps: what lies in a step that was chosen is multiplied by
 * step_time.weight, the number of steps that it stands for. Of steps that somebody asked for they hold what was recorded.
 *
 * - Within a process each stretch of 16 steps, or of as many more as it takes until one was chosen, is represented by its own: a budget changes how
 *   many it chooses while the program runs, and ranks choose differently.
 * - The first three steps of a process stand for themselves alone: which of them have operators was not drawn, and they are unlike all others.
 * - So do three and more in a row among others that were chosen more rarely: somebody asked for them.
 * - A row that was seen in fewer than three of the chosen steps is not multiplied: what happens once an epoch may be in one of them or in none.
 *   It has been at least as often.
 * - Nor is what is known of all steps.
 * - With fewer than three chosen steps nothing is multiplied.
 *
 * A row has one factor, the mean weight of its calls: so their number is that of the run, and times are as long as a call takes on the mean.
 *
 *     struct step_sightings seen = {0};                             // of each row to be
 *     if (step_times_measures(times, step))
 *             step_kinds_sight(&seen, times, step, 1), *(step_kinds_is_sampled(times, step) ? &sampled : &certain) += ...;
 *     double factor = step_kinds_factor(times, &seen);
 *     value = certain + factor * sampled;
 */
struct step_sightings {
	uint32_t steps[STEP_KINDS_LEAST]; /* 1 + the job's step, or the process's */
	double amount, weighted;          /* calls in sampled steps, and the same with their weights */
};
/* amount: of calls in a step of this number and weight. */
void step_sightings_add(struct step_sightings *seen, uint32_t number, double amount, double weight);
void step_sightings_add_all(struct step_sightings *seen, const struct step_sightings *more);
/* The mean weight, or 1: of a row that was seen in too few steps. */
double step_sightings_factor(const struct step_sightings *seen);
/* Into the column whose row says that its sums are lower bounds: it was seen in sampled steps, and in too few of them. Hidden until one does. */
void step_sightings_set_least(struct table *table, int row, int column, const struct step_sightings *seen,
                              double factor);
/* How many rows say so, as "; 3 rows ..."; "": none. */
const char *step_sightings_note(const struct table *table, int column, struct arena *arena);

void step_kinds_weigh(
	struct step_times *times,
	const struct model *model); /* step_times.factor, and which steps are sampled; is_scaled is known */
static inline bool step_kinds_is_sampled(const struct step_times *times, int32_t step)
{
	return step >= 0 && times->steps[step].is_sampled;
}
void step_kinds_sight(struct step_sightings *seen, const struct step_times *times, int32_t step, double amount);
double step_kinds_factor(const struct step_times *times, const struct step_sightings *seen);
/* Adds what was sampled, times the factor. */
void step_kinds_join(int64_t *certain, int64_t sampled, double factor);
/* How long the step and those that it stands for took, as far as it tells. */
double step_kinds_dur_ns(const struct step_times *times, uint32_t step);
/* The sums of tables of operators are over so many steps of processes. */
double step_kinds_sum_steps(const struct step_times *times);
#define STEP_KINDS_LEAST_COLUMN                                                                                                                 \
	{                                                                                                                                       \
		.name = "is_least", .title = "at least", .type = TABLE_BOOL, .role = ROLE_EVIDENCE,                                             \
		.definition =                                                                                                                   \
			"its sums are at least these: operators were recorded in some steps, it was seen in one or two of them, and so is not " \
			"multiplied",                                                                                                           \
		.is_hidden = true                                                                                                               \
	}
void step_kinds_set_least(struct table *table, int row, int column, const struct step_times *times,
                          const struct step_sightings *seen);
/* Says from how many steps the table is. Behind the last row and before other notes. */
void step_kinds_note_sums(struct table *table, const struct step_times *times, int least_column);
/* From how many of the job's steps what lies in operators is; NULL: from all, or there are none. */
const char *step_kinds_operators_note(const struct step_times *times, struct arena *arena);
/* Does it tell how ranks share their time? Steps with known phases do, in all ranks; where there are none, all complete ones. */
bool step_kinds_tells_ranks(const struct step_times *times, uint32_t step);
/* Are the operators of all ranks there? -1: in no step. Does such a step stand for others, and for how many? */
bool step_kinds_is_whole(const struct step_times *times, int32_t step);
bool step_kinds_is_sampled_job(const struct step_times *times, int32_t step);
double step_kinds_job_factor(const struct step_times *times);
void step_kinds_sight_job(struct step_sightings *seen, const struct step_times *times, int32_t step);
/* How many steps that are; NULL: all. */
const char *step_kinds_whole_note(const struct step_times *times, struct arena *arena);
/* From which of the job's steps a table is, and how long the others take; NULL: from all of them. Of durations; of phases. */
const char *step_kinds_note(const struct step_times *times, struct arena *arena);
const char *step_kinds_phases_note(const struct step_times *times, struct arena *arena);

#endif
