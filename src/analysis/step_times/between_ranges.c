/* SPDX-License-Identifier: Apache-2.0
 *
 * between_ranges.c: the table `between_ranges`: the ranges and annotations of the threads that mark steps while no
 * step is open: callbacks at the end of an epoch, validation, saving. The table `ops` has the spans that start in
 * steps.
 */
#include "analysis/analysis_context.h"
#include "analysis/shared/intervals.h"
#include "analysis/step_times/step_times.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "base/storage.h"
#include "model/number_map.h"
#include "table/bound.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	RANGE_NAME,
	RANGE_KIND,
	RANGE_CALLS,
	RANGE_TOTAL,
	RANGE_SELF,
	RANGE_BETWEEN,
	RANGE_MAX,
	RANGE_COLUMNS,
};

static const struct table_column columns[RANGE_COLUMNS] = {
	[RANGE_NAME] = {.name = "name",
                        .type = TABLE_TEXT,
                        .role = ROLE_KEY,
                        .definition = "name of the range or annotation; \"(more names)\": sum of all rows except the "
                                      "100000 with the most self time"},
	[RANGE_KIND] = {.name = "kind", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "range or annotation"},
	[RANGE_CALLS] = {.name = "calls",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .definition = "number of times that at least a part of it was outside steps",
                         .rules = RULE_NOT_NEGATIVE,
                         .more = MORE_SUM},
	[RANGE_TOTAL] = {.name = "total_ns",
                         .title = "total",
                         .type = TABLE_INT,
                         .unit = UNIT_NS,
                         .definition = "time in it outside steps; a range nested in one of the same name counts twice",
                         .rules = RULE_NOT_NEGATIVE,
                         .more = MORE_SUM},
	[RANGE_SELF] = {.name = "self_ns",
                        .title = "self",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "part of total_ns outside nested ranges, annotations and phases",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                        .other = "total_ns",
                        .more = MORE_SUM},
	[RANGE_BETWEEN] = {.name = "between_ns",
                           .title = "between steps",
                           .type = TABLE_INT,
                           .unit = UNIT_NS,
                           .definition = "part of self_ns between the first and the last step of the process",
                           .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                           .other = "self_ns",
                           .more = MORE_SUM},
	[RANGE_MAX] = {.name = "max_ns",
                       .title = "max",
                       .type = TABLE_INT,
                       .unit = UNIT_NS,
                       .definition = "longest time outside steps in one occurrence",
                       .rules = RULE_NOT_NEGATIVE,
                       .more = MORE_MOST},
};

struct between_group {
	uint32_t name, kind;
	int64_t calls, total_ns, self_ns, between_ns, max_ns;
};

#define NO_GROUP UINT32_MAX

struct open_range {
	uint32_t group; /* NO_GROUP: a phase */
	uint16_t depth;
	int64_t end_ns;
	int64_t outside_ns, between_ns; /* self time so far */
	int64_t all_ns;                 /* total time outside steps */
};

struct between_fold {
	const struct model *model;
	const struct step_times *times;
	bool is_window;         /* only from the first to the last selected step */
	struct intervals steps; /* of the current process */
	int64_t first_ns, last_ns;
	struct number_map by_name;
	struct between_group *groups;
	uint32_t group_count, group_capacity;
	struct open_range *stack;
	uint32_t stack_depth, stack_capacity;
};

/* ---- one process ---- */

static bool take_process(struct between_fold *fold, uint32_t process)
{
	const struct step_times *times = fold->times;
	uint32_t i = 0;

	while (i < times->span_count && times->spans[i].process != process)
		i++;
	if (i == times->span_count)
		return false;
	fold->first_ns = times->spans[i].first_ns;
	fold->last_ns = times->spans[i].last_ns;
	intervals_release(&fold->steps);
	for (uint32_t step = 0; step < fold->model->steps_count; step++)
		if (fold->model->steps[step].process == process)
			intervals_add(&fold->steps, fold->model->steps[step].start_ns, fold->model->steps[step].end_ns);
	return true;
}

static int64_t outside_steps(const struct between_fold *fold, int64_t start_ns, int64_t end_ns)
{
	int64_t ns;

	if (end_ns <= start_ns)
		return 0;
	ns = intervals_length(start_ns, end_ns);
	clamped_subtract(&ns, intervals_within(&fold->steps, start_ns, end_ns));
	return ns;
}

/* ---- the fold ---- */

static uint32_t between_ranges_find_group(struct between_fold *fold, uint32_t name, uint32_t kind)
{
	uint32_t found = number_map_add(&fold->by_name, (uint64_t)kind << 32 | name, fold->group_count);

	if (found == fold->group_count) {
		STORAGE_GROW(fold->model->storage, fold->groups, fold->group_count, fold->group_capacity, 64);
		fold->groups[fold->group_count++] = (struct between_group){.name = name, .kind = kind};
	}
	return found;
}

/* Leaves ranges that have ended, or that are not around what begins at that depth. Depths alone do not tell: calls of
 * Python between them count, so a later range may be deeper without being nested. */
static void between_ranges_leave(struct between_fold *fold, uint32_t depth, int64_t now_ns)
{
	while (fold->stack_depth && (fold->stack[fold->stack_depth - 1].depth >= depth ||
	                             fold->stack[fold->stack_depth - 1].end_ns <= now_ns)) {
		const struct open_range *left = &fold->stack[--fold->stack_depth];
		struct between_group *group = left->group == NO_GROUP ? NULL : &fold->groups[left->group];

		if (!group)
			continue;
		group->calls++;
		clamped_add(&group->total_ns, left->all_ns);
		clamped_add(&group->self_ns, left->outside_ns);
		clamped_add(&group->between_ns, left->between_ns);
		group->max_ns = left->all_ns > group->max_ns ? left->all_ns : group->max_ns;
	}
}

static void between_ranges_visit(struct between_fold *fold, const struct span_chunk *chunk, uint32_t i)
{
	int64_t start_ns = chunk->start_ns[i], end_ns = start_ns + chunk->dur_ns[i], outside_ns, between_ns;
	struct open_range *around;

	between_ranges_leave(fold, chunk->depth[i], start_ns);
	between_ns = outside_steps(fold, start_ns > fold->first_ns ? start_ns : fold->first_ns,
	                           end_ns < fold->last_ns ? end_ns : fold->last_ns);
	outside_ns = fold->is_window ? between_ns : outside_steps(fold, start_ns, end_ns);
	if (!outside_ns)
		return;
	around = fold->stack_depth ? &fold->stack[fold->stack_depth - 1] : NULL;
	if (around) {
		clamped_subtract(&around->outside_ns, outside_ns);
		clamped_subtract(&around->between_ns, between_ns);
	}
	MEMORY_GROW(fold->stack, fold->stack_depth, fold->stack_capacity, 16);
	assert(fold->stack);
	fold->stack[fold->stack_depth++] = (struct open_range){
		.group = chunk->kind[i] == SPAN_PHASE ? NO_GROUP
	                                              : between_ranges_find_group(fold, chunk->name[i], chunk->kind[i]),
		.depth = chunk->depth[i],
		.end_ns = end_ns,
		.outside_ns = outside_ns,
		.between_ns = between_ns,
		.all_ns = outside_ns,
	};
}

/* Most spans are operators: the loop skips them cheaply. */
static void visit_track(struct between_fold *fold, const struct track *track)
{
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++)
			if (chunk->kind[i] == SPAN_RANGE || chunk->kind[i] == SPAN_ANNOTATION ||
			    chunk->kind[i] == SPAN_PHASE)
				between_ranges_visit(fold, chunk, i);
		model_chunk_done(fold->model, chunk);
	}
	between_ranges_leave(fold, 0, INT64_MAX);
}

static void between_ranges_fold_run(struct between_fold *fold)
{
	bool *step_tracks = step_times_tracks(fold->model);
	uint32_t process = MODEL_NONE;
	bool has_steps = false;

	for (uint32_t track = 0; track < fold->model->tracks_count; track++) {
		if (!step_tracks[track])
			continue;
		if (fold->model->tracks[track]->process != process) {
			process = fold->model->tracks[track]->process;
			has_steps = take_process(fold, process);
		}
		if (has_steps)
			visit_track(fold, fold->model->tracks[track]);
	}
	free(step_tracks);
}

static void between_ranges_fold_release(struct between_fold *fold)
{
	intervals_release(&fold->steps);
	number_map_release(&fold->by_name);
	storage_release(fold->model->storage, fold->groups);
	free(fold->stack);
}

/* ---- the table ---- */

static void between_ranges_add_rows(struct table *table, const struct between_fold *fold)
{
	table_bound(table, RANGE_SELF);
	for (uint32_t i = 0; i < fold->group_count; i++) {
		const struct between_group *group = &fold->groups[i];
		int row = table_row(table);

		table_set_text(table, row, RANGE_NAME, model_text(fold->model, group->name));
		table_set_text(table, row, RANGE_KIND, span_kind_name(group->kind));
		table_set_int(table, row, RANGE_CALLS, group->calls);
		table_set_int(table, row, RANGE_TOTAL, group->total_ns);
		table_set_int(table, row, RANGE_SELF, group->self_ns);
		table_set_int(table, row, RANGE_BETWEEN, group->between_ns);
		table_set_int(table, row, RANGE_MAX, group->max_ns);
	}
	table_add_more(table, RANGE_NAME);
	table_sort(table, RANGE_NAME, true);
	table_sort(table, RANGE_SELF, false);
}

static enum status between_ranges_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct between_fold fold = {.model = model,
	                            .times = analysis_context_step_times(context),
	                            .is_window = context->options.filter.has_steps,
	                            .by_name = {.storage = model->storage}};

	table_init(table, "between_ranges", "Ranges outside steps",
	           "time outside steps in ranges and annotations, on the threads that mark steps");
	table_columns(table, columns, RANGE_COLUMNS);
	between_ranges_fold_run(&fold);
	if (fold.group_count)
		between_ranges_add_rows(table, &fold);
	else
		table->empty = fold.times->span_count ? "the program has no range or annotation outside steps"
		                                      : step_times_empty_reason(fold.times);
	between_ranges_fold_release(&fold);
	return STATUS_OK;
}

const struct analysis analysis_between_ranges = {
	.name = "between_ranges",
	.row = "range or annotation between steps",
	.question = "in which ranges does the program spend time between steps?",
	.run = between_ranges_run,
};
