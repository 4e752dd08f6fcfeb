/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.h: which steps are recorded. Pure: no clock, no state but its own counters. Called under the session's step lock.
 */
#ifndef RECORDER_SCHEDULE_H
#define RECORDER_SCHEDULE_H

#include "format/own_facts.h"
#include "recorder/options.h"

#include <stepscope/format.h>

/* The action for the index-th step of the process (0-based count of steps begun) whose own number is `number`: schedules
 * count steps (as torch.profiler does), lists of steps go by number. */
enum stepscope_capture schedule_action(const struct record_options *options, int64_t index, int64_t number);

/* Before the first step: what applies to the time before it. Schedules that record their first step record from the start. */
enum stepscope_capture schedule_before_first(const struct record_options *options);

enum cost_known {
	COST_UNKNOWN,
	COST_ESTIMATED, /* roughly */
	COST_BELOW,     /* it is a bound */
	COST_MEASURED
};

/* How the run went, for the line at exit. Starts as {0}. */
struct schedule_progress {
	int64_t steps_begun;
	int64_t steps_recorded; /* RECORD or SAVE */
	int64_t steps_with_inputs,
		last_with_inputs;              /* of these, with inputs of operators; the number of the last one */
	int64_t steps_before;                  /* steps begun before the first recorded one */
	int64_t first_recorded, last_recorded; /* the lowest and the highest number of those */
	int64_t first_number, last_number;     /* of all */
	int64_t steps_noted;  /* set by the session: ended, of those that are counted where no schedule depends on it */
	bool has_uncounted;   /* likewise: there may be more than those */
	const char *profiler; /* likewise: of the program's own, that marks steps which the report takes; NULL: none */
	int64_t every; /* set by the session: by the budget one of so many steps has operators; 0: there is no budget */
	int64_t least_every; /* with `every`: in other steps it was one of so many, and `every` is the most; 0: in none */
	int64_t every_inputs; /* likewise: one of so many has their inputs, too; 0: as many as have operators */
	enum cost_known cost; /* with `every`: what is known of cost_ratio, which operators in all steps would cost */
	double cost_ratio;
	int64_t earlier, earlier_begun,
		earlier_recorded; /* recordings of the process before this one, and their steps */
	enum captured captured;   /* by these; set by the session, from schedule_captured() */
	const char *
		counted_by; /* set by the session: how steps were counted that the program did not mark; NULL: they were not */
	int64_t counted_before; /* so many of them before it marked the first one itself */
	const char *observer;   /* set by the session: who records operators by itself ("PyTorch"); NULL: nobody */
	bool has_operators, has_ranges; /* set by the session: some were named */
	bool is_left_out;               /* set by the session: the selection of ranks left this process out */
	int32_t rank;                   /* with is_left_out */
};
void schedule_note(struct schedule_progress *progress, enum stepscope_capture action, int64_t number);
/* The step that was noted last has inputs, too. */
void schedule_note_inputs(struct schedule_progress *progress, int64_t number);

/* The program marks its steps after all, and counts from 0. */
void schedule_forget_counted(struct schedule_progress *progress);

/* The step that was noted last does not count. */
void schedule_take_back(struct schedule_progress *progress, int64_t number);

/* The next recording of the same process in the same file. */
void schedule_restart(struct schedule_progress *progress);

/* By all recordings of the process, up to this one. */
enum captured schedule_captured(const struct record_options *options, const struct schedule_progress *progress);

/* One line in plain words: what was captured, or why nothing was and what would have been needed ("captured no operators:
 * the schedule waits for 50 steps and the program ended after 12; ..."). Returns its length; cut when it does not fit. */
size_t schedule_describe(const struct record_options *options, const struct schedule_progress *progress, char *out,
                         size_t bytes);

#endif
