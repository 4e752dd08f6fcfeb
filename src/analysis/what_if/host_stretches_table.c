/* SPDX-License-Identifier: Apache-2.0
 *
 * host_stretches_table.c: the table `host_stretches`: where the steps' thread is busy or asleep without an operator, a wait
 * or a known cause. The cut `host` removes these stretches.
 */
#include "analysis/analysis_context.h"
#include "analysis/shared/labels.h"
#include "analysis/shared/span_places.h"
#include "analysis/what_if/replayed.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/statistics.h"
#include "replay/host_stretches.h"

#include <stdlib.h>

enum {
	STRETCH_PROCESS,
	STRETCH_IN,
	STRETCH_AFTER,
	STRETCH_BEFORE,
	STRETCH_LINE,
	STRETCH_BETWEEN,
	STRETCH_COUNT,
	STRETCH_STEPS,
	STRETCH_TOTAL,
	STRETCH_MEDIAN,
	STRETCH_MAX,
	STRETCH_STEP,
	STRETCH_RATIO,
	STRETCH_COLUMNS,
};

#define OF_STEPS "time of the replayed steps with operators, with the time between them"

static const struct table_column stretch_columns[STRETCH_COLUMNS] = {
	[STRETCH_PROCESS] = {.name = "process",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "process of the steps' thread"},
	[STRETCH_IN] = {.name = "inside",
                        .type = TABLE_TEXT,
                        .role = ROLE_KEY,
                        .definition = "innermost range, module or phase around the first of them"},
	[STRETCH_AFTER] = {.name = "after",
                           .type = TABLE_TEXT,
                           .role = ROLE_KEY,
                           .definition = "event that ends before it"},
	[STRETCH_BEFORE] = {.name = "before",
                            .type = TABLE_TEXT,
                            .role = ROLE_KEY,
                            .definition = "event that starts after it"},
	[STRETCH_LINE] = {.name = "line",
                          .type = TABLE_TEXT,
                          .definition = "program line of the event after it, if Python lines were recorded"},
	[STRETCH_BETWEEN] = {.name = "is_between",
                             .title = "between",
                             .type = TABLE_BOOL,
                             .role = ROLE_EVIDENCE,
                             .definition = "it lies between two steps",
                             .is_hidden = true},
	[STRETCH_COUNT] = {.name = "count",
                           .type = TABLE_INT,
                           .unit = UNIT_COUNT,
                           .definition = "number of stretches between these two events",
                           .rules = RULE_NOT_NEGATIVE},
	[STRETCH_STEPS] = {.name = "steps",
                           .type = TABLE_INT,
                           .unit = UNIT_COUNT,
                           .role = ROLE_EVIDENCE,
                           .definition = "number of replayed steps with operators: the other columns cover these",
                           .rules = RULE_NOT_NEGATIVE},
	[STRETCH_TOTAL] = {.name = "total_ns",
                           .title = "total",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_NS,
                           .definition = "sum of their durations",
                           .rules = RULE_NOT_NEGATIVE},
	[STRETCH_MEDIAN] = {.name = "p50_ns",
                            .title = "p50",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_NS,
                            .definition = "their median",
                            .rules = RULE_NOT_NEGATIVE},
	[STRETCH_MAX] = {.name = "max_ns",
                         .title = "max",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_NS,
                         .definition = "the longest",
                         .rules = RULE_NOT_NEGATIVE},
	[STRETCH_STEP] = {.name = "step_ns",
                          .title = "per step",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_NS,
                          .definition = "total_ns by the number of steps",
                          .rules = RULE_NOT_NEGATIVE},
	[STRETCH_RATIO] = {.name = "ratio",
                           .title = "% of steps",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_RATIO,
                           .role = ROLE_SHARE,
                           .definition = "share of the time of steps",
                           .denominator = OF_STEPS,
                           .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
};

struct stretch_rows {
	struct table *table;
	struct span_places places;
	const struct replay_graph *graph;
	const char *process;
	uint32_t steps;
	double steps_ns;
};

/* Sets the innermost range, module or phase that is open in the stretch. */
static void set_inside(const struct stretch_rows *rows, int row, const struct host_stretch *stretch)
{
	const struct replay_graph *graph = rows->graph;
	uint32_t number = graph->threads[graph->main_thread].first_track, i;
	const struct track *track = graph->model->tracks[number];
	int64_t middle_ns = graph->origin_ns + (int64_t)((stretch->start_ns + stretch->end_ns) / 2);

	for (uint32_t at = span_open_at(graph->model, number, middle_ns); at != MODEL_NONE;) {
		const struct span_chunk *chunk = track_chunk(track, at, &i);
		uint8_t kind = chunk->kind[i];

		if (kind == SPAN_RANGE || kind == SPAN_MODULE || kind == SPAN_PHASE || kind == SPAN_ANNOTATION) {
			table_set_text(rows->table, row, STRETCH_IN, model_text(graph->model, chunk->name[i]));
			return;
		}
		at = chunk->parent[i];
	}
	table_set_missing(rows->table, row, STRETCH_IN, "no range, module or phase is open then");
}

static void set_line(struct stretch_rows *rows, int row, const struct host_stretch *stretch)
{
	uint32_t line = stretch->row == MODEL_NONE ? 0 : span_line_of(&rows->places, stretch->track, stretch->row);

	if (line)
		table_set_text(rows->table, row, STRETCH_LINE,
		               span_line_text(&rows->places, line, &rows->table->arena));
	else
		table_set_missing(rows->table, row, STRETCH_LINE, "no line was recorded for the event after it");
}

static void set_times(const struct stretch_rows *rows, int row, const struct host_stretch *list, uint32_t count)
{
	double *values = memory_resize(NULL, count, sizeof(*values)), sum_ns = 0;

	for (uint32_t i = 0; i < count; i++) {
		values[i] = list[i].end_ns - list[i].start_ns;
		sum_ns += values[i];
	}
	sort_doubles(values, count);
	table_set_int(rows->table, row, STRETCH_COUNT, count);
	table_set_int(rows->table, row, STRETCH_STEPS, rows->steps);
	table_set_double(rows->table, row, STRETCH_TOTAL, sum_ns);
	table_set_double(rows->table, row, STRETCH_MEDIAN, quantile(values, count, 0.5));
	table_set_double(rows->table, row, STRETCH_MAX, values[count - 1]);
	table_set_double(rows->table, row, STRETCH_STEP, sum_ns / rows->steps);
	table_set_double(rows->table, row, STRETCH_RATIO, rows->steps_ns > 0 ? sum_ns / rows->steps_ns : 0);
	free(values);
}

static const char *event_text(const struct model *model, uint32_t name, const char *none)
{
	return name == HOST_STRETCH_CAUSE ? "garbage collection or compilation" : name ? model_text(model, name) : none;
}

static void add_place(struct stretch_rows *rows, const struct host_stretch *list, uint32_t count)
{
	const struct model *model = rows->graph->model;
	int row = table_row(rows->table);

	table_set_text(rows->table, row, STRETCH_PROCESS, rows->process);
	set_inside(rows, row, list);
	table_set_text(rows->table, row, STRETCH_AFTER,
	               event_text(model, list->before, list->is_between ? "end of a step" : "begin of a step"));
	table_set_text(rows->table, row, STRETCH_BEFORE,
	               event_text(model, list->after, list->is_between ? "begin of a step" : "end of a step"));
	set_line(rows, row, list);
	table_set_bool(rows->table, row, STRETCH_BETWEEN, list->is_between);
	set_times(rows, row, list, count);
}

static void measure_steps(struct stretch_rows *rows)
{
	const struct replay_graph *graph = rows->graph;

	rows->steps = 0;
	rows->steps_ns = 0;
	for (uint32_t s = 0; s < graph->step_count; s++)
		if (graph->steps[s].has_operators) {
			rows->steps++;
			rows->steps_ns += graph->steps[s].end_ns - (s ? graph->steps[s - 1].end_ns : 0);
		}
}

static void add_stretches_of(struct stretch_rows *rows)
{
	const struct host_stretches *stretches = host_stretches_of(rows->graph);
	struct host_stretch *list = memory_resize(NULL, stretches->count + 1, sizeof(*list));

	for (uint32_t i = 0; i < stretches->count; i++)
		list[i] = stretches->list[i];
	merge_sort(list, stretches->count, sizeof(*list), host_stretches_compare_places);
	measure_steps(rows);
	for (uint32_t first = 0, next; first < stretches->count; first = next) {
		for (next = first + 1;
		     next < stretches->count && !host_stretches_compare_places(&list[first], &list[next]);)
			next++;
		add_place(rows, &list[first], next - first);
	}
	free(list);
}

static enum status run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct what_if *what_if = replayed_get(context);
	struct stretch_rows rows = {.table = table};

	(void)err;
	table_init(table, "host_stretches", "Host time outside of operators",
	           "long stretches in which the steps' thread runs no operator and waits for nothing that is known");
	table_columns(table, stretch_columns, STRETCH_COLUMNS);
	span_places_init(&rows.places, context->model);
	for (uint32_t rank = 0; rank < what_if->ranks && !what_if->problem; rank++) {
		rows.graph = what_if_graph(what_if, rank);
		rows.process = process_label(context->model, rows.graph->process, &table->arena);
		if (rows.graph->is_recorded && !rows.graph->has_device)
			add_stretches_of(&rows);
	}
	span_places_release(&rows.places);
	table_sort(table, STRETCH_TOTAL, false);
	if (!table->row_count)
		table->empty = what_if->problem ? what_if->problem
		                                : "no long stretch outside of operators was recorded, or it is no "
		                                  "recording of our own without a device";
	return STATUS_OK;
}

const struct analysis analysis_host_stretches = {
	.name = "host_stretches",
	.row = "place without an operator",
	.question = "where does the steps' thread run no operator?",
	.run = run,
	.is_of_operators = true,
};
