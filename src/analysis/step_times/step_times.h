/* SPDX-License-Identifier: Apache-2.0
 *
 * step_times.h: how long each step took and which part of it each phase, found once and read by several analyses.
 *
 * Phases nest per thread; only those on the thread that marks the steps count. An instant belongs to the innermost phase
 * open then, to "other" when none is, so the parts of a step sum to its duration exactly. A step is complete when its end
 * was recorded; only complete steps enter statistics.
 *
 * Recording operators costs time. So the steps without operators are the program, where some have them and others have not: step time,
 * percentiles, outliers and rates are of these, see step_kinds.h. What lies in operators is of the steps that have them.
 *
 * A step is measured when it is selected and complete, and its operations were recorded in all of it: these are the steps whose spans
 * are added up, and whose durations shares are of. Where no step is all of that (a run that died in its first), unfinished ones are
 * measured up to the last known instant.
 *
 * Phases that are inferred are known where operators are: in the other steps, and where operators were removed again, the parts of a step are
 * not known, nor, in the latter, what lies between them.
 *
 * A job's step: the steps with the same number in all its ranks, each with the mean over them; so the parts of a
 * job's step, and the means over steps, still sum. Ranks are the trainers that mark steps; what they fork or start
 * themselves is none, unless nothing else marks steps.
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
	bool has_rare;   /* as is_measured, of what happens rarely: in steps without operators, too */
	bool is_sampled; /* measured, and it stands for steps without operators, see step_kinds_factor() */
	double weight;   /* for so many, with itself; 1 where it is not sampled */
	bool is_program; /* selected, complete, and of the kind that durations are of */
	bool has_phases; /* phase_ns is known, and the step is of the kind that phases are of */
	bool knows_all;  /* phase_ns is known, of whatever kind the step is */
	bool has_calls;  /* not knows_all: but the time in calls is, of data, backward, optimizer and checkpoint */
	bool is_early;   /* one of the first three of its process */
	uint32_t job;    /* of step_times.job, of a complete selected step of a rank; MODEL_NONE: it is none */
	int64_t dur_ns;
	int64_t phase_ns[PHASE_COUNT];
};

struct job_step {
	int64_t number;
	uint32_t processes;   /* that completed it */
	uint32_t with_phases; /* of these */
	uint32_t with_calls;  /* of these: has_phases, or has_calls */
	uint32_t measured;    /* of these: operators were recorded in all of it */
	uint32_t plain;       /* of these: no operators were recorded in any of it */
	uint32_t early;       /* of these: one of the first three of its process */
	uint32_t lost;        /* of these: phases would be inferred from what was removed again */
	bool is_program;      /* of the kind that durations are of */
	bool has_phases;      /* phase_ns is known of all of them, and it is a step of the kind that phases are of */
	bool has_calls;       /* not has_phases: but the time in calls is, in all of them */
	double dur_ns, phase_ns[PHASE_COUNT];
	double weight;          /* for so many steps it stands, where it has operators in all ranks */
	double tokens, samples; /* sums over the processes */
	bool has_tokens, has_samples;
	uint32_t with_cpu; /* processes whose thread's CPU time is known */
	double cpu_ns;     /* mean over them */
	double running_ns; /* the same of step_running_ns() */
};

/* One stretch of a process, so that steps and what lies between them make a whole. */
struct step_span {
	uint32_t process;
	int64_t first_ns, last_ns; /* start of the first and end of the last selected step */
	int64_t steps_ns;          /* inside them */
	int64_t missed_ns;         /* between them, where numbers say that a profiler left steps out */
	int64_t lost_ns;           /* between them, where phases are not known: up to lost_until_ns */
	int64_t lost_until_ns;
	int64_t last_number;
	int64_t phase_ns[PHASE_COUNT]; /* between them, where they are known: in phases, [0] outside phases */
	uint32_t complete, open;
	uint32_t gaps; /* between one step and the next one: those that phase_ns is of */
	bool is_rank;
	bool infers_phases;     /* some are not marked */
	bool has_waits_in_part; /* no_waits, but in the steps with operators it is known */
	const char *no_waits;   /* why it is not known how long it waits for collectives; NULL: it is */
};

struct step_times {
	struct storage *storage; /* of the model, for all that grows with it */
	struct step_time *steps; /* like model->steps */
	uint32_t count;
	uint32_t selected, complete, incomplete;
	struct job_step *job; /* complete selected steps in order of their number */
	uint32_t job_count;
	uint32_t job_program; /* of these, those that are the program */
	uint32_t job_whole;   /* of these, those with operators in all ranks */
	bool has_job_phases;  /* in any of the job's steps */
	bool is_scaled;       /* then what tables of operators sum up is multiplied to the run */
	double factor;        /* by so much on the mean, of what lies in sampled steps; 1: nothing is */
	bool knows_rare;      /* what happens rarely is known of all complete steps */
	bool is_of_inputs;    /* the measured steps are those with inputs: see input_steps.h */
	bool by_budget;       /* which steps have operators was chosen by what they cost, not asked for */
	bool has_plain;       /* durations are of steps without operators, since others have them */
	/* of the job's selected steps, each counted once: all; with detail in any rank; without an end in any rank */
	uint32_t job_selected, job_detailed, job_incomplete;
	int64_t job_first, job_last; /* smallest and largest number of them, when there are any */
	struct step_span *spans;     /* processes that have selected steps, in the order of the model */
	uint32_t span_count;
	struct communication_waits waits; /* of the threads that carry steps */
	const char *
		unseen; /* why a process of the program was not recorded, as `stepscope run` says; NULL: it says nothing */
	const char *stepless; /* why it has no steps, if it has none */
};

void step_times_init(struct step_times *times, struct analysis_context *context);
void step_times_release(struct step_times *times);

/* Does what starts in this step (-1: in none) count? All does when nothing marks steps. */
static inline bool step_times_measures(const struct step_times *times, int32_t step)
{
	return !times->count || (step >= 0 && times->steps[step].is_measured);
}

/* The same of what happens rarely, see pytorch_is_rare(). */
static inline bool step_times_knows_rare(const struct step_times *times, int32_t step)
{
	return !times->count || (step >= 0 && times->steps[step].has_rare);
}

/* The step of the process that began last at the instant or before; NULL: none. step_at: which has not ended before it, either. */
const struct model_step *step_times_step_before(const struct model *model, uint32_t process, int64_t time_ns);
const struct model_step *step_times_step_at(const struct model *model, uint32_t process, int64_t time_ns);

/* By track: does it stand for a thread that carries steps? Other lanes show the same time again. free() it. */
bool *step_times_tracks(const struct model *model);

/* The duration without waits for a processor, where they can be told from others: when the thread stopped for nothing else. Of steps
 * with CPU time. */
static inline int64_t step_running_ns(const struct model_step *step, int64_t dur_ns)
{
	return step->waits ? dur_ns : step->cpu_ns;
}

/* "data", ..., and "other" for 0. */
const char *phase_name(int phase);

/* What the recorder said that it captured: in the first process with steps that said it; without steps in the first that ran operators.
 * NULL: nothing was said. */
const char *step_times_capture(const struct model *model);

/* Why a table of what lies in operators is empty, or `otherwise`: nothing is said of steps in which none were recorded. */
const char *step_times_no_operations(struct analysis_context *context, struct arena *arena, const char *otherwise);
/* A call of the loader, of backward(), of an optimizer, of torch.save is all there is of this phase. */
bool step_times_is_told_by_calls(int phase);

#define STEP_TIMES_UNTOLD_PHASES "the operators that tell phases were not recorded in it"
#define STEP_TIMES_LOST_PHASES "the operators that tell phases were removed again: keep_size, keep_time"

#define STEP_TIMES_NO_RANKS "trainings that are not all at the same time are no ranks of one job: they are not compared"
/* Why the ranks are not compared with each other: that, see step_times_trainings(), or see ranks_apart(). */
const char *step_times_ranks_apart(const struct step_times *times, const struct model *model);

/* How many processes without a rank carry steps, when they are no job: some had taken all their steps, selected or not, before others took
 * their first; 0: no such. */
uint32_t step_times_trainings(const struct step_times *times, const struct model *model);

/* Why there are no steps, for tables that need them. */
const char *step_times_empty_reason(const struct step_times *times);
/* The note of tables that have a row for the whole trace then. */
#define STEP_TIMES_ONE_NOTE "no steps were marked: the whole trace counts as one"

#endif
