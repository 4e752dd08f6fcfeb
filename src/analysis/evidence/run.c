/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c: the table `run`, one row: the run, the recorded part of it, and how good the evidence is.
 */
#include "analysis/analysis_context.h"
#include "analysis/evidence/cost.h"
#include "analysis/machine/processes.h"
#include "analysis/ranks/missing_ranks.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/run_parts.h"
#include "analysis/step_times/step_kinds.h"
#include "base/units.h"
#include "model/reasons.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>
#include <time.h>

enum {
	RUN_PROGRAM,
	RUN_COMMAND,
	RUN_HOSTS,
	RUN_RANK,
	RUN_WORLD_SIZE,
	RUN_MISSING_RANKS,
	RUN_PROCESSES,
	RUN_STEPPING,
	RUN_CREATED,
	RUN_DURATION,
	RUN_FIRST_STEP,
	RUN_LAST_STEP,
	RUN_STEPS,
	RUN_RANK_STEPS,
	RUN_RANK_GAPS,
	RUN_INCOMPLETE,
	RUN_DETAILED,
	RUN_SKIPPED,
	RUN_CAPTURE,
	RUN_ENDED,
	RUN_EVENTS,
	RUN_COST,
	RUN_COST_LOW,
	RUN_COST_HIGH,
	RUN_OPERATOR_STEPS,
	RUN_OPERATOR_SUM_STEPS,
	RUN_OPERATORS_EVERY,
	RUN_COST_ALL,
	RUN_COST_TEXT,
	RUN_DROPPED,
	RUN_MISSING_ENDS,
	RUN_WALL_PARTS,
	RUN_COLUMNS,
};

static const struct table_column columns[RUN_COLUMNS] = {
	[RUN_PROGRAM] = {.name = "program", .type = TABLE_TEXT, .definition = "name of the recorded program"},
	[RUN_COMMAND] = {.name = "command",
                         .type = TABLE_TEXT,
                         .definition = "recorded command line with secrets masked; otherwise the program's name"},
	[RUN_HOSTS] = {.name = "host", .type = TABLE_TEXT, .definition = "machines of the recorded processes"},
	[RUN_RANK] = {.name = "rank", .type = TABLE_INT, .definition = "rank, if the recording has only one"},
	[RUN_WORLD_SIZE] = {.name = "world_size",
                            .title = "world size",
                            .type = TABLE_INT,
                            .definition = "number of ranks of the job, given by its launcher"},
	[RUN_MISSING_RANKS] =
		{.name = "missing_ranks",
                 .title = "missing ranks",
                 .type = TABLE_TEXT,
                 .definition =
                         "ranks of the job that the input lacks; other ranks that wait in communication may wait for them"},
	[RUN_PROCESSES] = {.name = "processes",
                           .type = TABLE_INT,
                           .unit = UNIT_COUNT,
                           .definition = "recorded processes of the program"},
	[RUN_STEPPING] = {.name = "step_processes",
                          .title = "processes with steps",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "recorded processes that mark steps"},
	[RUN_CREATED] =
		{.name = "created",
                 .title = "started",
                 .type = TABLE_TEXT,
                 .definition =
                         "wall clock time (UTC) of the first recorded instant; with --steps, of the start of the first "
                         "selected step"},
	[RUN_DURATION] =
		{.name = "duration_ns",
                 .title = "recorded",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time from the first to the last recorded instant of the program's processes; with --steps, from the "
                         "start of the first to the end of the last selected step",
                 .rules = RULE_NOT_NEGATIVE},
	[RUN_FIRST_STEP] = {.name = "first_step",
                            .title = "first step",
                            .type = TABLE_INT,
                            .definition = "smallest number of a selected step"},
	[RUN_LAST_STEP] = {.name = "last_step",
                           .title = "last step",
                           .type = TABLE_INT,
                           .definition = "largest number of a selected step"},
	[RUN_STEPS] =
		{.name = "steps",
                 .title = "complete steps",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .definition = "complete steps of the job; steps with the same number in several processes count once"},
	[RUN_RANK_STEPS] = {.name = "rank_steps",
                            .title = "steps of processes",
                            .type = TABLE_INT,
                            .unit = UNIT_COUNT,
                            .definition = "complete steps of all processes, counted in each process",
                            .is_hidden = true},
	[RUN_RANK_GAPS] =
		{.name = "rank_gaps",
                 .title = "gaps of processes",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .definition =
                         "gaps between consecutive steps, counted in each process; the time between steps is divided by this "
                         "number",
                 .is_hidden = true},
	[RUN_INCOMPLETE] = {.name = "incomplete_steps",
                            .title = "incomplete steps",
                            .type = TABLE_INT,
                            .unit = UNIT_COUNT,
                            .definition = "steps of the job without a recorded end in at least one rank"},
	[RUN_DETAILED] =
		{.name = "detail_steps",
                 .title = "steps with operations",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .definition = "steps of the job in which at least one rank recorded ranges and operations throughout"},
	[RUN_SKIPPED] =
		{.name = "skipped_steps",
                 .title = "steps without operations",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .definition = "steps of the job in which the schedule asked only for steps, phases and counters"},
	[RUN_CAPTURE] = {.name = "capture",
                         .type = TABLE_TEXT,
                         .definition = "the recorder's sentence about the steps it captured, and why"},
	[RUN_ENDED] = {.name = "ended", .type = TABLE_TEXT, .definition = "how the recorded processes ended"},
	[RUN_EVENTS] =
		{.name = "events",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .definition =
                         "recorded events; a span counts twice, for its start and its end. In another tool's trace: spans, "
                         "marks, values and allocations. With --steps: the events read to show the selected steps"},
	[RUN_COST] = {.name = "overhead_ratio",
                      .title = "recording cost",
                      .type = TABLE_DOUBLE,
                      .unit = UNIT_RATIO,
                      .role = ROLE_SHARE,
                      .definition = RECORDING_PRICE_DEFINITION,
                      .denominator = "time of a step without operators; " RECORDING_COST_DENOMINATOR,
                      .rules = RULE_NOT_NEGATIVE},
	[RUN_COST_LOW] = {.name = "overhead_low_ratio",
                          .title = "recording cost, low",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_RATIO,
                          .role = ROLE_EVIDENCE,
                          .definition = "lower end of the 95 % interval of overhead_ratio, at least 0",
                          .rules = RULE_NOT_NEGATIVE,
                          .is_hidden = true},
	[RUN_COST_HIGH] =
		{.name = "overhead_high_ratio",
                 .title = "recording cost, high",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_EVIDENCE,
                 .definition =
                         "upper end of the 95 % interval of overhead_ratio; an upper bound if overhead_ratio is missing",
                 .rules = RULE_NOT_NEGATIVE,
                 .is_hidden = true},
	[RUN_OPERATOR_STEPS] = {.name = "operator_steps",
                                .title = "steps with operators",
                                .type = TABLE_INT,
                                .unit = UNIT_COUNT,
                                .role = ROLE_EVIDENCE,
                                .definition = "complete steps of the job with operators in all of its ranks",
                                .is_hidden = true},
	[RUN_OPERATOR_SUM_STEPS] =
		{.name = "operator_sum_steps",
                 .title = "steps of sums",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_COUNT,
                 .role = ROLE_EVIDENCE,
                 .definition =
                         "steps that the sums in operator tables cover, counted in each process: steps with operators; all "
                         "complete steps if a budget chose them",
                 .is_hidden = true},
	[RUN_OPERATORS_EVERY] =
		{.name = "operators_every",
                 .title = "operators every",
                 .type = TABLE_INT,
                 .role = ROLE_EVIDENCE,
                 .definition = "N if operators are recorded in one of N steps, as last set by the budget",
                 .is_hidden = true},
	[RUN_COST_ALL] = {.name = "overhead_all_ratio",
                          .title = "recording cost of all",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_RATIO,
                          .definition = "overhead_ratio if all steps had operators",
                          .rules = RULE_NOT_NEGATIVE,
                          .is_hidden = true},
	[RUN_COST_TEXT] =
		{.name = "cost",
                 .type = TABLE_TEXT,
                 .definition =
                         "the cost of recording in one sentence: overhead_ratio and its source, or a bound, or the reason why "
                         "it was not measured, with the known part",
                 .is_hidden = true},
	[RUN_DROPPED] = {.name = "lost_events",
                         .title = "dropped events",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .definition = "events that the recorder counted and dropped because it had no room"},
	[RUN_MISSING_ENDS] =
		{.name = "missing_ends",
                 .title = "missing ends",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .definition =
                         "processes without their last events; the number of events dropped near the end is unknown"},
	[RUN_WALL_PARTS] = {.name = "wall_parts",
                            .type = TABLE_TEXT,
                            .definition = "parts of the wall time as in the table run_time, the largest first",
                            .is_hidden = true},
};

static bool is_program(const struct process *process)
{
	return process->role != STEPSCOPE_ROLE_HOST && process->role != STEPSCOPE_ROLE_LAUNCHER;
}

static const char *any_meta(const struct model *model, const char *key)
{
	return model_meta(model, MODEL_NONE, key);
}

static void set_or_missing(struct table *table, int row, int column, const char *text, const char *reason)
{
	if (text && text[0])
		table_set_text(table, row, column, text);
	else
		table_set_missing(table, row, column, reason);
}

/* The recorder could not know that it would remove older steps again. */
static const char *what_is_left(const char *said, const struct model *model, struct arena *arena)
{
	for (uint32_t i = 0; said && i < model->ledger_count; i++) {
		if (model->ledger[i].kind == LEDGER_REMOVED)
			return arena_printf(arena, "%s; older events were removed later, see the ledger", said);
	}
	return said;
}

static uint32_t run_count_ranks(const struct step_times *times)
{
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < times->span_count; i++)
		ranks += times->spans[i].is_rank;
	return ranks;
}

/* Steps counted by the recorder may end elsewhere than the report's steps, because the report knows the whole run.
 * Then a step has operators in only a part of it. */
static const char *add_own_count(const char *said, const struct model *model, const struct step_times *times,
                                 struct arena *arena)
{
	const char *counted = any_meta(model, "capture.steps");
	int64_t with, begun, more = times->job_incomplete;
	bool is_alike;

	if (!said || !counted || run_count_ranks(times) != 1 ||
	    sscanf(counted, "%" SCNd64 " of %" SCNd64, &with, &begun) != 2)
		return said;
	is_alike = with >= times->job_whole && with <= times->job_whole + more && begun >= times->job_count &&
	           begun <= times->job_count + more;
	return is_alike ? said
	                : arena_printf(arena,
	                               "%s; of the steps that the report finds, %u of %u have all their operators",
	                               said, times->job_whole, times->job_count);
}

/* Returns the sentence of a recorder that ended before it could write one. */
static const char *own_capture(const struct model *model, const struct step_times *times, struct arena *arena)
{
	const char *range = any_meta(model, "budget.range");

	range = range ? range : any_meta(model, "budget.every");
	if (!times->by_budget || !times->job_count)
		return NULL;
	if (!range || !strcmp(range, "1"))
		return arena_printf(arena, "operators of %u of %u steps", times->job_whole, times->job_count);
	return arena_printf(arena, "operators of %u of %u steps (1 of %.40s)", times->job_whole, times->job_count,
	                    range);
}

/* Returns the recorder's sentence. If the number of steps is a guess, adds that; the ledger explains it. */
static const char *capture_text(const struct model *model, const struct step_times *times, bool is_window,
                                struct arena *arena)
{
	const char *said = step_times_capture(model);

	if (!is_window)
		said = said ? add_own_count(said, model, times, arena) : own_capture(model, times, arena);
	said = what_is_left(said, model, arena);
	for (uint32_t i = 0; i < model->ledger_count; i++) {
		enum ledger_code code = model->ledger[i].code;

		if (code == LEDGER_CODE_AMBIGUOUS_STEPS || code == LEDGER_CODE_UNCERTAIN_STEPS)
			return arena_printf(arena, "%s%sthe number of steps is %s, see the ledger", said ? said : "",
			                    said ? "; " : "",
			                    code == LEDGER_CODE_AMBIGUOUS_STEPS ? "ambiguous" : "uncertain");
	}
	return said;
}

/* Returns "a, b and 3 more". */
static const char *host_list(const struct model *model, struct arena *arena)
{
	const char *list = NULL;
	uint32_t more = 0;

	for (uint32_t i = 0; i < model->processes_count; i++) {
		bool is_new = model->processes[i].host != 0;

		for (uint32_t j = 0; j < i && is_new; j++)
			is_new = model->processes[j].host != model->processes[i].host;
		if (!is_new)
			continue;
		if (list && strlen(list) > 60)
			more++;
		else
			list = arena_printf(arena, "%s%s%s", list ? list : "", list ? ", " : "",
			                    model_text(model, model->processes[i].host));
	}
	return more ? arena_printf(arena, "%s and %u more", list, more) : list;
}

static void set_who(struct table *table, const struct model *model)
{
	const char *program = NULL, *command = any_meta(model, "argv");
	int64_t processes = 0;
	int32_t rank = -1, world_size = -1;
	bool is_one_rank = true;
	struct missing_ranks missing;

	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];

		if (!is_program(process))
			continue;
		processes++;
		if (!program && process->name)
			program = model_text(model, process->name);
		if (process->world_size > world_size)
			world_size = process->world_size;
		if (process->rank >= 0 && rank >= 0 && process->rank != rank)
			is_one_rank = false;
		rank = process->rank >= 0 ? process->rank : rank;
	}
	set_or_missing(table, 0, RUN_PROGRAM, program ? program : any_meta(model, "program"), "not recorded");
	set_or_missing(table, 0, RUN_COMMAND, command ? command : program, "not recorded");
	set_or_missing(table, 0, RUN_HOSTS, host_list(model, &table->arena), "not recorded");
	if (processes)
		table_set_int(table, 0, RUN_PROCESSES, processes);
	else
		table_set_missing(table, 0, RUN_PROCESSES, "no process of the program recorded itself");
	if (rank >= 0 && is_one_rank)
		table_set_int(table, 0, RUN_RANK, rank);
	else
		table_set_missing(table, 0, RUN_RANK,
		                  rank < 0 ? "not set by a launcher" : "several ranks were recorded");
	if (world_size >= 0)
		table_set_int(table, 0, RUN_WORLD_SIZE, world_size);
	else
		table_set_missing(table, 0, RUN_WORLD_SIZE, "not set by a launcher");
	missing = missing_ranks_find(model, &table->arena);
	table_set_text_or(table, 0, RUN_MISSING_RANKS, missing.text, "no rank is known to be missing");
}

/* Returns "2026-11-21T07:03:09.412Z". */
static const char *utc_time(struct arena *arena, int64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	char text[32];
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		return NULL;
	return arena_printf(arena, "%s.%03dZ", text, (int)(realtime_ns / 1000000 % 1000));
}

struct run_stretch {
	const struct process *first; /* NULL: no process has a time */
	int64_t first_ns, last_ns;
};

static void run_widen(struct run_stretch *stretch, const struct process *process, int64_t first_ns, int64_t last_ns)
{
	if (!stretch->first || last_ns > stretch->last_ns)
		stretch->last_ns = last_ns;
	if (!stretch->first || first_ns < stretch->first_ns) {
		stretch->first = process;
		stretch->first_ns = first_ns;
	}
}

static struct run_stretch whole_stretch(const struct model *model)
{
	struct run_stretch stretch = {0};

	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];

		if (is_program(process) && process->has_times)
			run_widen(&stretch, process, process->first_ns, process->last_ns);
	}
	return stretch;
}

/* The data read for --steps reaches beyond them on both sides. */
static struct run_stretch selected_stretch(const struct model *model, const struct step_times *times)
{
	struct run_stretch stretch = {0};

	for (uint32_t i = 0; i < times->span_count; i++) {
		const struct step_span *span = &times->spans[i];

		run_widen(&stretch, &model->processes[span->process], span->first_ns, span->last_ns);
	}
	return stretch;
}

static void set_when(struct table *table, const struct model *model, const struct step_times *times, bool is_window)
{
	struct run_stretch stretch = is_window ? selected_stretch(model, times) : whole_stretch(model);
	const char *reason = is_window ? step_times_empty_reason(times) : model_reason(model, REASON_NO_TIMES);
	int64_t offset_ns = stretch.first ? stretch.first->realtime_offset_ns : 0;

	if (!stretch.first) {
		table_set_missing(table, 0, RUN_CREATED, reason);
		table_set_missing(table, 0, RUN_DURATION, reason);
		return;
	}
	table_set_int(table, 0, RUN_DURATION, stretch.last_ns - stretch.first_ns);
	if (offset_ns)
		table_set_text(table, 0, RUN_CREATED, utc_time(&table->arena, stretch.first_ns + offset_ns));
	else
		table_set_missing(table, 0, RUN_CREATED, "the recording has no wall clock");
}

static void set_window(struct table *table, const struct step_times *times)
{
	int64_t gaps = 0;

	for (uint32_t i = 0; i < times->span_count; i++)
		gaps += times->spans[i].gaps;
	table_set_int(table, 0, RUN_STEPPING, times->span_count);
	table_set_int(table, 0, RUN_STEPS, times->job_count);
	table_set_int(table, 0, RUN_RANK_STEPS, times->complete);
	table_set_int(table, 0, RUN_RANK_GAPS, gaps);
	table_set_int(table, 0, RUN_INCOMPLETE, times->job_incomplete);
	table_set_int(table, 0, RUN_DETAILED, times->job_detailed);
	table_set_int(table, 0, RUN_SKIPPED, times->job_selected - times->job_detailed);
	if (times->job_selected) {
		table_set_int(table, 0, RUN_FIRST_STEP, times->job_first);
		table_set_int(table, 0, RUN_LAST_STEP, times->job_last);
		return;
	}
	table_set_missing(table, 0, RUN_FIRST_STEP, step_times_empty_reason(times));
	table_set_missing(table, 0, RUN_LAST_STEP, step_times_empty_reason(times));
}

static const struct model_step *last_step(const struct model *model, uint32_t process)
{
	const struct model_step *last = NULL;

	for (uint32_t i = 0; i < model->steps_count; i++)
		last = model->steps[i].process == process ? &model->steps[i] : last;
	return last;
}

/* Counts the processes by their ends and picks the one whose end is reported: one that did not end well, otherwise
 * any. A worker is picked only if there is no other, because it dies with its trainer. */
struct ends {
	uint32_t well, badly, one; /* one: the picked process; MODEL_NONE: none */
	uint32_t workers;          /* of those that ended well */
};

static struct ends count_ends(const struct model *model)
{
	struct ends ends = {.one = MODEL_NONE};

	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];
		bool is_worker = process->role == STEPSCOPE_ROLE_WORKER;

		if (!is_program(process))
			continue;
		if (!process->is_closed && !process_exited_well(model, i)) {
			if (!ends.badly++ || !is_worker)
				ends.one = i;
			continue;
		}
		if (ends.one == MODEL_NONE || (!ends.badly && !is_worker && ends.workers == ends.well))
			ends.one = i;
		ends.well++;
		ends.workers += is_worker;
	}
	return ends;
}

static const char *describe_end(const struct model *model, struct arena *arena)
{
	struct ends ends = count_ends(model);
	const struct model_step *step;
	const char *words;

	if (ends.one == MODEL_NONE)
		return NULL;
	if (!ends.badly)
		return ends.well - ends.workers <= 1 ? process_end(model, ends.one, arena)
		                                     : "all processes ended normally";
	words = process_end(model, ends.one, arena);
	if (process_end_is_unclosed(model, ends.one))
		words = CELL_END_UNCLOSED " (killed, crashed, or its file could not be written)";
	step = last_step(model, ends.one);
	if (step)
		words = arena_printf(arena, "%s, %s step %" PRId64, words, step->is_open ? "in" : "after",
		                     step->number);
	if (ends.well + ends.badly == 1)
		return words;
	return arena_printf(arena, "%u of %u processes have not closed their recordings; %s: %s", ends.badly,
	                    ends.well + ends.badly, process_label(model, ends.one, arena), words);
}

/* ---- cost of recording ---- */

static const char *measured_text(const struct recording_price *price, struct arena *arena)
{
	const struct operator_cost *operators = &price->operators;
	char text[UNITS_BYTES];

	if (price->is_counted)
		return arena_printf(
			arena, "recording cost %s (no operators were recorded; counted from the recorder's own work)",
			units_ratio(text, price->ratio));
	if (price->unknown)
		return arena_printf(
			arena,
			"recording cost less than %.1f %% (%u steps with operators compared with their neighbours)",
			ceil(1000 * fmax(price->high, 0.001)) / 10, operators->pairs);
	return arena_printf(
		arena,
		"recording cost %s (%u steps with operators compared with their neighbours: %.1f +- %.1f %% each)",
		units_ratio(text, price->ratio), operators->pairs, 100 * operators->ratio, 100 * operators->half);
}

/* Used if steps do not tell the cost. A program without PyTorch pays only for the recorder's events. */
static const char *counted_text(const struct recording_price *price, const struct recording_cost *cost, bool is_torch,
                                struct arena *arena)
{
	char text[UNITS_BYTES];

	if (!is_torch && cost)
		return arena_printf(arena, "recording took %s of the CPU time", units_ratio(text, cost->ratio));
	if (!cost)
		return arena_printf(arena, "cost not measured: %s", price->unknown);
	return arena_printf(
		arena,
		"cost not measured: %s; events alone took %s of the CPU time, without the cost of PyTorch's callbacks",
		price->unknown, units_ratio(text, cost->ratio));
}

static void set_missing_cost(struct table *table, const char *reason)
{
	table_set_missing(table, 0, RUN_COST, reason);
	table_set_missing(table, 0, RUN_COST_LOW, reason);
	table_set_missing(table, 0, RUN_COST_HIGH, reason);
	table_set_missing(table, 0, RUN_COST_ALL, reason);
}

static void set_price(struct table *table, const struct recording_price *price)
{
	set_missing_cost(table, price->unknown);
	if (!price->unknown)
		table_set_double(table, 0, RUN_COST, price->ratio);
	table_set_double(table, 0, RUN_COST_LOW, price->low);
	table_set_double(table, 0, RUN_COST_HIGH, price->high);
	if (price->is_counted)
		table_set_missing(table, 0, RUN_COST_ALL, price->operators.unknown);
	else if (operator_cost_is_told(price->operators.ratio, price->operators.half))
		table_set_double(table, 0, RUN_COST_ALL, price->all);
	else
		table_set_missing(table, 0, RUN_COST_ALL, RECORDING_PRICE_BOUND);
}

static void set_cost(struct table *table, const struct model *model, const struct step_times *times, bool is_window)
{
	bool is_torch = any_meta(model, "torch.version") != NULL, is_known;
	struct recording_price price;
	struct recording_cost cost;

	if (is_window) {
		set_missing_cost(table, RECORDING_COST_OF_A_PART);
		table_set_missing(table, 0, RUN_COST_TEXT, RECORDING_COST_OF_A_PART);
		return;
	}
	is_known = recording_cost_all(&cost, model);
	price = recording_price_find(model, times);
	if (price.has_interval) {
		set_price(table, &price);
		table_set_text(table, 0, RUN_COST_TEXT, measured_text(&price, &table->arena));
		return;
	}
	set_missing_cost(table, is_known ? price.unknown : model_reason(model, REASON_NO_COST));
	if (is_known && !is_torch)
		table_set_double(table, 0, RUN_COST, cost.ratio);
	if (is_known || is_torch)
		table_set_text(table, 0, RUN_COST_TEXT,
		               counted_text(&price, is_known ? &cost : NULL, is_torch, &table->arena));
	else
		table_set_missing(table, 0, RUN_COST_TEXT, model_reason(model, REASON_NO_COST));
}

/* The last rate that the recorder chose counts. */
static void set_operators(struct table *table, const struct model *model, const struct step_times *times)
{
	const char *every = any_meta(model, "budget.every");

	table_set_int(table, 0, RUN_OPERATOR_STEPS, times->job_whole);
	table_set_double(table, 0, RUN_OPERATOR_SUM_STEPS, step_kinds_sum_steps(times));
	if (every && strtoll(every, NULL, 10) > 0)
		table_set_int(table, 0, RUN_OPERATORS_EVERY, strtoll(every, NULL, 10));
	else
		table_set_missing(table, 0, RUN_OPERATORS_EVERY, "no budget chose the steps with operators");
}

static void set_evidence(struct table *table, const struct model *model, const struct step_times *times, bool is_window)
{
	uint64_t dropped = 0, events = 0;
	int64_t missing_ends = 0;

	for (uint32_t i = 0; i < model->ledger_count; i++) {
		dropped += model->ledger[i].kind == LEDGER_DROPPED ? model->ledger[i].count : 0;
		missing_ends += model->ledger[i].kind == LEDGER_MISSING_TAIL;
	}
	for (uint32_t i = 0; i < model->processes_count; i++)
		events += is_program(&model->processes[i]) ? model->processes[i].event_count : 0;
	table_set_int(table, 0, RUN_DROPPED, (int64_t)dropped);
	table_set_int(table, 0, RUN_MISSING_ENDS, missing_ends);
	table_set_int(table, 0, RUN_EVENTS, (int64_t)events);
	set_or_missing(table, 0, RUN_CAPTURE, capture_text(model, times, is_window, &table->arena),
	               model_reason(model, REASON_NO_CAPTURE));
	set_or_missing(table, 0, RUN_ENDED, describe_end(model, &table->arena),
	               "no process of the program was recorded");
}

static enum status run_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);

	table_init(table, "run", "Run", "the run, its recorded part, and the quality of the evidence");
	table_columns(table, columns, RUN_COLUMNS);
	table_row(table);
	set_who(table, model);
	set_when(table, model, times, context->options.filter.has_steps);
	set_window(table, times);
	set_evidence(table, model, times, context->options.filter.has_steps);
	set_cost(table, model, times, context->options.filter.has_steps);
	set_operators(table, model, times);
	run_parts_set_text(run_parts_get(context), table, RUN_WALL_PARTS);
	return STATUS_OK;
}

const struct analysis analysis_run = {
	.name = "run",
	.row = "run",
	.question = "which program was recorded, and how completely?",
	.run = run_run,
};
