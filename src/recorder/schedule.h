/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.h: decides which steps are recorded. Pure: no clock, no state except its counters. Callers hold the
 * session's lock of steps.
 */
#ifndef RECORDER_SCHEDULE_H
#define RECORDER_SCHEDULE_H

#include "format/own_facts.h"
#include "recorder/options.h"

#include <stepscope/format.h>

/* Returns the action for the index-th step of the process (0-based count of started steps), which the program numbers
 * `number`. Schedules count steps, as torch.profiler does; lists of steps use the program's numbers. */
enum stepscope_capture schedule_action(const struct record_options *options, int64_t index, int64_t number);

/* Returns the action for the time before the first step. If the first step is recorded, recording starts at once. */
enum stepscope_capture schedule_before_first(const struct record_options *options);

enum cost_known {
	COST_UNKNOWN,
	COST_ESTIMATED, /* approximate */
	COST_BELOW,     /* an upper bound */
	COST_MEASURED
};

/* Progress of the run, for the closing line. Starts as {0}. */
struct schedule_progress {
	int64_t steps_begun;
	int64_t steps_recorded; /* RECORD or SAVE */
	int64_t steps_with_inputs,
		last_with_inputs; /* recorded steps that have inputs of operators, and the number of the last one */
	int64_t steps_before;     /* steps started before the first recorded one */
	int64_t first_recorded, last_recorded; /* lowest and highest number of recorded steps */
	int64_t first_number, last_number;     /* lowest and highest number of all steps */
	/* Set by the session: ended steps that are counted although no schedule depends on the count. */
	int64_t steps_noted;
	bool has_uncounted; /* likewise: more steps may have ended than were counted */
	/* Likewise: a profiler in the program that marks steps, which the report takes as steps; NULL: no such
	 * profiler. */
	const char *profiler;
	/* Set by the session: the budget gives operators to one in `every` steps; 0: there is no budget. */
	int64_t every;
	/* With `every`: in some phases of the run it was one in `least_every` steps, and `every` is the largest; 0: N
	 * was constant. */
	int64_t least_every;
	/* Likewise: one in `every_inputs` steps also has inputs; 0: every step with operators has them. */
	int64_t every_inputs;
	/* With `every`: reliability of cost_ratio, the cost of operators in all steps. */
	enum cost_known cost;
	double cost_ratio;
	int64_t earlier, earlier_begun, earlier_recorded; /* earlier recordings of this process, and their steps */
	/* Result of the recordings so far; set by the session, from schedule_captured(). */
	enum captured captured;
	/* Set by the session: how steps were counted that the program did not mark; NULL: they were not counted. */
	const char *counted_by;
	int64_t counted_before; /* steps counted before the program marked the first one */
	/* Set by the session: who records operators without calls from the program ("PyTorch"); NULL: no observer. */
	const char *observer;
	bool has_operators, has_ranges; /* set by the session: some were recorded */
	bool is_left_out;               /* set by the session: the selection of ranks left this process out */
	int32_t rank;                   /* with is_left_out */
};
void schedule_note(struct schedule_progress *progress, enum stepscope_capture action, int64_t number);
/* Notes that the last noted step also has inputs. */
void schedule_note_inputs(struct schedule_progress *progress, int64_t number);

/* For a program that starts to mark its steps after steps were counted: starts again from 0. */
void schedule_forget_counted(struct schedule_progress *progress);

/* Takes the last noted step back: it does not count. */
void schedule_take_back(struct schedule_progress *progress, int64_t number);

/* Starts the counters for the next recording of the same process in the same file. */
void schedule_restart(struct schedule_progress *progress);

/* Returns the best result of all recordings of the process, including this one. */
enum captured schedule_captured(const struct record_options *options, const struct schedule_progress *progress);

/* Returns true if operators of only some of the counted steps were recorded, because the budget chose them. */
bool schedule_is_part(const struct record_options *options, const struct schedule_progress *progress);

/* Writes one line about the capture, or about the reason why nothing was captured and what to change ("captured no
 * operators: the schedule waits for 50 steps and the program ended after 12; ..."). Returns its length; the line is cut
 * if it does not fit. */
size_t schedule_describe(const struct record_options *options, const struct schedule_progress *progress, char *out,
                         size_t bytes);

#endif
