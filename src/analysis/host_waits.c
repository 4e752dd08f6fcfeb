/* SPDX-License-Identifier: Apache-2.0
 *
 * host_waits.c: the table `host_waits`: what holds up the threads that train, by cause. An instant belongs to the innermost cause, so
 * the rows do not overlap.
 */
#include "analysis/python_places.h"
#include "analysis/step_kinds.h"

#include "base/clamped.h"
#include "base/memory.h"
#include "pytorch/names.h"

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
	WAIT_COLUMNS,
};

static const struct table_column columns[WAIT_COLUMNS] = {
	[WAIT_CAUSE] =
		{.name = "cause",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "what the thread was held up by; waiting for communication: it ran no operator while a "
                               "collective was executed, and went on with the end of that"},
	[WAIT_COUNT] = {.name = "count",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "how often, one inside of another of the same cause counted once",
                        .rules = RULE_NOT_NEGATIVE},
	[WAIT_OWN] = {.name = "own_ns",
                      .title = "own",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "time whose innermost cause it is; the rows do not overlap",
                      .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                      .other = "total_ns"},
	[WAIT_TOTAL] = {.name = "total_ns",
                        .title = "total",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "time in it, with other causes inside",
                        .rules = RULE_NOT_NEGATIVE},
	[WAIT_MAX] = {.name = "max_ns",
                      .title = "max",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "longest one",
                      .rules = RULE_NOT_NEGATIVE},
	[WAIT_STEP] = {.name = "step_own_ns",
                       .title = "in steps",
                       .type = TABLE_INT,
                       .unit = UNIT_NS,
                       .definition = "own time of those that begin in a step recorded with operators",
                       .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                       .other = "own_ns"},
	[WAIT_RATIO] = {.name = "step_ratio",
                        .title = "% of steps",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = "share of the time of steps",
                        .denominator = "time of the complete steps recorded with operators, all processes",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[WAIT_WHERE] = {.name = "where",
                        .type = TABLE_TEXT,
                        .definition = "the program's line with the longest one, when Python lines were recorded; where "
                                      "it has none itself that of the first operator in it"},
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

static const struct {
	enum cause cause;
	const char *text;
	bool is_whole; /* the name; else how it begins */
} names[] = {
	{CAUSE_DATA, PYTORCH_LOADER, false},
	{CAUSE_VALUE, "aten::item", true},
	{CAUSE_VALUE, "aten::_local_scalar_dense", true},
	{CAUSE_VALUE, "aten::is_nonzero", true},
	{CAUSE_SAVE, "torch.save", true},
	{CAUSE_LOAD, "torch.load", true},
	{CAUSE_GARBAGE, "garbage collection ", false},
	{CAUSE_COMPILE, "torch.compile", true},
	{CAUSE_WORKERS, PYTORCH_LOADER_START, true},
	{CAUSE_DATA, PYTORCH_LOADER_AGAIN, true},
	{CAUSE_WORKERS_END, PYTORCH_LOADER_STOP, true},
	{CAUSE_COMMUNICATION, PYTORCH_COLLECTIVE, false},
	{CAUSE_OPTIMIZER, PYTORCH_OPTIMIZER_STEP, false},
};

static const char *const texts[CAUSE_COUNT] = {
	NULL,
	"waiting for data",
	"reading a value of a tensor (item, is_nonzero)",
	"torch.save",
	"torch.load",
	"garbage collection",
	"compilation",
	"starting workers of a data loader",
	"stopping workers of a data loader",
	"evaluation",
	"checkpoint",
	"communication: issuing it",
	"communication: waiting for it",
	"optimizer",
};

struct held {
	int64_t count, own_ns, step_ns, total_ns, max_ns;
	int64_t opened_ns; /* while open */
	uint32_t stack;    /* of the longest */
	uint32_t open;
};

struct level {
	enum cause cause;
	int64_t start_ns, end_ns;
	bool is_in_step;
	uint32_t stack;
};

struct fold {
	const struct model *model;
	const struct step_times *times;
	bool is_of_steps; /* only what begins in selected steps counts */
	struct held held[CAUSE_COUNT];
	uint8_t *causes; /* by string, 1 + cause; 0: not looked at yet */
	uint32_t cause_capacity;
	struct level *levels;
	uint32_t depth, capacity;
	int64_t cursor_ns;
};

static enum cause cause_of_name(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t length = strlen(names[i].text);

		if (!strncmp(name, names[i].text, length) && (!names[i].is_whole || !name[length]))
			return names[i].cause;
	}
	return CAUSE_NONE;
}

static enum cause cause_of(struct fold *fold, const struct span_chunk *chunk, uint32_t index)
{
	uint32_t name = chunk->name[index];

	if (chunk->kind[index] == SPAN_PHASE)
		return chunk->phase[index] == STEPSCOPE_PHASE_EVALUATION ? CAUSE_EVALUATION
		       : chunk->phase[index] == STEPSCOPE_PHASE_CHECKPOINT && !(chunk->flags[index] & SPAN_IS_INFERRED)
		               ? CAUSE_CHECKPOINT /* else it is torch.save */
		               : CAUSE_NONE;
	if (name >= fold->cause_capacity) {
		uint32_t capacity = 2 * name + 64;

		fold->causes = memory_resize(fold->causes, capacity, 1);
		memset(fold->causes + fold->cause_capacity, 0, capacity - fold->cause_capacity);
		fold->cause_capacity = capacity;
	}
	if (!fold->causes[name])
		fold->causes[name] = (uint8_t)(1 + cause_of_name(model_text(fold->model, name)));
	return (enum cause)(fold->causes[name] - 1);
}

/* Which began last, not NULL. */
static const struct level *innermost(const struct fold *fold)
{
	const struct level *found = &fold->levels[0];

	for (uint32_t i = 1; i < fold->depth; i++) {
		if (fold->levels[i].start_ns >= found->start_ns)
			found = &fold->levels[i];
	}
	return found;
}

/* The time since the last change belongs to the innermost. */
static void give(struct fold *fold, int64_t now_ns)
{
	if (fold->depth && now_ns > fold->cursor_ns) {
		const struct level *top = innermost(fold);

		clamped_add(&fold->held[top->cause].own_ns, now_ns - fold->cursor_ns);
		clamped_add(&fold->held[top->cause].step_ns, top->is_in_step ? now_ns - fold->cursor_ns : 0);
	}
	fold->cursor_ns = now_ns;
}

static void leave(struct fold *fold, int64_t now_ns)
{
	while (fold->depth && fold->levels[fold->depth - 1].end_ns <= now_ns) {
		struct level top = fold->levels[fold->depth - 1];
		struct held *held = &fold->held[top.cause];

		give(fold, top.end_ns);
		fold->depth--;
		if (--held->open)
			continue;
		int64_t dur_ns = top.end_ns - held->opened_ns;
		held->count++;
		clamped_add(&held->total_ns, dur_ns);
		if (dur_ns >= held->max_ns) {
			held->max_ns = dur_ns;
			held->stack = top.stack;
		}
	}
}

/* Levels lie in the order of their ends: a wait for a collective begins within the operator that issues it, and ends behind that. */
static struct level *enter(struct fold *fold, enum cause cause, int64_t start_ns, int64_t end_ns)
{
	leave(fold, start_ns);
	give(fold, start_ns);
	MEMORY_GROW(fold->levels, fold->depth, fold->capacity, 16);
	uint32_t at = fold->depth++;
	for (; at && fold->levels[at - 1].end_ns < end_ns; at--)
		fold->levels[at] = fold->levels[at - 1];
	fold->levels[at] = (struct level){.cause = cause, .start_ns = start_ns, .end_ns = end_ns};
	if (!fold->held[cause].open++)
		fold->held[cause].opened_ns = start_ns;
	return &fold->levels[at];
}

static bool counts(const struct fold *fold, int32_t step)
{
	return !fold->is_of_steps || (step >= 0 && fold->times->steps[step].is_selected);
}

static void enter_span(struct fold *fold, enum cause cause, const struct span_chunk *chunk, uint32_t index)
{
	int64_t start_ns = chunk->start_ns[index];
	if (!counts(fold, chunk->step[index]))
		return;
	struct level *level = enter(fold, cause, start_ns, start_ns + chunk->dur_ns[index]);

	level->is_in_step = fold->times->count && step_times_measures(fold->times, chunk->step[index]);
	level->stack = span_stack(chunk, index);
}

/* The step of the track that the instant is in, -1: none; *next goes with the time. */
static int32_t step_at(const struct fold *fold, uint32_t track, int64_t time_ns, uint32_t *next)
{
	const struct model_step *steps = fold->model->steps;

	while (*next < fold->times->count && (steps[*next].track != track || steps[*next].end_ns <= time_ns))
		++*next;
	return *next < fold->times->count && steps[*next].start_ns <= time_ns ? (int32_t)*next : -1;
}

/* Who waits for data, or writes a file, does not wait for a collective. */
static bool waits_for_other(const struct fold *fold, int64_t time_ns)
{
	const struct level *top = fold->depth ? innermost(fold) : NULL;

	return top && top->end_ns > time_ns && (top->cause == CAUSE_DATA || top->cause == CAUSE_SAVE);
}

static void enter_wait(struct fold *fold, const struct communication_wait *wait, uint32_t *step)
{
	int32_t at = step_at(fold, wait->track, wait->start_ns, step);
	if (waits_for_other(fold, wait->start_ns) || !counts(fold, at))
		return;
	struct level *level = enter(fold, CAUSE_COLLECTIVE, wait->start_ns, wait->end_ns);

	level->is_in_step = at >= 0 && step_times_measures(fold->times, at);
}

/* A cause that has no line of its own has that of the first operator in it. */
static void give_stack(struct fold *fold, const struct span_chunk *chunk, uint32_t index)
{
	uint32_t stack = span_stack(chunk, index);

	for (uint32_t i = fold->depth; stack && i-- > 0;) {
		struct level *level = &fold->levels[i];

		if (!level->stack && level->end_ns >= chunk->start_ns[index])
			level->stack = stack;
	}
}

static void fold_track(struct fold *fold, uint32_t number)
{
	const struct track *track = fold->model->tracks[number];
	uint32_t wait, end, step = 0;

	fold->depth = 0;
	fold->cursor_ns = 0;
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
	leave(fold, INT64_MAX);
}

/* Of all threads that carry steps. */
static void fold_tracks(struct fold *fold)
{
	const struct model *model = fold->model;
	bool *is_folded = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof(*is_folded));

	memset(is_folded, 0, (size_t)model->tracks_count + 1);
	for (uint32_t i = 0; i < model->steps_count; i++) {
		uint32_t track = model->steps[i].track;

		if (track >= model->tracks_count || is_folded[track])
			continue;
		is_folded[track] = true;
		fold_track(fold, track);
	}
	free(is_folded);
}

/* ---- the table ---- */

static void add_row(struct table *table, const struct fold *fold, enum cause cause, int64_t steps_ns,
                    const uint32_t *users)
{
	const struct held *held = &fold->held[cause];
	int row = table_row(table);

	table_set_text(table, row, WAIT_CAUSE, texts[cause]);
	table_set_int(table, row, WAIT_COUNT, held->count);
	table_set_int(table, row, WAIT_OWN, held->own_ns);
	table_set_int(table, row, WAIT_TOTAL, held->total_ns);
	table_set_int(table, row, WAIT_MAX, held->max_ns);
	table_set_int(table, row, WAIT_STEP, held->step_ns);
	if (steps_ns > 0)
		table_set_double(table, row, WAIT_RATIO,
		                 held->step_ns < steps_ns ? (double)held->step_ns / (double)steps_ns : 1);
	else
		table_set_missing(table, row, WAIT_RATIO, "no complete step was recorded with operators");
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
		                  fold->model->stacks_count > 1 ? "nothing in it told its line"
		                                                : "Python lines were not recorded (--with lines)");
	}
}

static int64_t time_of_steps(const struct step_times *times)
{
	int64_t sum_ns = 0;

	for (uint32_t i = 0; i < times->count; i++) {
		if (times->steps[i].is_measured)
			clamped_add(&sum_ns, times->steps[i].dur_ns);
	}
	return sum_ns;
}

static enum status run(const struct model *model, const struct analysis_options *options, struct table *table,
                       struct error *err)
{
	struct step_times own = {0};
	const struct step_times *times = step_times_get(&own, model, options);
	struct fold fold = {.model = model, .times = times, .is_of_steps = is_part_of_run(options)};
	int64_t steps_ns = time_of_steps(times);
	uint32_t *users = python_user_frames(model);

	table_init(table, "host_waits", "What holds up the loop",
	           "time of the threads that carry steps, by what they were held up by, where operators were recorded");
	table_columns(table, columns, WAIT_COLUMNS);
	fold_tracks(&fold);
	for (int cause = 1; cause < CAUSE_COUNT; cause++) {
		if (fold.held[cause].count)
			add_row(table, &fold, (enum cause)cause, steps_ns, users);
	}
	table_sort(table, WAIT_OWN, false);
	if (!table->row_count)
		table->empty = step_times_no_operations(model, options, &table->arena,
		                                        "none of the causes that are known by name was recorded");
	else
		table->note = step_kinds_operators_note(times, &table->arena);
	free(users);
	free(fold.causes);
	free(fold.levels);
	step_times_release(&own);
	return STATUS_OK;
}

const struct analysis analysis_host_waits = {"host_waits", "what holds up the training loop?", run};
