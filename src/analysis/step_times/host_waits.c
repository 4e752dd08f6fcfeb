/* SPDX-License-Identifier: Apache-2.0
 *
 * host_waits.c: the table `host_waits`: the causes that hold up the training threads. An instant belongs to the
 * innermost cause, so the rows do not overlap.
 */
#include "analysis/analysis_context.h"
#include "analysis/shared/python_places.h"
#include "analysis/step_times/step_kinds.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "model/cell_words.h"
#include "model/reasons.h"
#include "pytorch/names.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

enum {
	WAIT_CAUSE,
	WAIT_COUNT,
	WAIT_OWN,
	WAIT_TOTAL,
	WAIT_MAX,
	WAIT_STEP,
	WAIT_RATIO,
	WAIT_WHERE,
	WAIT_KNOWN,
	WAIT_LEAST,
	WAIT_COLUMNS,
};

static const struct table_column columns[WAIT_COLUMNS] = {
	[WAIT_CAUSE] = {.name = "cause",
                        .type = TABLE_TEXT,
                        .role = ROLE_KEY,
                        .definition = "cause that held up the thread. Waiting for communication: the thread ran no "
                                      "operator while a collective was executed, and went on when the collective ended. "
                                      "Optimizer: its calls without the closures in them"},
	[WAIT_COUNT] = {.name = "count",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "number of occurrences; one nested in another of the same cause does not count",
                        .rules = RULE_NOT_NEGATIVE},
	[WAIT_OWN] = {.name = "own_ns",
                      .title = "own",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "time with this innermost cause; the rows do not overlap",
                      .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                      .other = "total_ns"},
	[WAIT_TOTAL] = {.name = "total_ns",
                        .title = "total",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "time in it, including nested causes",
                        .rules = RULE_NOT_NEGATIVE},
	[WAIT_MAX] = {.name = "max_ns",
                      .title = "max",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "longest occurrence",
                      .rules = RULE_NOT_NEGATIVE},
	[WAIT_STEP] = {.name = "step_own_ns",
                       .title = "in steps",
                       .type = TABLE_INT,
                       .unit = UNIT_NS,
                       .definition = "own time of the occurrences that start in a step in which this cause is recorded",
                       .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                       .other = "own_ns"},
	[WAIT_RATIO] = {.name = "step_ratio",
                        .title = "% of steps",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = "share of the time of steps",
                        .denominator = "time of the complete steps in which this cause is recorded, all processes: all "
                                       "steps for rare causes, otherwise the steps with operators",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[WAIT_WHERE] =
		{.name = "where",
                 .type = TABLE_TEXT,
                 .definition = "program line of the longest occurrence, if Python lines were recorded; if it has no "
                               "line, that of the first operator in it"},
	[WAIT_KNOWN] = {.name = "known_steps",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .role = ROLE_EVIDENCE,
                        .definition = "number of complete steps in which this cause is recorded, all processes",
                        .is_hidden = true},
	[WAIT_LEAST] = STEP_KINDS_LEAST_COLUMN,
};

enum cause {
	CAUSE_NONE,
	CAUSE_DATA,
	CAUSE_VALUE,
	CAUSE_SAVE,
	CAUSE_LOAD,
	CAUSE_GARBAGE,
	CAUSE_COMPILE,
	CAUSE_WORKERS,
	CAUSE_WORKERS_END,
	CAUSE_EVALUATION,
	CAUSE_CHECKPOINT,
	CAUSE_COMMUNICATION,
	CAUSE_COLLECTIVE,
	CAUSE_OPTIMIZER,
	CAUSE_COUNT,
};

/* The steps in which a cause is recorded. */
enum known {
	KNOWN_WITH_OPERATORS,
	KNOWN_RARE, /* see pytorch_is_rare() */
	KNOWN_ALWAYS,
	KNOWN_KINDS,
};

static const struct {
	enum cause cause;
	const char *text;
	bool is_whole; /* the whole name; otherwise a prefix */
} names[] = {
	{CAUSE_DATA, PYTORCH_LOADER, false},
	{CAUSE_VALUE, "aten::item", true},
	{CAUSE_VALUE, "aten::_local_scalar_dense", true},
	{CAUSE_VALUE, "aten::is_nonzero", true},
	{CAUSE_SAVE, PYTORCH_SAVE, true},
	{CAUSE_LOAD, PYTORCH_LOAD, true},
	{CAUSE_GARBAGE, PYTORCH_GARBAGE, false},
	{CAUSE_COMPILE, PYTORCH_COMPILE, true},
	{CAUSE_WORKERS, PYTORCH_LOADER_START, true},
	{CAUSE_DATA, PYTORCH_LOADER_AGAIN, true},
	{CAUSE_WORKERS_END, PYTORCH_LOADER_STOP, true},
	{CAUSE_COMMUNICATION, PYTORCH_COLLECTIVE, false},
	{CAUSE_OPTIMIZER, PYTORCH_OPTIMIZER_STEP, false},
};

static const char *const texts[CAUSE_COUNT] = {
	NULL,
	CELL_WAIT_DATA,
	CELL_WAIT_VALUE,
	CELL_WAIT_SAVE,
	CELL_WAIT_LOAD,
	CELL_WAIT_GARBAGE,
	CELL_WAIT_COMPILATION,
	CELL_WAIT_WORKERS,
	CELL_WAIT_WORKERS_END,
	CELL_WAIT_EVALUATION,
	CELL_WAIT_CHECKPOINT,
	CELL_WAIT_ISSUING,
	CELL_WAIT_COLLECTIVE,
	CELL_WAIT_OPTIMIZER,
};

struct held {
	struct host_waits_sums {
		int64_t count, own_ns, step_ns, total_ns;
	} sums[2]; /* [1]: in sampled steps, which stand for others */
	struct step_sightings seen;
	int64_t max_ns;
	int64_t opened_ns; /* while open: start of the outermost one */
	bool is_sampled;   /* while open: the outermost one is in a sampled step */
	uint32_t stack;    /* of the longest one */
	uint32_t open;
};

struct host_waits_level {
	enum cause cause;
	int64_t start_ns, end_ns;
	bool is_in_step;
	uint32_t stack;
};

struct host_waits_fold {
	const struct model *model;
	const struct step_times *times;
	bool is_of_steps; /* only causes that start in selected steps count */
	bool has_phases;  /* the thread has inferred phases of optimizers, which are without their closures */
	struct held held[CAUSE_COUNT];
	uint8_t *causes; /* by string, 1 + cause; 0: not classified yet */
	uint32_t cause_capacity;
	struct host_waits_level *levels;
	uint32_t depth, capacity;
	int64_t cursor_ns;
	struct known_steps {
		uint32_t count;
		double dur_ns; /* with operators: including the steps that they stand for */
	} known[KNOWN_KINDS];
};

static enum known known_of(enum cause cause)
{
	switch (cause) {
	case CAUSE_SAVE:
	case CAUSE_LOAD:
	case CAUSE_GARBAGE:
	case CAUSE_COMPILE:
	case CAUSE_WORKERS:
	case CAUSE_WORKERS_END:
		return KNOWN_RARE;
	case CAUSE_CHECKPOINT: /* a phase that the program marks */
		return KNOWN_ALWAYS;
	default:
		return KNOWN_WITH_OPERATORS;
	}
}

static bool is_known_in(const struct step_times *times, enum known known, int32_t step)
{
	if (!times->count || step < 0)
		return false;
	return known == KNOWN_WITH_OPERATORS ? step_times_measures(times, step)
	       : known == KNOWN_RARE
	               ? step_times_knows_rare(times, step)
	               : times->steps[step].is_selected && (times->steps[step].is_complete || !times->complete);
}

static enum cause cause_of_name(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t length = strlen(names[i].text);

		if (!strncmp(name, names[i].text, length) && (!names[i].is_whole || !name[length]))
			return names[i].cause;
	}
	return CAUSE_NONE;
}

static bool is_inferred_optimizer(const struct span_chunk *chunk, uint32_t index)
{
	return chunk->kind[index] == SPAN_PHASE && chunk->phase[index] == STEPSCOPE_PHASE_OPTIMIZER &&
	       chunk->flags[index] & SPAN_IS_INFERRED;
}

static enum cause cause_of(struct host_waits_fold *fold, const struct span_chunk *chunk, uint32_t index)
{
	uint32_t name = chunk->name[index];

	if (chunk->kind[index] == SPAN_PHASE)
		return chunk->phase[index] == STEPSCOPE_PHASE_EVALUATION ? CAUSE_EVALUATION
		       : is_inferred_optimizer(chunk, index)             ? CAUSE_OPTIMIZER
		       : chunk->phase[index] == STEPSCOPE_PHASE_CHECKPOINT && !(chunk->flags[index] & SPAN_IS_INFERRED)
		               ? CAUSE_CHECKPOINT /* an inferred one is counted as torch.save */
		               : CAUSE_NONE;
	if (name >= fold->cause_capacity) {
		uint32_t capacity = 2 * name + 64;

		fold->causes = memory_resize(fold->causes, capacity, 1);
		memset(fold->causes + fold->cause_capacity, 0, capacity - fold->cause_capacity);
		fold->cause_capacity = capacity;
	}
	if (!fold->causes[name])
		fold->causes[name] = (uint8_t)(1 + cause_of_name(model_text(fold->model, name)));
	enum cause cause = (enum cause)(fold->causes[name] - 1);
	return cause == CAUSE_OPTIMIZER && fold->has_phases ? CAUSE_NONE : cause;
}

static bool has_inferred_optimizers(const struct model *model, const struct track *track)
{
	bool has_any = false;

	for (uint32_t c = 0; c < track->chunk_count && !has_any; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count && !has_any; i++)
			has_any = is_inferred_optimizer(chunk, i);
		model_chunk_done(model, chunk);
	}
	return has_any;
}

/* Returns the level that started last. At least one level must be open. */
static const struct host_waits_level *host_waits_innermost(const struct host_waits_fold *fold)
{
	const struct host_waits_level *found = &fold->levels[0];

	assert(fold->depth > 0);

	for (uint32_t i = 1; i < fold->depth; i++) {
		if (fold->levels[i].start_ns >= found->start_ns)
			found = &fold->levels[i];
	}
	return found;
}

/* Adds the time since the last change to the innermost cause. */
static void give(struct host_waits_fold *fold, int64_t now_ns)
{
	if (fold->depth && now_ns > fold->cursor_ns) {
		const struct host_waits_level *top = host_waits_innermost(fold);

		struct held *held = &fold->held[top->cause];
		struct host_waits_sums *sums = &held->sums[held->is_sampled];

		clamped_add(&sums->own_ns, now_ns - fold->cursor_ns);
		clamped_add(&sums->step_ns, top->is_in_step ? now_ns - fold->cursor_ns : 0);
	}
	fold->cursor_ns = now_ns;
}

static void host_waits_leave(struct host_waits_fold *fold, int64_t now_ns)
{
	while (fold->depth && fold->levels[fold->depth - 1].end_ns <= now_ns) {
		struct host_waits_level top = fold->levels[fold->depth - 1];
		struct held *held = &fold->held[top.cause];

		assert(held->open > 0);

		give(fold, top.end_ns);
		fold->depth--;
		if (--held->open)
			continue;
		int64_t dur_ns = top.end_ns - held->opened_ns;
		held->sums[held->is_sampled].count++;
		clamped_add(&held->sums[held->is_sampled].total_ns, dur_ns);
		if (dur_ns >= held->max_ns) {
			held->max_ns = dur_ns;
			held->stack = top.stack;
		}
	}
}

/* Levels are sorted by their ends, latest first: a wait for a collective starts within the operator that issues it and
 * ends after that operator. */
static struct host_waits_level *host_waits_enter(struct host_waits_fold *fold, enum cause cause, int64_t start_ns,
                                                 int64_t end_ns)
{
	assert(cause > CAUSE_NONE && cause < CAUSE_COUNT);
	host_waits_leave(fold, start_ns);
	give(fold, start_ns);
	MEMORY_GROW(fold->levels, fold->depth, fold->capacity, 16);
	uint32_t at = fold->depth++;
	for (; at && fold->levels[at - 1].end_ns < end_ns; at--)
		fold->levels[at] = fold->levels[at - 1];
	fold->levels[at] = (struct host_waits_level){.cause = cause, .start_ns = start_ns, .end_ns = end_ns};
	if (!fold->held[cause].open++)
		fold->held[cause].opened_ns = start_ns;
	return &fold->levels[at];
}

static bool host_waits_counts(const struct host_waits_fold *fold, int32_t step)
{
	return !fold->is_of_steps || (step >= 0 && fold->times->steps[step].is_selected);
}

static void set_step(struct host_waits_fold *fold, struct host_waits_level *level, int32_t step)
{
	enum known known = known_of(level->cause);
	struct held *held = &fold->held[level->cause];

	level->is_in_step = is_known_in(fold->times, known, step);
	if (held->open > 1)
		return;
	held->is_sampled = known == KNOWN_WITH_OPERATORS && step_kinds_is_sampled(fold->times, step);
	if (held->is_sampled)
		step_kinds_sight(&held->seen, fold->times, step, 1);
}

/* Returns true for a span that is recorded in steps without operators, too, although its cause is not known in them. */
static bool is_part_of_cause(const struct host_waits_fold *fold, enum cause cause, int32_t step)
{
	if (step < 0 || fold->model->steps[step].has_any_detail)
		return false;
	return cause == CAUSE_OPTIMIZER || (cause == CAUSE_DATA && fold->model->steps[step].has_rare);
}

static void enter_span(struct host_waits_fold *fold, enum cause cause, const struct span_chunk *chunk, uint32_t index)
{
	int64_t start_ns = chunk->start_ns[index];
	if (!host_waits_counts(fold, chunk->step[index]) || is_part_of_cause(fold, cause, chunk->step[index]))
		return;
	struct host_waits_level *level = host_waits_enter(fold, cause, start_ns, start_ns + chunk->dur_ns[index]);

	set_step(fold, level, chunk->step[index]);
	level->stack = span_stack(chunk, index);
}

/* Returns the step of the track at an instant, -1: none. *next only advances, so times must ascend. */
static int32_t step_at(const struct host_waits_fold *fold, uint32_t track, int64_t time_ns, uint32_t *next)
{
	const struct model_step *steps = fold->model->steps;

	while (*next < fold->times->count && (steps[*next].track != track || steps[*next].end_ns <= time_ns))
		++*next;
	return *next < fold->times->count && steps[*next].start_ns <= time_ns ? (int32_t)*next : -1;
}

/* Returns true if the thread waits for data or writes a file, so it does not wait for a collective. */
static bool waits_for_other(const struct host_waits_fold *fold, int64_t time_ns)
{
	const struct host_waits_level *top = fold->depth ? host_waits_innermost(fold) : NULL;

	return top && top->end_ns > time_ns && (top->cause == CAUSE_DATA || top->cause == CAUSE_SAVE);
}

static void enter_wait(struct host_waits_fold *fold, const struct communication_wait *wait, uint32_t *step)
{
	int32_t at = step_at(fold, wait->track, wait->start_ns, step);
	if (waits_for_other(fold, wait->start_ns) || !host_waits_counts(fold, at))
		return;
	struct host_waits_level *level = host_waits_enter(fold, CAUSE_COLLECTIVE, wait->start_ns, wait->end_ns);

	set_step(fold, level, at);
}

/* A cause without a recorded line gets that of the first operator nested in it. */
static void give_stack(struct host_waits_fold *fold, const struct span_chunk *chunk, uint32_t index)
{
	uint32_t stack = span_stack(chunk, index);

	for (uint32_t i = fold->depth; stack && i-- > 0;) {
		struct host_waits_level *level = &fold->levels[i];

		if (!level->stack && level->end_ns >= chunk->start_ns[index])
			level->stack = stack;
	}
}

static void host_waits_fold_track(struct host_waits_fold *fold, uint32_t number)
{
	const struct track *track = fold->model->tracks[number];
	uint32_t wait, end, step = 0;

	fold->depth = 0;
	fold->cursor_ns = 0;
	fold->has_phases = has_inferred_optimizers(fold->model, track);
	communication_waits_of(&fold->times->waits, number, &wait, &end);
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			enum cause cause = cause_of(fold, chunk, i);

			for (; wait < end && fold->times->waits.list[wait].start_ns <= chunk->start_ns[i]; wait++)
				enter_wait(fold, &fold->times->waits.list[wait], &step);
			if (cause)
				enter_span(fold, cause, chunk, i);
			give_stack(fold, chunk, i);
		}
		model_chunk_done(fold->model, chunk);
	}
	for (; wait < end; wait++)
		enter_wait(fold, &fold->times->waits.list[wait], &step);
	host_waits_leave(fold, INT64_MAX);
}

/* Visits all threads that carry steps. */
static void fold_tracks(struct host_waits_fold *fold)
{
	const struct model *model = fold->model;
	bool *is_folded = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof(*is_folded));

	memset(is_folded, 0, (size_t)model->tracks_count + 1);
	for (uint32_t i = 0; i < model->steps_count; i++) {
		uint32_t track = model->steps[i].track;

		if (track >= model->tracks_count || is_folded[track])
			continue;
		is_folded[track] = true;
		host_waits_fold_track(fold, track);
	}
	free(is_folded);
}

/* ---- the table ---- */

static struct host_waits_sums host_waits_join(const struct host_waits_sums sums[2], double factor)
{
	struct host_waits_sums joined = sums[0];

	step_kinds_join(&joined.count, sums[1].count, factor);
	step_kinds_join(&joined.own_ns, sums[1].own_ns, factor);
	step_kinds_join(&joined.step_ns, sums[1].step_ns, factor);
	step_kinds_join(&joined.total_ns, sums[1].total_ns, factor);
	return joined;
}

static void host_waits_add_row(struct table *table, const struct host_waits_fold *fold, enum cause cause,
                               const uint32_t *users)
{
	const struct held *held = &fold->held[cause];
	const struct host_waits_sums sums = host_waits_join(held->sums, step_kinds_factor(fold->times, &held->seen));
	const struct known_steps *known = &fold->known[known_of(cause)];
	int row = table_row(table);

	table_set_text(table, row, WAIT_CAUSE, texts[cause]);
	table_set_int(table, row, WAIT_COUNT, sums.count);
	table_set_int(table, row, WAIT_OWN, sums.own_ns);
	table_set_int(table, row, WAIT_TOTAL, sums.total_ns);
	table_set_int(table, row, WAIT_MAX, held->max_ns);
	table_set_int(table, row, WAIT_STEP, sums.step_ns);
	table_set_int(table, row, WAIT_KNOWN, known->count);
	step_kinds_set_least(table, row, WAIT_LEAST, fold->times, &held->seen);
	if (known->dur_ns > 0)
		table_set_double(table, row, WAIT_RATIO, fmin(1, (double)sums.step_ns / known->dur_ns));
	else
		table_set_missing(table, row, WAIT_RATIO, "the cause was recorded in no complete step");
	if (held->stack) {
		struct buffer text;

		buffer_init(&text, 1 << 16);
		python_frame_text(fold->model,
		                  &fold->model->stacks[users[held->stack] ? users[held->stack] : held->stack],
		                  python_folder(fold->model), &text);
		table_set_text(table, row, WAIT_WHERE, text.data);
		buffer_release(&text);
	} else {
		table_set_missing(table, row, WAIT_WHERE,
		                  fold->model->stacks_count > 1 ? "no line was recorded for it or for operators in it"
		                                                : model_reason(fold->model, REASON_NO_LINES));
	}
}

static void find_known_steps(struct host_waits_fold *fold)
{
	for (int known = 0; known < KNOWN_KINDS; known++) {
		for (uint32_t i = 0; i < fold->times->count; i++) {
			if (!is_known_in(fold->times, (enum known)known, (int32_t)i))
				continue;
			fold->known[known].count++;
			fold->known[known].dur_ns += known == KNOWN_WITH_OPERATORS
			                                     ? step_kinds_dur_ns(fold->times, i)
			                                     : (double)fold->times->steps[i].dur_ns;
		}
	}
}

/* Adds a note that says from how many steps the rows are. */
static void host_waits_add_note(struct table *table, const struct host_waits_fold *fold)
{
	bool has_rare = false, has_others = false;

	for (int cause = 1; cause < CAUSE_COUNT; cause++) {
		const struct host_waits_sums *sums = fold->held[cause].sums;
		bool is_there = sums[0].count || sums[1].count;

		has_rare |= is_there && known_of((enum cause)cause) == KNOWN_RARE;
		has_others |= is_there && known_of((enum cause)cause) == KNOWN_WITH_OPERATORS;
	}
	step_kinds_note_sums(table, fold->times, WAIT_LEAST);
	if (!table->note || !has_rare || fold->known[KNOWN_RARE].count <= fold->known[KNOWN_WITH_OPERATORS].count)
		return;
	table->note = arena_printf(
		&table->arena, "%s%sgarbage collections, compilations, files and loader workers are from %s",
		has_others ? table->note : "", has_others ? "; " : "",
		fold->times->scale.knows_rare ? "all steps"
					      : arena_printf(&table->arena, "%u steps", fold->known[KNOWN_RARE].count));
}

static enum status host_waits_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	struct host_waits_fold fold = {
		.model = model, .times = times, .is_of_steps = is_part_of_run(&context->options)};
	uint32_t *users = python_user_frames(model);

	table_init(table, "host_waits", "Waits of the training loop",
	           "time of the threads that mark steps, by the cause that held them up");
	table_columns(table, columns, WAIT_COLUMNS);
	fold_tracks(&fold);
	find_known_steps(&fold);
	for (int cause = 1; cause < CAUSE_COUNT; cause++) {
		if (fold.held[cause].sums[0].count || fold.held[cause].sums[1].count)
			host_waits_add_row(table, &fold, (enum cause)cause, users);
	}
	table_sort(table, WAIT_OWN, false);
	if (!table->row_count)
		table->empty = step_times_no_operations(context, &table->arena,
		                                        "no known cause of waiting was recorded");
	else
		host_waits_add_note(table, &fold);
	free(users);
	free(fold.causes);
	free(fold.levels);
	return STATUS_OK;
}

const struct analysis analysis_host_waits = {
	.name = "host_waits",
	.row = "cause of waiting",
	.question = "which causes hold up the training loop?",
	.run = host_waits_run,
	.is_of_operators = true,
};
