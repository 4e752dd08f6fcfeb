/* SPDX-License-Identifier: Apache-2.0
 *
 * step_kinds.h: the steps that stand for the program, if operators were recorded in only some of its steps. Recording
 * them makes a step longer, so durations, outliers and recurring events are taken from steps of one kind.
 *
 * The program is the steps without operators if a job has at least three of them, not counting its first three steps,
 * and other steps with operators. Otherwise it is all steps. A step of the job is without operators if it is so in all
 * ranks: one rank that records makes the others wait.
 *
 * Phases that the program marks are taken from these steps, too. Phases inferred from operators are taken from the
 * steps with operators.
 */
#ifndef ANALYSIS_STEP_TIMES_STEP_KINDS_H
#define ANALYSIS_STEP_TIMES_STEP_KINDS_H

#include "analysis/step_times/step_times.h"

#define STEP_KINDS_LEAST 3 /* least number of steps of a kind for any statement about it */

/* Returns true if no operators were recorded in any part of the step. */
static inline bool step_is_plain(const struct model_step *step)
{
	return !step->has_detail && !step->has_any_detail;
}

/* Marks phases as unknown in steps without the operators from which phases of other steps are inferred. Call it before
 * the job's steps are filled. */
void step_kinds_drop_phases(struct step_times *times, const struct model *model);
/* Marks the steps that are the program. Call it after the job's steps are filled. */
void step_kinds_find(struct step_times *times, const struct model *model);

/* Returns the number of measured steps of all processes: the sums in tables of operators cover these. */
uint32_t step_kinds_measured(const struct step_times *times);

/* If a budget chose the steps with operators, tables of operators are scaled to the run. Values from a chosen step are
 * multiplied by step_time.weight, the number of steps that it stands for. If the user chose the steps, tables hold the
 * recorded values.
 *
 * - Within a process, each stretch of 16 steps is represented by its own chosen steps. If none was chosen, the stretch
 *   is joined with the next ones until one was. A budget changes its rate while the program runs, and ranks choose
 *   differently.
 * - The first three steps of a process stand only for themselves: their choice was not random, and they are unlike all
 *   others.
 * - Three and more chosen steps in a row, where the other steps are chosen more rarely, stand only for themselves: the
 *   user asked for them.
 * - A row seen in fewer than three of the chosen steps is not multiplied, because an event of once an epoch may be in
 *   any of them or not. Its sums are lower bounds.
 * - Values that are known for all steps are not multiplied.
 * - With fewer than three chosen steps nothing is multiplied.
 *
 * A row has one factor, the mean weight of its calls. So the number of calls is that of the run, and times are this
 * number times the mean time of a call.
 *
 *     struct step_sightings seen = {0};                             // of each row to be
 *     if (step_times_measures(times, step)) {
 *             step_kinds_sight(&seen, times, step, 1);
 *             *(step_kinds_is_sampled(times, step) ? &sampled : &certain) += ...;
 *     }
 *     double factor = step_kinds_factor(times, &seen);
 *     value = certain + factor * sampled;
 */
struct step_sightings {
	uint32_t steps[STEP_KINDS_LEAST]; /* 1 + index of the job's step, or of the process's */
	double amount, weighted;          /* calls in sampled steps, and the same with their weights */
};
/* amount: number of calls in a step with this number and weight. */
void step_sightings_add(struct step_sightings *seen, uint32_t number, double amount, double weight);
void step_sightings_add_all(struct step_sightings *seen, const struct step_sightings *more);
/* Returns the mean weight, or 1 for a row that was seen in too few steps. */
double step_sightings_factor(const struct step_sightings *seen);
/* Sets the cell that says whether the row's sums are lower bounds: the row was seen in sampled steps, but in too few.
 * The column stays hidden until a row has lower bounds. */
void step_sightings_set_least(struct table *table, int row, int column, const struct step_sightings *seen,
                              double factor);
/* Returns the number of such rows as a text, "; 3 rows ..."; "" if there are none. */
const char *step_sightings_note(const struct table *table, int column, struct arena *arena);

void step_kinds_weigh(struct step_times *times, const struct model *model); /* needs is_scaled */
static inline bool step_kinds_is_sampled(const struct step_times *times, int32_t step)
{
	return step >= 0 && times->steps[step].is_sampled;
}
void step_kinds_sight(struct step_sightings *seen, const struct step_times *times, int32_t step, double amount);
double step_kinds_factor(const struct step_times *times, const struct step_sightings *seen);
/* Adds the sampled value times the factor. */
void step_kinds_join(int64_t *certain, int64_t sampled, double factor);
/* Returns the estimated duration of the step and of the steps that it stands for. */
double step_kinds_dur_ns(const struct step_times *times, uint32_t step);
/* Returns the number of steps, of all processes, that the sums in tables of operators cover. */
double step_kinds_sum_steps(const struct step_times *times);
#define STEP_KINDS_LEAST_COLUMN                                                                                                      \
	{                                                                                                                            \
		.name = "is_least", .title = "at least", .type = TABLE_BOOL, .role = ROLE_EVIDENCE,                                  \
		.definition =                                                                                                        \
			"the sums are lower bounds: operators were recorded in only some steps, and the row, seen in one or two of " \
			"them, is not multiplied",                                                                                   \
		.is_hidden = true                                                                                                    \
	}
void step_kinds_set_least(struct table *table, int row, int column, const struct step_times *times,
                          const struct step_sightings *seen);
/* Adds a note on the number of steps that the table covers. Call it after the last row and before other notes. */
void step_kinds_note_sums(struct table *table, const struct step_times *times, int least_column);
/* Returns a note on the number of the job's steps that have operators; NULL: all have, or there are no steps. */
const char *step_kinds_operators_note(const struct step_times *times, struct arena *arena);
/* Returns true if the step shows how ranks share their time. Steps with known phases in all ranks do; if there are no
 * such steps, all complete ones do. */
bool step_kinds_tells_ranks(const struct step_times *times, uint32_t step);
/* Return whether the operators of the step (-1: no step) were recorded in all ranks, whether such a step stands for
 * others, and for how many on average. */
bool step_kinds_is_whole(const struct step_times *times, int32_t step);
bool step_kinds_is_sampled_job(const struct step_times *times, int32_t step);
double step_kinds_job_factor(const struct step_times *times);
void step_kinds_sight_job(struct step_sightings *seen, const struct step_times *times, int32_t step);
/* Returns a note on the number of steps with operators in all ranks; NULL: all. */
const char *step_kinds_whole_note(const struct step_times *times, struct arena *arena);
/* Return which of the job's steps a table covers, and how long the others take; NULL: it covers all of them. For
 * durations, and for phases. */
const char *step_kinds_note(const struct step_times *times, struct arena *arena);
const char *step_kinds_phases_note(const struct step_times *times, struct arena *arena);

#endif
