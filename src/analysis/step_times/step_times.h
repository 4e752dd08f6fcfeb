/* SPDX-License-Identifier: Apache-2.0
 *
 * step_times.h: the duration of each step and of its phases, computed once and read by several analyses.
 *
 * Phases nest per thread; only those on the thread that marks the steps count. An instant belongs to the innermost
 * open phase, or to "other" if no phase is open, so the parts of a step sum exactly to its duration. A step is
 * complete if its end was recorded; only complete steps enter statistics.
 *
 * Recording operators costs time. So if some steps have operators and others do not, the steps without are the
 * program: step time, percentiles, outliers and rates cover these, see step_kinds.h. Times of operators come from the
 * steps that have them.
 *
 * A step is measured if it is selected and complete, and its operations were recorded throughout. Tables add up the
 * spans of measured steps, and take shares of their durations. If no step is all of that (a run that died in its first
 * step), unfinished ones are measured up to the last known instant.
 *
 * Inferred phases are known only where operators are. In other steps, and in steps whose operators were removed again,
 * the parts of a step are unknown. In the latter case the time between such steps is not divided either.
 *
 * If a host runs ahead of its device, its own durations tell when it waited. The step time is that of the device then:
 * step time, percentiles, outliers and comparisons use the steps of the device, see device_lengths.h. Phases are parts of
 * the host's durations.
 *
 * A job's step consists of the steps with the same number in all its ranks, each value the mean over them. So the
 * parts of a job's step, and the means over steps, still sum. Ranks are the trainers that mark steps. The processes
 * that they fork or start are not ranks, unless no other process marks steps.
 *
 *     struct step_times times;
 *     step_times_init(&times, &context);
 *     for (uint32_t i = 0; i < times.count; i++)      // like model->steps
 *             if (times.steps[i].is_selected) ...
 *     step_times_release(&times);
 */
#ifndef ANALYSIS_STEP_TIMES_STEP_TIMES_H
#define ANALYSIS_STEP_TIMES_STEP_TIMES_H

#include "analysis/analysis.h"
#include "analysis/ranks/communication_waits.h"

#define PHASE_COUNT 8
#define PHASE_OTHER 0 /* outside all phases; 1..7 are enum stepscope_phase */

struct step_time {
	bool is_selected; /* by --steps */
	bool is_complete;
	bool is_measured;
	bool has_rare;   /* like is_measured, for rare events: also set in steps without operators */
	bool is_sampled; /* measured, and it stands for steps without operators, see step_kinds_factor() */
	double weight;   /* number of steps that it stands for, with itself; 1 if it is not sampled */
	bool is_program; /* selected, complete, and of the kind used for durations */
	bool has_phases; /* phase_ns is known, and the step is of the kind used for phases */
	bool knows_all;  /* phase_ns is known, whatever the kind of the step */
	bool has_calls;  /* not knows_all, but the time in calls is known: data, backward, optimizer, checkpoint */
	bool is_early;   /* one of the first three of its process */
	uint32_t job;    /* index into step_times.job for a complete selected step of a rank; otherwise MODEL_NONE */
	int64_t dur_ns;
	int64_t length_ns; /* of the device if the host runs ahead, see device_lengths.h; otherwise dur_ns */
	int64_t phase_ns[PHASE_COUNT];
};

struct job_step {
	int64_t number;
	uint32_t processes;   /* that completed it */
	uint32_t with_phases; /* of these */
	uint32_t with_calls;  /* of these: has_phases or has_calls */
	uint32_t measured;    /* of these: operators were recorded in all of it */
	uint32_t plain;       /* of these: no operators were recorded in any part of it */
	uint32_t early;       /* of these: one of the first three of its process */
	uint32_t lost;        /* of these: the operators that tell its phases were removed again */
	bool is_program;      /* of the kind used for durations */
	bool has_phases;      /* phase_ns is known in all of them, and the step is of the kind used for phases */
	bool has_calls;       /* not has_phases, but the time in calls is known in all of them */
	double dur_ns, length_ns, phase_ns[PHASE_COUNT];
	double weight;          /* number of steps that it stands for, if it has operators in all ranks */
	double tokens, samples; /* sums over the processes */
	bool has_tokens, has_samples;
	uint32_t with_cpu; /* processes with known CPU time of the thread */
	double cpu_ns;     /* mean over them */
	double running_ns; /* mean of step_running_ns() over them */
};

/* The selected steps of a process and the time between them, which together make a whole. */
struct step_span {
	uint32_t process;
	int64_t first_ns, last_ns; /* start of the first and end of the last selected step */
	int64_t steps_ns;          /* in steps */
	int64_t missed_ns;         /* between steps, where numbers show that a profiler left steps out */
	int64_t lost_ns;           /* between steps, where phases are unknown: up to lost_until_ns */
	int64_t lost_until_ns;
	int64_t last_number;
	int64_t phase_ns[PHASE_COUNT]; /* between steps, where phases are known: by phase, [0] outside phases */
	uint32_t complete, open;
	uint32_t gaps; /* number of gaps between steps that phase_ns covers */
	bool is_rank;
	bool infers_phases;     /* some phases are inferred, not marked */
	bool has_waits_in_part; /* no_waits is set, but the waits in steps with operators are known */
	const char *no_waits;   /* why its waits for collectives are unknown; NULL: they are known */
};

/* How values of the steps with operators stand for the run. */
struct step_scale {
	bool is_wanted;  /* sums in tables of operators are multiplied to the run */
	bool knows_rare; /* rare events are known in all complete steps */
	double factor;   /* mean factor of values in sampled steps; 1: nothing is multiplied */
};

struct step_times {
	struct storage *storage; /* of the model, for data that grows with the model */
	struct step_time *steps; /* like model->steps */
	uint32_t count;
	uint32_t selected, complete, incomplete;
	struct job_step *job; /* complete selected steps in the order of their numbers */
	uint32_t job_count;
	uint32_t job_program; /* of these: the program */
	uint32_t job_whole;   /* of these: with operators in all ranks */
	bool has_job_phases;  /* some of the job's steps have phases */
	struct step_scale scale;
	bool is_of_inputs;       /* the measured steps are those with inputs: see input_steps.h */
	bool by_budget;          /* a budget, not the user, chose the steps with operators */
	bool has_device_lengths; /* length_ns of some steps is not their duration */
	bool has_plain;          /* durations are those of steps without operators, because other steps have them */
	/* numbers of selected steps of the job: all; with detail in any rank; without an end in any rank */
	uint32_t job_selected, job_detailed, job_incomplete;
	int64_t job_first, job_last; /* smallest and largest of their numbers, if there are any */
	struct step_span *spans;     /* processes with selected steps, in the order of the model */
	uint32_t span_count;
	struct communication_waits waits; /* of the threads that carry steps */
	const char *unseen;               /* why a process was not recorded, from `stepscope run`; NULL: unknown */
	const char *stepless;             /* why the run has no steps, if it has none */
};

void step_times_init(struct step_times *times, struct analysis_context *context);
void step_times_release(struct step_times *times);

/* Returns true if spans that start in this step (-1: outside steps) count. If no steps are marked, all count. */
static inline bool step_times_measures(const struct step_times *times, int32_t step)
{
	return !times->count || (step >= 0 && times->steps[step].is_measured);
}

/* Returns true if rare events that start in this step count, see pytorch_is_rare(). */
static inline bool step_times_knows_rare(const struct step_times *times, int32_t step)
{
	return !times->count || (step >= 0 && times->steps[step].has_rare);
}

/* Return the step of the process that started last at the instant or before; NULL: none. For step_times_step_at() the
 * step must not have ended before the instant. */
const struct model_step *step_times_step_before(const struct model *model, uint32_t process, int64_t time_ns);
const struct model_step *step_times_step_at(const struct model *model, uint32_t process, int64_t time_ns);

/* Returns, by track, whether it stands for a thread that carries steps. Other lanes of a thread show the same time
 * again. The caller frees it. */
bool *step_times_tracks(const struct model *model);

/* Returns the duration without waits for a processor, if these can be distinguished: if the thread stopped for nothing
 * else. The step must have CPU time. */
static inline int64_t step_running_ns(const struct model_step *step, int64_t dur_ns)
{
	return step->waits ? dur_ns : step->cpu_ns;
}

/* Returns "data", ..., and "other" for 0. */
const char *phase_name(int phase);

/* Returns the recorder's sentence on its capture, from the first process with steps that has one. Without steps it
 * prefers a process that ran operators. NULL: there is no sentence. */
const char *step_times_capture(const struct model *model);

/* Returns why a table of operators is empty: operators were not recorded. Otherwise returns `otherwise`. */
const char *step_times_no_operations(struct analysis_context *context, struct arena *arena, const char *otherwise);
/* Returns true if the phase consists of nothing but calls of the loader, backward(), an optimizer or torch.save. */
bool step_times_is_told_by_calls(int phase);

#define STEP_TIMES_UNTOLD_PHASES "the operators from which phases are inferred were not recorded in it"
#define STEP_TIMES_LOST_PHASES "the operators from which phases are inferred were removed again (keep_size, keep_time)"

#define STEP_TIMES_NO_RANKS                                                                                            \
	"trainings that did not all run at the same time are not ranks of one job, so they "                           \
	"are not compared"
/* Returns why the ranks are not compared with each other: separate trainings, see step_times_trainings(), or the
 * reason of ranks_apart(). */
const char *step_times_ranks_apart(const struct step_times *times, const struct model *model);

/* Returns the number of processes without a rank that carry steps, if they are separate trainings: some had finished
 * all steps, selected or not, before others started. Otherwise 0. */
uint32_t step_times_trainings(const struct step_times *times, const struct model *model);

/* Returns why there are no steps, for tables that need them. */
const char *step_times_empty_reason(const struct step_times *times);
#define STEP_TIMES_OF_DEVICE                                                                                           \
	"the host runs ahead of the device, so these are steps of the device: from the end of its work for the step "  \
	"before to the end of its work for the step; duration_ns of the table steps has the host's"
/* The note of tables that then have a row for the whole trace. */
#define STEP_TIMES_ONE_NOTE "no steps were marked: the whole trace counts as one step"

#endif
