/* SPDX-License-Identifier: Apache-2.0
 *
 * span_module.c: all spans of the model as the virtual table `spans`. A cursor walks over the chunks in place.
 * Conditions on track, span, name, kind, step and start are pushed down. SQLite still tests each row, so it is enough
 * to skip rows that certainly fail.
 */
#include "analysis/step_times/step_times.h"
#include "query/modules.h"

#include <stdlib.h>
#include <string.h>

enum {
	SPAN_COLUMN_TRACK,
	SPAN_COLUMN_SPAN,
	SPAN_COLUMN_PROCESS,
	SPAN_COLUMN_THREAD,
	SPAN_COLUMN_DEVICE,
	SPAN_COLUMN_NAME,
	SPAN_COLUMN_KIND,
	SPAN_COLUMN_START,
	SPAN_COLUMN_DUR,
	SPAN_COLUMN_END,
	SPAN_COLUMN_DEPTH,
	SPAN_COLUMN_PARENT,
	SPAN_COLUMN_STEP,
	SPAN_COLUMN_PHASE,
	SPAN_COLUMN_SHAPE,
	SPAN_COLUMN_SEQUENCE,
	SPAN_COLUMN_INPUTS,
	SPAN_COLUMN_STACK,
	SPAN_COLUMN_CORRELATION,
	SPAN_COLUMN_INCOMPLETE,
	SPAN_COLUMN_BACKWARD,
	SPAN_COLUMN_CLOCK,
	SPAN_COLUMNS,
};

const struct query_column query_span_columns[SPAN_COLUMNS + 1] = {
	[SPAN_COLUMN_TRACK] = {"track", "INTEGER", "number of the track, as in tracks"},
	[SPAN_COLUMN_SPAN] = {"span", "INTEGER", "number of the span on its track"},
	[SPAN_COLUMN_PROCESS] = {"process", "TEXT", "rank, or pid"},
	[SPAN_COLUMN_THREAD] = {"thread", "TEXT", "thread or stream, as in threads"},
	[SPAN_COLUMN_DEVICE] = {"device", "INTEGER", "number of the device; NULL for a thread of the host"},
	[SPAN_COLUMN_NAME] = {"name", "TEXT", "name of the span"},
	[SPAN_COLUMN_KIND] = {"kind", "TEXT", "op, module, phase, step, range, kernel, ..."},
	[SPAN_COLUMN_START] = {"start_ns", "INTEGER", "start, as time since the recording of its process started"},
	[SPAN_COLUMN_DUR] = {"dur_ns", "INTEGER", "duration"},
	[SPAN_COLUMN_END] = {"end_ns", "INTEGER", "end, start_ns + dur_ns"},
	[SPAN_COLUMN_DEPTH] = {"depth", "INTEGER", "number of spans of its track that it is nested in"},
	[SPAN_COLUMN_PARENT] = {"parent", "INTEGER",
                                "span of the same track that it is nested in; NULL if it has no parent"},
	[SPAN_COLUMN_STEP] = {"step", "INTEGER", "number of the step it starts in; NULL outside of steps"},
	[SPAN_COLUMN_PHASE] = {"phase", "TEXT", "innermost phase it is nested in; NULL outside of phases"},
	[SPAN_COLUMN_SHAPE] = {"shape", "TEXT", "shapes of its inputs"},
	[SPAN_COLUMN_SEQUENCE] = {"sequence", "INTEGER", "number that a forward and its backward share"},
	[SPAN_COLUMN_INPUTS] = {"inputs", "TEXT",
                                "types and values of its inputs, or the launch parameters of device work"},
	[SPAN_COLUMN_STACK] = {"stack", "INTEGER", "Python stack that started it, as in frames"},
	[SPAN_COLUMN_CORRELATION] = {"correlation", "INTEGER", "number that a launch and its work on a device share"},
	[SPAN_COLUMN_INCOMPLETE] = {"is_incomplete", "INTEGER", "1 if its start or end was not recorded"},
	[SPAN_COLUMN_BACKWARD] = {"is_backward", "INTEGER", "1 for an operator of a backward"},
	[SPAN_COLUMN_CLOCK] = {"clock_ns", "INTEGER", "its start on the clock that all processes of the trace share"},
};

enum plan_bit { /* values come in this order */
	PLAN_TRACK = 1,
	PLAN_SPAN = 2,
	PLAN_NAME = 4,
	PLAN_KIND = 8,
	PLAN_STEP = 16,
	PLAN_FROM = 32, /* start_ns >= value */
	PLAN_TO = 64,
	PLAN_BITS = 7,
};

struct span_table {
	sqlite3_vtab base;
	const struct query_source *source;
};

struct span_cursor {
	sqlite3_vtab_cursor base;
	const struct query_source *source;
	const struct model *model;
	const struct span_chunk *chunk; /* chunk of the row; NULL at the end */
	uint32_t track, last_track, row;
	uint32_t index; /* index of the row in its chunk */
	/* conditions on rows */
	bool has_row, has_name, has_step, has_from, has_to;
	uint32_t wanted_row, name;
	uint64_t kinds; /* one bit per enum span_kind */
	int64_t step, from_ns, to_ns;
};

static int span_module_connect_table(sqlite3 *database, void *client, int argc, const char *const *argv,
                                     sqlite3_vtab **table, char **message)
{
	struct span_table *added;
	int result = query_declare(client, query_span_columns);

	if (result != SQLITE_OK)
		return result;
	added = sqlite3_malloc(sizeof(*added));
	if (!added)
		return SQLITE_NOMEM;
	*added = (struct span_table){.source = client};
	*table = &added->base;
	return SQLITE_OK;
}

/* ---- pushed-down conditions ---- */

static int plan_bit(const struct sqlite3_index_constraint *constraint)
{
	static const struct {
		int column;
		int bit;
	} equalities[] = {{SPAN_COLUMN_TRACK, PLAN_TRACK},
	                  {SPAN_COLUMN_SPAN, PLAN_SPAN},
	                  {SPAN_COLUMN_NAME, PLAN_NAME},
	                  {SPAN_COLUMN_KIND, PLAN_KIND},
	                  {SPAN_COLUMN_STEP, PLAN_STEP}};

	if (constraint->iColumn == SPAN_COLUMN_START) {
		switch (constraint->op) {
		case SQLITE_INDEX_CONSTRAINT_GE:
		case SQLITE_INDEX_CONSTRAINT_GT:
			return PLAN_FROM;
		case SQLITE_INDEX_CONSTRAINT_LE:
		case SQLITE_INDEX_CONSTRAINT_LT:
			return PLAN_TO;
		default:
			return 0;
		}
	}
	if (constraint->op != SQLITE_INDEX_CONSTRAINT_EQ)
		return 0;
	for (size_t i = 0; i < sizeof(equalities) / sizeof(equalities[0]); i++) {
		if (equalities[i].column == constraint->iColumn)
			return equalities[i].bit;
	}
	return 0;
}

static double all_spans(const struct model *model)
{
	double count = 1;

	for (uint32_t i = 0; i < model->tracks_count; i++)
		count += model->tracks[i]->span_count;
	return count;
}

static double estimate(const struct model *model, int plan)
{
	double rows = all_spans(model);

	if (plan & PLAN_TRACK)
		rows /= model->tracks_count + 1.0;
	if ((plan & PLAN_SPAN) && (plan & PLAN_TRACK))
		return 1;
	if (plan & PLAN_STEP)
		rows /= model->steps_count + 1.0;
	if (plan & (PLAN_FROM | PLAN_TO))
		rows /= 4;
	return rows < 1 ? 1 : rows;
}

static int span_module_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	const struct model *model = ((const struct span_table *)table)->source->query->report->model;
	int of_bit[PLAN_BITS], next_value = 1;
	double rows;

	memset(of_bit, -1, sizeof(of_bit));
	for (int i = 0; i < info->nConstraint; i++) {
		int bit = info->aConstraint[i].usable ? plan_bit(&info->aConstraint[i]) : 0;

		/* texts are compared by their numbers, which is only valid for the collation BINARY */
		if (!bit || (info->idxNum & bit) ||
		    ((bit == PLAN_NAME || bit == PLAN_KIND) && strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0))
			continue;
		of_bit[__builtin_ctz((unsigned)bit)] = i;
		info->idxNum |= bit;
	}
	for (int i = 0; i < PLAN_BITS; i++) {
		if (of_bit[i] >= 0)
			info->aConstraintUsage[of_bit[i]].argvIndex = next_value++;
	}
	rows = estimate(model, info->idxNum);
	info->estimatedRows = (sqlite3_int64)(info->idxNum & PLAN_NAME ? rows / 20 + 1 : rows);
	info->estimatedCost = rows;
	return SQLITE_OK;
}

/* ---- the walk ---- */

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
	const struct query_source *source = ((const struct span_table *)table)->source;
	struct span_cursor *opened = sqlite3_malloc(sizeof(*opened));

	if (!opened)
		return SQLITE_NOMEM;
	*opened = (struct span_cursor){.source = source, .model = source->query->report->model};
	*cursor = &opened->base;
	return SQLITE_OK;
}

static bool has_wanted_step(const struct span_cursor *at)
{
	int32_t step = at->chunk->step[at->index];

	return step >= 0 && at->model->steps[step].number == at->step;
}

static bool span_module_is_wanted(const struct span_cursor *at)
{
	if (at->has_row && at->row != at->wanted_row)
		return false;
	if (at->has_name && at->chunk->name[at->index] != at->name)
		return false;
	if (!(at->kinds >> at->chunk->kind[at->index] & 1))
		return false;
	return !at->has_step || has_wanted_step(at);
}

static int64_t clock_of(const struct span_cursor *at, int64_t since_start_ns)
{
	const struct track *track = at->model->tracks[at->track];
	int64_t zero_ns = query_since_start(at->model, track->process, 0), time_ns;

	if (!__builtin_sub_overflow(since_start_ns, zero_ns, &time_ns))
		return time_ns;
	return since_start_ns < 0 ? INT64_MIN : INT64_MAX;
}

/* Moves to a row of the track, or to its end. */
static void go_to(struct span_cursor *at, uint32_t row)
{
	const struct track *track = at->model->tracks[at->track];

	at->row = row;
	at->chunk = row < track->span_count ? track_chunk(track, row, &at->index) : NULL;
}

static void begin_track(struct span_cursor *at)
{
	const struct track *track = at->model->tracks[at->track];
	uint32_t row = at->has_from ? track_row_at(track, 0, clock_of(at, at->from_ns)) : 0;

	if (at->has_row && at->wanted_row > row)
		row = at->wanted_row;
	go_to(at, row);
}

static void step_forward(struct span_cursor *at)
{
	at->row++;
	if (++at->index < at->chunk->count)
		return;
	model_chunk_done(at->model, at->chunk);
	go_to(at, at->row);
}

/* Returns true if no row from this one on in its track can match. */
static bool is_past(const struct span_cursor *at)
{
	if (at->has_row && at->row > at->wanted_row)
		return true;
	return at->has_to && at->chunk->start_ns[at->index] > clock_of(at, at->to_ns);
}

/* Moves from the current row, inclusive, to the next row that may match. */
static void span_module_find(struct span_cursor *at)
{
	for (;;) {
		while (at->chunk && !is_past(at)) {
			if (span_module_is_wanted(at))
				return;
			step_forward(at);
		}
		if (at->track >= at->last_track) {
			at->chunk = NULL;
			return;
		}
		at->track++;
		begin_track(at);
	}
}

static uint64_t kinds_called(const char *name)
{
	uint64_t kinds = 0;

	for (int kind = 0; kind < SPAN_KIND_COUNT; kind++) {
		if (!strcmp(span_kind_name((enum span_kind)kind), name))
			kinds |= UINT64_C(1) << kind;
	}
	return kinds;
}

/* Sets a condition. Returns false if no row can match it. Leaves a value of another type to SQLite, which converts it
 * to compare. */
static bool want(struct span_cursor *at, int bit, sqlite3_value *value)
{
	bool is_integer = sqlite3_value_type(value) == SQLITE_INTEGER,
	     is_text = sqlite3_value_type(value) == SQLITE_TEXT;
	int64_t number = is_integer ? sqlite3_value_int64(value) : 0;

	if (sqlite3_value_type(value) == SQLITE_NULL)
		return false;
	if (bit == PLAN_NAME && is_text) {
		at->has_name = true;
		at->name = intern_find(&at->model->strings, (const char *)sqlite3_value_text(value));
		return at->name;
	}
	if (bit == PLAN_KIND && is_text) {
		at->kinds = kinds_called((const char *)sqlite3_value_text(value));
		return at->kinds;
	}
	if (!is_integer)
		return true;
	if (bit == PLAN_TRACK) {
		if (number < 0 || number > at->last_track)
			return false;
		at->track = at->last_track = (uint32_t)number;
	} else if (bit == PLAN_SPAN) {
		if (number < 0 || number >= MODEL_NONE)
			return false;
		at->has_row = true, at->wanted_row = (uint32_t)number;
	} else if (bit == PLAN_STEP) {
		at->has_step = true, at->step = number;
	} else if (bit == PLAN_FROM) {
		at->has_from = true, at->from_ns = number;
	} else if (bit == PLAN_TO) {
		at->has_to = true, at->to_ns = number;
	}
	return true;
}

static int span_module_filter(sqlite3_vtab_cursor *cursor, int plan, const char *plan_text, int argc,
                              sqlite3_value **argv)
{
	struct span_cursor *at = (struct span_cursor *)cursor;
	const struct model *model = at->model;

	*at = (struct span_cursor){.base = at->base,
	                           .source = at->source,
	                           .model = model,
	                           .last_track = model->tracks_count ? model->tracks_count - 1 : 0,
	                           .kinds = UINT64_MAX};
	if (!model->tracks_count)
		return SQLITE_OK;
	for (int bit = 1, value = 0; bit < 1 << PLAN_BITS; bit <<= 1) {
		if ((plan & bit) && !want(at, bit, argv[value++]))
			return SQLITE_OK; /* at the end: no row matches */
	}
	begin_track(at);
	span_module_find(at);
	return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *cursor)
{
	struct span_cursor *at = (struct span_cursor *)cursor;

	step_forward(at);
	span_module_find(at);
	return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *cursor)
{
	return !((struct span_cursor *)cursor)->chunk;
}

/* ---- cells ---- */

static void result_time(const struct span_cursor *at, sqlite3_context *out, bool is_end)
{
	int64_t start_ns = query_since_start(at->model, at->model->tracks[at->track]->process,
	                                     at->chunk->start_ns[at->index]);

	sqlite3_result_int64(out, is_end ? start_ns + at->chunk->dur_ns[at->index] : start_ns);
}

static void result_step(const struct span_cursor *at, sqlite3_context *out)
{
	int32_t step = at->chunk->step[at->index];

	if (step >= 0)
		sqlite3_result_int64(out, at->model->steps[step].number);
}

/* Sets a cell that describes the position of the span. */
static void place_cell(const struct span_cursor *at, sqlite3_context *out, int number)
{
	const struct track *track = at->model->tracks[at->track];

	switch (number) {
	case SPAN_COLUMN_TRACK:
		sqlite3_result_int64(out, at->track);
		break;
	case SPAN_COLUMN_SPAN:
		sqlite3_result_int64(out, at->row);
		break;
	case SPAN_COLUMN_PROCESS:
		query_result_text(out, at->source->processes[track->process]);
		break;
	case SPAN_COLUMN_THREAD:
		query_result_text(out, at->source->tracks[at->track]);
		break;
	default:
		if (track->device >= 0)
			sqlite3_result_int(out, track->device);
	}
}

/* Sets a cell of a column that only some chunks have. */
static void extra_cell(const struct span_cursor *at, sqlite3_context *out, int number)
{
	switch (number) {
	case SPAN_COLUMN_SEQUENCE:
		if (span_sequence(at->chunk, at->index) != STEPSCOPE_NO_SEQUENCE)
			sqlite3_result_int64(out, (sqlite3_int64)span_sequence(at->chunk, at->index));
		break;
	case SPAN_COLUMN_INPUTS:
		query_result_string(out, at->model, span_inputs(at->chunk, at->index));
		break;
	case SPAN_COLUMN_STACK:
		if (span_stack(at->chunk, at->index))
			sqlite3_result_int64(out, span_stack(at->chunk, at->index));
		break;
	case SPAN_COLUMN_CORRELATION:
		if (span_correlation(at->chunk, at->index))
			sqlite3_result_int64(out, (sqlite3_int64)span_correlation(at->chunk, at->index));
		break;
	default:
		sqlite3_result_int64(out, at->chunk->start_ns[at->index]);
	}
}

static void flag_cell(const struct span_cursor *at, sqlite3_context *out, int number)
{
	uint8_t flags = at->chunk->flags[at->index];

	if (number == SPAN_COLUMN_INCOMPLETE)
		sqlite3_result_int(out,
		                   (flags & (SPAN_IS_OPEN | SPAN_END_IS_LOST | SPAN_START_IS_LOST | SPAN_IS_CUT)) != 0);
	else
		sqlite3_result_int(out, at->chunk->kind[at->index] == SPAN_OP && (flags & SPAN_IS_BACKWARD));
}

static int span_module_column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int number)
{
	const struct span_cursor *at = (const struct span_cursor *)cursor;
	const struct span_chunk *chunk = at->chunk;
	uint32_t index = at->index;

	switch (number) {
	case SPAN_COLUMN_NAME:
		query_result_string(out, at->model, chunk->name[index]);
		break;
	case SPAN_COLUMN_KIND:
		query_result_text(out, span_kind_name(chunk->kind[index]));
		break;
	case SPAN_COLUMN_START:
	case SPAN_COLUMN_END:
		result_time(at, out, number == SPAN_COLUMN_END);
		break;
	case SPAN_COLUMN_DUR:
		sqlite3_result_int64(out, chunk->dur_ns[index]);
		break;
	case SPAN_COLUMN_DEPTH:
		sqlite3_result_int(out, chunk->depth[index]);
		break;
	case SPAN_COLUMN_PARENT:
		if (chunk->parent[index] != MODEL_NONE)
			sqlite3_result_int64(out, chunk->parent[index]);
		break;
	case SPAN_COLUMN_STEP:
		result_step(at, out);
		break;
	case SPAN_COLUMN_PHASE:
		if (chunk->phase[index])
			query_result_text(out, phase_name(chunk->phase[index]));
		break;
	case SPAN_COLUMN_SHAPE:
		query_result_string(out, at->model, chunk->shape[index]);
		break;
	case SPAN_COLUMN_INCOMPLETE:
	case SPAN_COLUMN_BACKWARD:
		flag_cell(at, out, number);
		break;
	default:
		if (number <= SPAN_COLUMN_DEVICE)
			place_cell(at, out, number);
		else
			extra_cell(at, out, number);
	}
	return SQLITE_OK;
}

static int row_number(sqlite3_vtab_cursor *cursor, sqlite3_int64 *number)
{
	const struct span_cursor *at = (const struct span_cursor *)cursor;

	*number = (sqlite3_int64)at->track << 32 | at->row;
	return SQLITE_OK;
}

const sqlite3_module query_span_module = {
	.xConnect = span_module_connect_table,
	.xBestIndex = span_module_best_index,
	.xDisconnect = query_disconnect,
	.xOpen = open_cursor,
	.xClose = query_close,
	.xFilter = span_module_filter,
	.xNext = next,
	.xEof = is_at_end,
	.xColumn = span_module_column,
	.xRowid = row_number,
};
