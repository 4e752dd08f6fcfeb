/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.c: the arithmetic of torch.profiler.schedule() and of lists of steps, and the closing line.
 */
#include "recorder/schedule.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FEW_STEPS 3      /* fewer steps with operators give no figures */
#define EARLIER_MOST 100 /* each sentence is a name in the table, so their number must be bounded */

/* ---- which steps ---- */

/* Does the same as torch's schedule_fn. The resolver keeps all numbers below 10^15, so no sum overflows. */
static enum stepscope_capture schedule_cycle(const struct record_options *options, int64_t index)
{
	int64_t length = options->wait + options->warmup + options->active;
	int64_t within;

	if (index < options->skip_first)
		return STEPSCOPE_CAPTURE_NONE;
	index -= options->skip_first;
	if (options->skip_first_wait != 0)
		index += options->wait;
	if (options->repeat > 0 && index / length >= options->repeat)
		return STEPSCOPE_CAPTURE_NONE;
	within = index % length;
	if (within < options->wait)
		return STEPSCOPE_CAPTURE_NONE;
	if (within < options->wait + options->warmup)
		return STEPSCOPE_CAPTURE_WARMUP;
	return within < length - 1 ? STEPSCOPE_CAPTURE_RECORD : STEPSCOPE_CAPTURE_SAVE;
}

static enum stepscope_capture listed(const struct record_options *options, int64_t number)
{
	for (int i = 0; i < options->step_range_count; i++) {
		if (number == options->steps[i].last)
			return STEPSCOPE_CAPTURE_SAVE;
		if (number >= options->steps[i].first && number < options->steps[i].last)
			return STEPSCOPE_CAPTURE_RECORD;
	}
	return STEPSCOPE_CAPTURE_NONE;
}

enum stepscope_capture schedule_action(const struct record_options *options, int64_t index, int64_t number)
{
	switch (options->mode) {
	case RECORD_ALWAYS:
		return STEPSCOPE_CAPTURE_RECORD;
	case RECORD_SCHEDULE:
		return schedule_cycle(options, index);
	case RECORD_STEPS:
		return listed(options, number);
	case RECORD_OFF:
		break;
	}
	return STEPSCOPE_CAPTURE_NONE;
}

enum stepscope_capture schedule_before_first(const struct record_options *options)
{
	/* a list applies before the first step only if it starts with the lowest possible number */
	enum stepscope_capture action = schedule_action(options, 0, 0);

	return action == STEPSCOPE_CAPTURE_SAVE ? STEPSCOPE_CAPTURE_RECORD : action;
}

/* Widens a range by a number. Programs may mark steps in any order of numbers. */
static void schedule_widen(int64_t *first, int64_t *last, int64_t number, bool is_new)
{
	*first = is_new || number < *first ? number : *first;
	*last = is_new || number > *last ? number : *last;
}

void schedule_note(struct schedule_progress *progress, enum stepscope_capture action, int64_t number)
{
	schedule_widen(&progress->first_number, &progress->last_number, number, !progress->steps_begun);
	if (action == STEPSCOPE_CAPTURE_RECORD || action == STEPSCOPE_CAPTURE_SAVE) {
		if (!progress->steps_recorded)
			progress->steps_before = progress->steps_begun;
		schedule_widen(&progress->first_recorded, &progress->last_recorded, number, !progress->steps_recorded);
		progress->steps_recorded++;
	}
	progress->steps_begun++;
}

void schedule_note_inputs(struct schedule_progress *progress, int64_t number)
{
	progress->steps_with_inputs++;
	progress->last_with_inputs = number;
}

void schedule_take_back(struct schedule_progress *progress, int64_t number)
{
	if (!progress->steps_begun || progress->last_number != number)
		return;
	progress->steps_begun--;
	progress->last_number = number - 1;
	if (progress->steps_with_inputs && progress->last_with_inputs == number) {
		progress->steps_with_inputs--;
		progress->last_with_inputs = number - 1;
	}
	if (progress->steps_recorded && progress->last_recorded == number) {
		progress->steps_recorded--;
		progress->last_recorded = number - 1;
	}
}

enum captured schedule_captured(const struct record_options *options, const struct schedule_progress *progress)
{
	bool is_recorded = schedule_before_first(options) == STEPSCOPE_CAPTURE_RECORD && !progress->is_left_out;
	enum captured captured = CAPTURED_NOTHING;

	if (progress->steps_begun || progress->steps_noted || progress->has_uncounted)
		captured = CAPTURED_STEPS;
	else if (is_recorded && (progress->has_operators || progress->has_ranges))
		captured = CAPTURED_DETAIL;
	return captured > progress->captured ? captured : progress->captured;
}

/* ---- the sentence ---- */

struct sentence {
	char *out;
	size_t bytes, length;
};

__attribute__((format(printf, 2, 3))) static void say(struct sentence *sentence, const char *format, ...)
{
	size_t room = sentence->bytes - sentence->length;
	va_list arguments;
	int length;

	if (!room)
		return;
	va_start(arguments, format);
	length = vsnprintf(sentence->out + sentence->length, room, format, arguments);
	va_end(arguments);
	if (length > 0)
		sentence->length += (size_t)length < room ? (size_t)length : room - 1;
}

static const char *schedule_plural(int64_t count)
{
	return count == 1 ? "" : "s";
}

/* "2-5", "-2 to 5" */
static void say_range(struct sentence *sentence, int64_t first, int64_t last)
{
	say(sentence, "%" PRId64 "%s%" PRId64, first, first < 0 ? " to " : "-", last);
}

static void say_steps(struct sentence *sentence, int64_t first, int64_t last)
{
	if (first == last) {
		say(sentence, "step %" PRId64, first);
		return;
	}
	say(sentence, "steps ");
	say_range(sentence, first, last);
}

static bool is_one_step(const struct record_options *options)
{
	return options->step_range_count == 1 && options->steps[0].first == options->steps[0].last;
}

static void say_list(struct sentence *sentence, const struct record_options *options)
{
	say(sentence, "%s ", is_one_step(options) ? "step" : "steps");
	for (int i = 0; i < options->step_range_count; i++) {
		const struct step_range *range = &options->steps[i];

		say(sentence, "%s%" PRId64, i ? "," : "", range->first);
		if (range->last == INT64_MAX)
			say(sentence, "-");
		else if (range->last > range->first)
			say(sentence, "-%" PRId64, range->last);
	}
}

/* Returns the number of steps that a list asks for, or 0 if it has no end. */
static int64_t steps_asked(const struct record_options *options)
{
	int64_t asked = 0;

	for (int i = 0; i < options->step_range_count; i++) {
		if (options->steps[i].last == INT64_MAX)
			return 0;
		asked += options->steps[i].last - options->steps[i].first + 1;
	}
	return asked;
}

/* Describes the steps that were not recorded: their number and position. */
static void say_others(struct sentence *sentence, const struct schedule_progress *progress)
{
	int64_t others = progress->steps_begun - progress->steps_recorded;
	int64_t before = progress->steps_before;
	bool is_one_piece = progress->last_recorded - progress->first_recorded + 1 == progress->steps_recorded;

	if (!others)
		return;
	if (!is_one_piece)
		say(sentence, "; the other %" PRId64 " step%s", others, schedule_plural(others));
	else if (before)
		say(sentence, "; %" PRId64 " step%s before %s", before, schedule_plural(before),
		    progress->steps_recorded == 1 ? "it" : "them");
	else
		say(sentence, "; %" PRId64 " step%s after %s", others, schedule_plural(others),
		    progress->steps_recorded == 1 ? "it" : "them");
	if (is_one_piece && before && others > before)
		say(sentence, " and %" PRId64 " after", others - before);
	say(sentence, " with steps and phases only");
}

static void say_captured(struct sentence *sentence, const struct record_options *options,
                         const struct schedule_progress *progress)
{
	int64_t recorded = progress->steps_recorded;

	say(sentence, "captured ");
	if (progress->last_recorded - progress->first_recorded + 1 != recorded)
		say(sentence, "%" PRId64 " of the ", recorded);
	say_steps(sentence, progress->first_recorded, progress->last_recorded);
	if (progress->last_recorded - progress->first_recorded + 1 == recorded && recorded > 1)
		say(sentence, " (%" PRId64 " steps)", recorded);
	say(sentence, " with operators");
	say_others(sentence, progress);
	if (options->mode == RECORD_STEPS && steps_asked(options) > recorded)
		say(sentence, "; asked for were %" PRId64 " steps, the program's last one was %" PRId64,
		    steps_asked(options), progress->last_number);
}

static bool is_waiting(const struct record_options *options)
{
	return options->wait && !options->skip_first_wait;
}

/* Suggests a wait that puts a cycle in the middle of the run, and a list that records the whole run. */
static void say_way_out(struct sentence *sentence, const struct record_options *options,
                        const struct schedule_progress *progress)
{
	int64_t spare = progress->steps_begun - options->warmup - options->active;

	say(sentence, "; use ");
	if (options->mode == RECORD_SCHEDULE && spare >= 0) {
		if (options->skip_first)
			say(sentence, "--skip-first 0 ");
		if (options->profiling_frequency)
			say(sentence, "--profiling-frequency %" PRId64 " ", progress->steps_begun);
		else if (is_waiting(options))
			say(sentence, "--wait %" PRId64 " ", spare / 2);
		say(sentence, "or ");
	}
	say(sentence, "--steps %" PRId64, progress->first_number);
	if (progress->last_number > progress->first_number)
		say(sentence, "-%" PRId64, progress->last_number);
}

static void say_schedule(struct sentence *sentence, const struct record_options *options)
{
	const char *joint = "";

	say(sentence, "the schedule ");
	if (options->skip_first) {
		say(sentence, "skips %" PRId64 " step%s", options->skip_first, schedule_plural(options->skip_first));
		joint = options->warmup && is_waiting(options) ? ", " : " and ";
	}
	if (is_waiting(options)) {
		say(sentence, "%swaits for %" PRId64 " step%s", joint, options->wait, schedule_plural(options->wait));
		joint = " and ";
	}
	if (options->warmup)
		say(sentence, "%swarms up for %" PRId64, options->skip_first || is_waiting(options) ? joint : "",
		    options->warmup);
	if (options->warmup && !options->skip_first && !is_waiting(options))
		say(sentence, " step%s", schedule_plural(options->warmup));
}

static void say_nothing(struct sentence *sentence, const struct record_options *options,
                        const struct schedule_progress *progress)
{
	int64_t begun = progress->steps_begun;

	if (options->mode == RECORD_STEPS && !options->step_range_count) {
		say(sentence, "captured %" PRId64 " step%s with steps and phases only, as asked", begun,
		    schedule_plural(begun));
		return;
	}
	say(sentence, "captured no operators: ");
	if (options->mode == RECORD_STEPS) {
		say_list(sentence, options);
		say(sentence, " %s asked for and the program's %s ", is_one_step(options) ? "was" : "were",
		    begun == 1 ? "was" : "were");
		say_steps(sentence, progress->first_number, progress->last_number);
	} else {
		say_schedule(sentence, options);
		say(sentence, "%s and the program ended after %" PRId64,
		    options->warmup && (options->skip_first || is_waiting(options)) ? "," : "", begun);
	}
	say_way_out(sentence, options, progress);
}

static const char advice[] = "mark them with stepscope_step_begin() and stepscope_step_end()";

static void say_noted(struct sentence *sentence, const struct schedule_progress *progress)
{
	bool is_counted = progress->steps_noted || progress->has_uncounted;

	if (progress->profiler)
		say(sentence, "the report takes the steps that %s marks in the program", progress->profiler);
	else
		say(sentence, "the program marked no steps");
	if (is_counted)
		say(sentence, "%s infers %s (%" PRId64 " %s by the calls of optimizers%s)",
		    progress->profiler ? ", and" : ", the report", progress->profiler ? "others" : "them",
		    progress->steps_noted, progress->steps_noted == 1 ? "was counted" : "were counted",
		    progress->has_uncounted ? "; those of compiled optimizers are not counted" : "");
	else if (!progress->profiler)
		say(sentence, " and none were counted; the report says what it finds, stepscope.step() marks them");
}

/* For a recording of all steps. */
static void say_no_steps_in_all(struct sentence *sentence, const struct schedule_progress *progress)
{
	const char *what = !progress->has_operators ? "ranges"
	                   : progress->has_ranges   ? "operators and ranges"
	                                            : "operators";

	if (progress->observer && progress->has_operators) {
		say(sentence, "captured the operators of %s; ", progress->observer);
		say_noted(sentence, progress);
	} else if (progress->observer)
		say(sentence, "captured no operators: %s ran none, and the program marked no steps",
		    progress->observer);
	else if (progress->has_operators || progress->has_ranges)
		say(sentence, "the program marked no steps: captured its %s, but not by step; %s", what, advice);
	else
		say(sentence, "the program marked no steps, operators or ranges: %s", advice);
}

static void say_no_steps(struct sentence *sentence, const struct record_options *options,
                         const struct schedule_progress *progress)
{
	if (options->mode == RECORD_STEPS && !options->step_range_count)
		say(sentence, "the program marked no steps: captured phases only, as asked; %s", advice);
	else if (schedule_before_first(options) == STEPSCOPE_CAPTURE_RECORD)
		say_no_steps_in_all(sentence, progress);
	else if (progress->observer)
		say(sentence,
		    "captured no operators: the program marked no steps and %s called no optimizer and computed no gradients; "
		    "%s, or use --steps all",
		    progress->observer, advice);
	else if (options->mode == RECORD_SCHEDULE)
		say(sentence,
		    "captured no operators: the program marked no steps, so the schedule never began; %s, or use "
		    "--steps all",
		    advice);
	else
		say(sentence,
		    "captured no operators: the program marked no steps, so none of those asked for came; %s, "
		    "or use --steps all",
		    advice);
}

/* Describes the earlier recordings of a process that stopped and started again. */
static void say_earlier(struct sentence *sentence, const struct schedule_progress *progress)
{
	int64_t begun = progress->earlier_begun + progress->steps_begun;

	if (!progress->earlier)
		return;
	if (progress->earlier > EARLIER_MOST) {
		say(sentence, "the last of more than %d recordings of this process ", EARLIER_MOST);
		return;
	}
	say(sentence, "in %" PRId64 " recordings of this process captured %" PRId64 " step%s", progress->earlier + 1,
	    begun, schedule_plural(begun));
	say(sentence, ", %" PRId64 " of them with operators; in the last one ",
	    progress->earlier_recorded + progress->steps_recorded);
}

void schedule_restart(struct schedule_progress *progress)
{
	*progress = (struct schedule_progress){
		.earlier = progress->earlier + 1,
		.earlier_begun = progress->earlier_begun + progress->steps_begun,
		.earlier_recorded = progress->earlier_recorded + progress->steps_recorded,
		.captured = progress->captured,
	};
}

void schedule_forget_counted(struct schedule_progress *progress)
{
	*progress = (struct schedule_progress){
		.earlier = progress->earlier,
		.earlier_begun = progress->earlier_begun,
		.earlier_recorded = progress->earlier_recorded,
		.captured = progress->captured,
		.counted_before = progress->steps_begun,
	};
}

static void say_count(struct sentence *sentence, const struct record_options *options,
                      const struct schedule_progress *progress)
{
	if (options->mode == RECORD_OFF)
		return;
	if (progress->counted_by && progress->steps_begun)
		say(sentence, "; steps were counted by %s", progress->counted_by);
	if (progress->counted_before)
		say(sentence, "; %" PRId64 " step%s before the first marked one %s counted apart",
		    progress->counted_before, schedule_plural(progress->counted_before),
		    progress->counted_before == 1 ? "was" : "were");
}

/* "18 %", "1.2 %" */
static void say_percent(struct sentence *sentence, double ratio)
{
	say(sentence, "%.*f %%", ratio < 0.0995, ratio * 100);
}

static void say_cost(struct sentence *sentence, const struct schedule_progress *progress)
{
	if (progress->cost == COST_BELOW) {
		int percent = (int)(progress->cost_ratio * 100);
		say(sentence, "less than %d %%", percent + (percent < progress->cost_ratio * 100));
		return;
	}
	if (progress->cost == COST_ESTIMATED && progress->cost_ratio < 0.001) {
		say(sentence, "less than about 0.1 %%");
		return;
	}
	if (progress->cost == COST_ESTIMATED)
		say(sentence, "about ");
	say_percent(sentence, progress->cost_ratio);
}

static void say_all(struct sentence *sentence, const struct schedule_progress *progress)
{
	if (progress->steps_begun == 1) {
		say(sentence, "captured the only step (%" PRId64 ") with operators", progress->first_number);
	} else {
		say(sentence, "captured all %" PRId64 " steps (", progress->steps_begun);
		say_range(sentence, progress->first_number, progress->last_number);
		say(sentence, ") with operators");
	}
	if (progress->every && progress->cost != COST_UNKNOWN) {
		say(sentence, ", which --with memory needs: they cost ");
		say_cost(sentence, progress);
	}
}

static void say_inputs(struct sentence *sentence, const struct schedule_progress *progress)
{
	if (progress->every_inputs)
		say(sentence, ", inputs of %" PRId64 " (1 of %" PRId64 ")", progress->steps_with_inputs,
		    progress->every_inputs);
}

/* For a run in which some steps have no operators, because operators in all steps would cost too much, or so that their
 * cost can be measured. */
static void say_part(struct sentence *sentence, const struct schedule_progress *progress)
{
	say(sentence, "captured operators of %" PRId64 " of %" PRId64 " step%s", progress->steps_recorded,
	    progress->steps_begun, schedule_plural(progress->steps_begun));
	if (progress->steps_recorded < FEW_STEPS) {
		say(sentence, "; --budget none records all");
		return;
	}
	if (progress->least_every && progress->least_every < progress->every)
		say(sentence, " (1 of %" PRId64 " to %" PRId64 ")", progress->least_every, progress->every);
	else if (progress->every > 1)
		say(sentence, " (1 of %" PRId64 ")", progress->every);
	say_inputs(sentence, progress);
	if (progress->cost != COST_UNKNOWN) {
		say(sentence, ": all would cost ");
		say_cost(sentence, progress);
	}
}

bool schedule_is_part(const struct record_options *options, const struct schedule_progress *progress)
{
	return options->mode != RECORD_OFF && !progress->is_left_out && progress->every &&
	       progress->steps_recorded < progress->steps_begun;
}

size_t schedule_describe(const struct record_options *options, const struct schedule_progress *progress, char *out,
                         size_t bytes)
{
	struct sentence sentence = {out, bytes, 0};

	if (!bytes)
		return 0;
	out[0] = '\0';
	say_earlier(&sentence, progress);
	if (options->mode == RECORD_OFF)
		say(&sentence, "captured nothing: recording is off (enabled=false)");
	else if (progress->is_left_out)
		say(&sentence,
		    "captured %" PRId64 " step%s with steps and phases only: rank %" PRId32
		    " is not among the selected ranks (--ranks)",
		    progress->steps_begun, schedule_plural(progress->steps_begun), progress->rank);
	else if (!progress->steps_begun)
		say_no_steps(&sentence, options, progress);
	else if (schedule_is_part(options, progress))
		say_part(&sentence, progress);
	else if (!progress->steps_recorded)
		say_nothing(&sentence, options, progress);
	else if (options->mode == RECORD_ALWAYS && progress->steps_recorded == progress->steps_begun)
		say_all(&sentence, progress);
	else
		say_captured(&sentence, options, progress);
	say_count(&sentence, options, progress);
	return sentence.length;
}
