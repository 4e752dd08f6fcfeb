/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.c: the tables `lines` and `stacks`: the cost of the operators that a line of the user's program, or a stack,
 * has issued. Costs are self times, so that every operator counts once, and the rows sum to all time in operators. The
 * work of a backward belongs to the line of its forward.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/operators/launched_time.h"
#include "analysis/operators/python_source.h"
#include "analysis/shared/python_places.h"
#include "analysis/step_times/step_kinds.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/reasons.h"
#include "table/bound.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct cost {
	int64_t issued_ns, backward_ns, calls, device_ns;
};

struct costs {
	struct cost certain, sampled; /* sampled: in steps that stand for others */
	struct step_sightings seen;
};

struct origin { /* of an operator, or of the span around it */
	uint32_t stack;
	bool is_backward;
};

struct line_fold {
	const struct model *model;
	const struct step_times *times;
	bool is_by_stack;
	struct costs *costs;      /* by stack */
	struct model_link *links; /* from forward to backward, sorted by the backward */
	uint32_t link_count, next_link;
	struct launched_time launched;
	struct origin *open; /* by depth */
	uint32_t open_capacity;
	int64_t total_ns;
	uint64_t outside;
};

static int compare_links(const void *left, const void *right)
{
	const struct model_link *a = left, *b = right;
	if (a->to_track != b->to_track)
		return a->to_track < b->to_track ? -1 : 1;
	return (a->to_row > b->to_row) - (a->to_row < b->to_row);
}

static void find_links(struct line_fold *fold)
{
	const struct model *model = fold->model;
	fold->links = storage_resize(model->storage, NULL, model->links_count + 1, sizeof *fold->links);
	for (uint32_t i = 0; i < model->links_count; i++) {
		const struct model_link *link = &model->links[i];
		if (link->kind == STEPSCOPE_LINK_BACKWARD && link->from_row != MODEL_NONE && link->to_row != MODEL_NONE)
			fold->links[fold->link_count++] = *link;
	}
	merge_sort_in(model->storage, fold->links, fold->link_count, sizeof *fold->links, compare_links);
}

/* Returns the stack that started the forward of this backward; 0: it is not a backward, or the stack is unknown. */
static uint32_t forward_stack(struct line_fold *fold, const struct span_view *span)
{
	const struct model_link *link = &fold->links[fold->next_link];
	while (fold->next_link < fold->link_count &&
	       (link->to_track < span->track_index ||
	        (link->to_track == span->track_index && link->to_row < span->row)))
		link = &fold->links[++fold->next_link];
	if (fold->next_link == fold->link_count || link->to_track != span->track_index || link->to_row != span->row)
		return 0;
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(fold->model->tracks[link->from_track], link->from_row, &index);
	return span_stack(chunk, index);
}

static struct cost *cost_of(const struct line_fold *fold, uint32_t stack, int32_t step)
{
	assert(stack < fold->model->stacks_count || !stack);
	struct costs *costs = &fold->costs[stack];
	return step_kinds_is_sampled(fold->times, step) ? &costs->sampled : &costs->certain;
}

static bool lines_is_operator(uint8_t kind)
{
	return kind == SPAN_OP || kind == SPAN_COLLECTIVE;
}

/* Device work of a call belongs to the operator around it: the first span outwards with a known stack. */
static void add_launched(struct line_fold *fold, const struct span_view *span)
{
	const struct launched_call *call = launched_time_at(&fold->launched, span->track_index, span->row);
	if (!call || !step_times_measures(fold->times, span->step))
		return;
	struct origin origin = fold->open[span->depth];
	for (uint32_t depth = span->depth; !origin.stack && depth-- > 0;)
		origin = fold->open[depth];
	clamped_add(&cost_of(fold, origin.stack, span->step)->device_ns, call->dur_ns);
}

static bool lines_visit(void *context, const struct span_view *span)
{
	struct line_fold *fold = context;
	if (span->depth >= fold->open_capacity) {
		fold->open_capacity = span->depth + 64u;
		fold->open = memory_resize(fold->open, fold->open_capacity, sizeof *fold->open);
	}
	struct origin origin = {span->stack, false};
	uint32_t forward = fold->is_by_stack ? 0 : forward_stack(fold, span);
	if (forward)
		origin = (struct origin){forward, true};
	else if (span->depth && fold->open[span->depth - 1].is_backward)
		origin = fold->open[span->depth - 1];
	fold->open[span->depth] = origin;
	add_launched(fold, span);
	if (!lines_is_operator(span->kind))
		return true;
	if (!step_times_measures(fold->times, span->step)) {
		fold->outside++;
		return true;
	}
	struct cost *cost = cost_of(fold, origin.stack, span->step);
	step_kinds_sight(&fold->costs[origin.stack].seen, fold->times, span->step, 1);
	*(origin.is_backward ? &cost->backward_ns : &cost->issued_ns) += span->self_ns;
	cost->calls += !origin.is_backward;
	clamped_add(&fold->total_ns, span->self_ns);
	return true;
}

static void lines_fold_run(struct line_fold *fold, struct analysis_context *context, bool is_by_stack)
{
	const struct model *model = context->model;

	*fold = (struct line_fold){.model = model, .is_by_stack = is_by_stack};
	fold->times = analysis_context_step_times(context);
	launched_time_init(&fold->launched, model, analysis_context_launches(context));
	fold->costs = storage_resize(model->storage, NULL, model->stacks_count + 1, sizeof *fold->costs);
	memset(fold->costs, 0, (model->stacks_count + 1) * sizeof *fold->costs);
	find_links(fold);
	for (uint32_t track = 0; track < model->tracks_count; track++)
		model_visit_spans(model, track, lines_visit, fold);
}

static void lines_fold_release(struct line_fold *fold)
{
	storage_release(fold->model->storage, fold->costs);
	storage_release(fold->model->storage, fold->links);
	free(fold->open);
	launched_time_release(&fold->launched);
}

/* ---- both tables ------------------------------------------------------------------------------------------------- */

static const char *why_none(const struct model *model, struct arena *arena)
{
	const char *reason = model_meta(model, MODEL_NONE, "torch.lines");
	if (reason && strcmp(reason, "yes") != 0)
		return arena_printf(arena, "no Python lines were recorded: %s", reason);
	return reason ? "no operator was called from Python" : model_reason(model, REASON_NO_LINES);
}

static bool has_any(const struct costs *costs)
{
	const struct cost *a = &costs->certain, *b = &costs->sampled;
	return a->calls || a->backward_ns || a->issued_ns || a->device_ns || b->calls || b->backward_ns ||
	       b->issued_ns || b->device_ns;
}

static bool has_stacks(const struct model *model, const struct costs *costs)
{
	for (uint32_t i = 1; i < model->stacks_count; i++)
		if (costs[i].certain.calls || costs[i].certain.backward_ns || costs[i].sampled.calls ||
		    costs[i].sampled.backward_ns)
			return true;
	return false;
}

static void say_what_is_missing(const struct line_fold *fold, struct table *table, int least)
{
	const char *lines = "", *steps = "";
	if (table->row_count && python_lines_are_of_functions(fold->model))
		lines = "lines are the starts of functions: torch.profiler traces do not record the calling line";
	if (!fold->times->count)
		steps = "no steps were marked: all recorded operators are counted";
	else if (fold->outside)
		steps = arena_printf(&table->arena, "%" PRIu64 " operators outside the measured steps are not counted",
		                     fold->outside);
	step_kinds_note_sums(table, fold->times, least);
	const char *part = table->note ? table->note : "";
	if (*part || *lines || *steps)
		table->note = arena_printf(&table->arena, "%s%s%s%s%s", part, *part && (*lines || *steps) ? "; " : "",
		                           lines, *lines && *steps ? "; " : "", steps);
}

static struct cost lines_join(const struct costs *costs, double factor)
{
	struct cost sum = costs->certain;
	step_kinds_join(&sum.issued_ns, costs->sampled.issued_ns, factor);
	step_kinds_join(&sum.backward_ns, costs->sampled.backward_ns, factor);
	step_kinds_join(&sum.calls, costs->sampled.calls, factor);
	step_kinds_join(&sum.device_ns, costs->sampled.device_ns, factor);
	return sum;
}

static int64_t self_of(const struct cost *cost, bool is_by_stack)
{
	return cost->issued_ns + (is_by_stack ? 0 : cost->backward_ns);
}

/* Returns the cost in the run. The total of all rows grows by as much as this row. */
static struct cost cost_of_run(struct line_fold *fold, const struct costs *costs)
{
	struct cost recorded = lines_join(costs, 1),
		    sum = lines_join(costs, step_kinds_factor(fold->times, &costs->seen));
	clamped_add(&fold->total_ns, self_of(&sum, fold->is_by_stack) - self_of(&recorded, fold->is_by_stack));
	return sum;
}

static void set_share(struct table *table, int row, int column, int64_t part_ns, int64_t total_ns)
{
	if (total_ns > 0)
		table_set_double(table, row, column, (double)part_ns / (double)total_ns);
	else
		table_set_missing(table, row, column, "the operators took no time");
}

static const struct table_column self_column = {
	.name = "self_ns",
	.title = "self",
	.type = TABLE_INT,
	.unit = UNIT_NS,
	.definition = "time in the row's operators, without operators nested in them; the rows sum to all "
		      "time in operators",
	.rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL,
	.more = MORE_SUM};
static const struct table_column share_column = {
	.name = "self_ratio",
	.title = "%",
	.type = TABLE_DOUBLE,
	.unit = UNIT_RATIO,
	.role = ROLE_SHARE,
	.definition = "share of the self time",
	.denominator = "self time of all operators that start in measured steps, in all threads",
	.rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE,
	.more = MORE_SUM};
static const struct table_column calls_column = {
	.name = "calls",
	.type = TABLE_INT,
	.unit = UNIT_COUNT,
	.definition = "number of operators that the row issued, including nested operators",
	.rules = RULE_NOT_NEGATIVE,
	.more = MORE_SUM};

static const struct table_column device_column = {
	.name = "device_ns",
	.title = "device",
	.type = TABLE_INT,
	.unit = UNIT_NS,
	.definition = "total duration of the kernels, copies and fills that these operators launched",
	.rules = RULE_NOT_NEGATIVE,
	.more = MORE_SUM};

static void set_device(struct table *table, int row, int column, const struct line_fold *fold, const struct cost *cost)
{
	if (fold->launched.count)
		table_set_int(table, row, column, cost->device_ns);
	else
		table_set_missing(table, row, column, DEVICE_NOTHING);
}

/* ---- by line ----------------------------------------------------------------------------------------------------- */

enum {
	LINE_SELF,
	LINE_RATIO,
	LINE_ISSUED,
	LINE_BACKWARD,
	LINE_DEVICE,
	LINE_CALLS,
	LINE_PLACE,
	LINE_FUNCTION,
	LINE_SOURCE,
	LINE_LEAST,
	LINE_COLUMNS,
};

static void add_line_columns(struct table *table, int64_t total_ns)
{
	struct table_column self = self_column;
	self.total = (double)total_ns;
	const struct table_column columns[LINE_COLUMNS] = {
		[LINE_PLACE] =
			{.name = "line",
	                 .type = TABLE_TEXT,
	                 .role = ROLE_KEY,
	                 .definition =
	                         "file and line of the innermost frame outside installed packages and Python's "
	                         "library, or of the innermost frame if there is no such frame. \"(no line of "
	                         "Python)\": C++ threads, and operators without a recorded stack. In a torch.profiler "
	                         "trace, the line is the start of the function (or the line it had reached when the "
	                         "profiler started); the row covers everything that the function called",
	                 .keeps_end = true},
		[LINE_FUNCTION] = {.name = "function",
	                           .type = TABLE_TEXT,
	                           .role = ROLE_KEY,
	                           .definition = "function that contains the line"},
		[LINE_SELF] = self,
		[LINE_RATIO] = share_column,
		[LINE_ISSUED] =
			{.name = "issued_ns",
	                 .title = "called",
	                 .type = TABLE_INT,
	                 .unit = UNIT_NS,
	                 .definition =
	                         "part of self_ns in operators that the line called (or its function, if the line is unknown)",
	                 .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
	                 .other = "self_ns",
	                 .more = MORE_SUM},
		[LINE_BACKWARD] =
			{.name = "backward_ns",
	                 .title = "backward",
	                 .type = TABLE_INT,
	                 .unit = UNIT_NS,
	                 .definition = "part of self_ns in the backward of operators that the line called, whichever line "
	                               "started the backward",
	                 .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
	                 .other = "self_ns",
	                 .more = MORE_SUM},
		[LINE_DEVICE] = device_column,
		[LINE_CALLS] = calls_column,
		[LINE_SOURCE] =
			{.name = "source",
	                 .type = TABLE_TEXT,
	                 .role = ROLE_EVIDENCE,
	                 .definition =
	                         "text of the line, if the file is on this machine and has not changed since the run"},
		[LINE_LEAST] = STEP_KINDS_LEAST_COLUMN,
	};
	table_columns(table, columns, LINE_COLUMNS);
}

struct lines_place {
	uint32_t file, line, name; /* file 0 and line 0: no place */
	struct costs costs;
	struct cost cost; /* in the run */
};

static int compare_places(const void *left, const void *right)
{
	const struct lines_place *a = left, *b = right;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

static void add_cost(struct cost *sum, const struct cost *more)
{
	clamped_add(&sum->issued_ns, more->issued_ns);
	clamped_add(&sum->backward_ns, more->backward_ns);
	clamped_add(&sum->device_ns, more->device_ns);
	sum->calls += more->calls;
}

/* Joins the costs of stacks by the user's line, in place. Returns the number of lines. */
static uint32_t gather_places(struct line_fold *fold, struct lines_place *places)
{
	const struct model *model = fold->model;
	uint32_t *users = python_user_frames(model), count = 0, kept = 0;
	for (uint32_t i = 0; i < model->stacks_count; i++) {
		const struct stack_node *frame = &model->stacks[users[i] ? users[i] : i];
		if (has_any(&fold->costs[i]))
			places[count++] = (struct lines_place){
				frame->file, frame->line, frame->frame, fold->costs[i], {0}};
	}
	free(users);
	merge_sort_in(model->storage, places, count, sizeof *places, compare_places);
	for (uint32_t i = 0; i < count; i++) {
		if (kept && compare_places(&places[kept - 1], &places[i]) == 0) {
			add_cost(&places[kept - 1].costs.certain, &places[i].costs.certain);
			add_cost(&places[kept - 1].costs.sampled, &places[i].costs.sampled);
			step_sightings_add_all(&places[kept - 1].costs.seen, &places[i].costs.seen);
		} else {
			places[kept++] = places[i];
		}
	}
	for (uint32_t i = 0; i < kept; i++)
		places[i].cost = cost_of_run(fold, &places[i].costs);
	return kept;
}

static void lines_set_place(struct table *table, int row, const struct line_fold *fold, const struct lines_place *place,
                            struct python_source *source)
{
	const char *file = model_text(fold->model, place->file), *reason;
	if (!*file) {
		table_set_text(table, row, LINE_PLACE, "(no line of Python)");
		table_set_missing(table, row, LINE_FUNCTION, "the Python function is unknown");
		table_set_missing(table, row, LINE_SOURCE, "the Python line is unknown");
		return;
	}
	if (place->line)
		table_set_text(
			table, row, LINE_PLACE,
			arena_printf(&table->arena, "%s:%u", python_short_file(file, source->folder), place->line));
	else
		table_set_text(table, row, LINE_PLACE,
		               arena_printf(&table->arena, "%s:?", python_short_file(file, source->folder)));
	table_set_text(table, row, LINE_FUNCTION, model_text(fold->model, place->name));
	const char *text = python_source_line(source, file, place->line, &reason);
	if (text)
		table_set_text(table, row, LINE_SOURCE, text);
	else
		table_set_missing(table, row, LINE_SOURCE, reason);
}

static void add_line_rows(struct table *table, struct line_fold *fold)
{
	struct storage *storage = fold->model->storage;
	struct lines_place *places = storage_resize(storage, NULL, fold->model->stacks_count + 1, sizeof *places);
	uint32_t count = gather_places(fold, places);
	table->columns[LINE_SELF].total = (double)fold->total_ns;
	struct python_source source;
	python_source_init(&source, fold->model);
	table_bound(table, LINE_SELF);
	for (uint32_t i = 0; i < count; i++) {
		const struct cost *cost = &places[i].cost;
		int64_t self_ns = cost->issued_ns + cost->backward_ns;
		int row = table_row(table);
		lines_set_place(table, row, fold, &places[i], &source);
		table_set_int(table, row, LINE_SELF, self_ns);
		set_share(table, row, LINE_RATIO, self_ns, fold->total_ns);
		table_set_int(table, row, LINE_ISSUED, cost->issued_ns);
		table_set_int(table, row, LINE_BACKWARD, cost->backward_ns);
		set_device(table, row, LINE_DEVICE, fold, cost);
		table_set_int(table, row, LINE_CALLS, cost->calls);
		step_kinds_set_least(table, row, LINE_LEAST, fold->times, &places[i].costs.seen);
	}
	table_add_more(table, LINE_PLACE);
	python_source_release(&source);
	storage_release(storage, places);
	table_sort(table, LINE_PLACE, true);
	table_sort(table, LINE_SELF, false);
}

static enum status run_lines(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct line_fold fold;
	lines_fold_run(&fold, context, false);
	table_init(table, "lines", "Operators by Python line",
	           "operators that start in steps with recorded operators, by the user's line that "
	           "issued them or their forward");
	add_line_columns(table, fold.total_ns);
	table->columns[LINE_DEVICE].is_hidden = !fold.launched.count;
	if (has_stacks(model, fold.costs))
		add_line_rows(table, &fold);
	else
		table->empty = step_times_no_operations(context, &table->arena, why_none(model, &table->arena));
	say_what_is_missing(&fold, table, LINE_LEAST);
	lines_fold_release(&fold);
	return STATUS_OK;
}

const struct analysis analysis_lines = {
	.name = "lines",
	.row = "line of the user's program",
	.question = "which lines of the program issue the most expensive operators?",
	.run = run_lines,
	.is_of_operators = true,
};

/* ---- by stack ---------------------------------------------------------------------------------------------------- */

enum {
	STACK_SELF,
	STACK_RATIO,
	STACK_DEVICE,
	STACK_CALLS,
	STACK_TEXT,
	STACK_LEAST,
	STACK_COLUMNS,
};

static void add_stack_columns(struct table *table, int64_t total_ns)
{
	struct table_column self = self_column;
	self.total = (double)total_ns;
	const struct table_column columns[STACK_COLUMNS] = {
		[STACK_SELF] = self,
		[STACK_RATIO] = share_column,
		[STACK_DEVICE] = device_column,
		[STACK_CALLS] = calls_column,
		[STACK_TEXT] =
			{.name = "stack",
	                 .type = TABLE_TEXT,
	                 .role = ROLE_KEY,
	                 .definition =
	                         "Python frames that issued the operators, outermost first, separated by semicolons; "
	                         "for a backward, the frames that started it"},
		[STACK_LEAST] = STEP_KINDS_LEAST_COLUMN,
	};
	table_columns(table, columns, STACK_COLUMNS);
}

static void add_stack_rows(struct table *table, struct line_fold *fold)
{
	struct storage *storage = fold->model->storage;
	struct cost *costs = storage_resize(storage, NULL, fold->model->stacks_count + 1, sizeof *costs);
	for (uint32_t i = 0; i < fold->model->stacks_count; i++)
		costs[i] = cost_of_run(fold, &fold->costs[i]);
	table->columns[STACK_SELF].total = (double)fold->total_ns;
	table_bound(table, STACK_SELF);
	for (uint32_t i = 0; i < fold->model->stacks_count; i++) {
		const struct cost *cost = &costs[i];
		if (!cost->calls && !cost->device_ns)
			continue;
		int row = table_row(table);
		step_kinds_set_least(table, row, STACK_LEAST, fold->times, &fold->costs[i].seen);
		table_set_int(table, row, STACK_SELF, cost->issued_ns);
		set_share(table, row, STACK_RATIO, cost->issued_ns, fold->total_ns);
		set_device(table, row, STACK_DEVICE, fold, cost);
		table_set_int(table, row, STACK_CALLS, cost->calls);
		table_set_text(table, row, STACK_TEXT, python_stack_text(fold->model, i, &table->arena));
	}
	storage_release(storage, costs);
	table_add_more(table, STACK_TEXT);
	table_sort(table, STACK_TEXT, true);
	table_sort(table, STACK_SELF, false);
}

static enum status run_stacks(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct line_fold fold;
	lines_fold_run(&fold, context, true);
	table_init(table, "stacks", "Operators by Python stack",
	           "operators that start in steps with recorded operators, by the Python stack that issued them");
	add_stack_columns(table, fold.total_ns);
	table->columns[STACK_DEVICE].is_hidden = !fold.launched.count;
	if (has_stacks(model, fold.costs))
		add_stack_rows(table, &fold);
	else
		table->empty = step_times_no_operations(context, &table->arena, why_none(model, &table->arena));
	say_what_is_missing(&fold, table, STACK_LEAST);
	lines_fold_release(&fold);
	return STATUS_OK;
}

const struct analysis analysis_stacks = {
	.name = "stacks",
	.row = "Python stack",
	.question = "which Python stacks issue the most expensive operators?",
	.run = run_stacks,
	.is_of_operators = true,
};
