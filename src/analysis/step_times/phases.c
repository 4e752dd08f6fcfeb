/* SPDX-License-Identifier: Apache-2.0
 *
 * phases.c: the tables `phases` (where a step goes) and `between_steps` (where the recorded time goes). In both the
 * rows sum to the whole; time without a name has a row.
 */
#include "analysis/analysis_context.h"
#include "analysis/step_times/phase_sweep.h"
#include "analysis/step_times/step_kinds.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "base/statistics.h"
#include "model/cell_words.h"
#include "model/reasons.h"

#include <math.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>

/* ---- phases ---- */

enum {
	PHASE_NAME,
	PHASE_MEAN,
	PHASE_RATIO,
	PHASE_LOW,
	PHASE_HIGH,
	PHASE_P50,
	PHASE_P95,
	PHASE_P99,
	PHASE_MAX,
	PHASE_STEPS,
	PHASE_OF_STEPS,
	PHASE_COLUMNS,
};

#define KNOWN_STEPS "complete steps with known phases"
#define OF_STEPS "over all " KNOWN_STEPS "; 0 in a step without this phase"

static const struct table_column phase_columns[PHASE_COLUMNS] = {
	[PHASE_NAME] = {.name = "name",
                        .title = "phase",
                        .type = TABLE_TEXT,
                        .role = ROLE_KEY,
                        .definition = "phase that the program marked or that was inferred. Inferred communication: "
                                      "stretches without operators during a collective, up to its end; other: time of "
                                      "steps outside all phases"},
	[PHASE_MEAN] = {.name = "mean_ns",
                        .title = "mean",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_NS,
                        .definition = "mean time per step with this innermost phase, " OF_STEPS
                                      "; the rows sum to the mean step",
                        .rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL},
	[PHASE_RATIO] = {.name = "ratio",
                         .title = "%",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_RATIO,
                         .role = ROLE_SHARE,
                         .definition = "share of the time of steps",
                         .denominator = "time of all " KNOWN_STEPS,
                         .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE},
	[PHASE_LOW] = {.name = "ci95_low_ns",
                       .title = "low",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .role = ROLE_EVIDENCE,
                       .definition = "lower end of the 95 % interval of the mean, at least 0 (Student t; steps are taken "
                                     "as independent)"},
	[PHASE_HIGH] = {.name = "ci95_high_ns",
                        .title = "high",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_NS,
                        .role = ROLE_EVIDENCE,
                        .definition = "upper end of the 95 % interval of the mean"},
	[PHASE_P50] = {.name = "p50_ns",
                       .title = "p50",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "median " OF_STEPS},
	[PHASE_P95] = {.name = "p95_ns",
                       .title = "p95",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "95 % quantile " OF_STEPS},
	[PHASE_P99] = {.name = "p99_ns",
                       .title = "p99",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "99 % quantile " OF_STEPS},
	[PHASE_MAX] = {.name = "max_ns",
                       .title = "max",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "largest time in one step"},
	[PHASE_STEPS] = {.name = "steps",
                         .title = "in steps",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .role = ROLE_EVIDENCE,
                         .definition = KNOWN_STEPS " that spent time in it"},
	[PHASE_OF_STEPS] = {.name = "of_steps",
                            .type = TABLE_INT,
                            .unit = UNIT_COUNT,
                            .role = ROLE_EVIDENCE,
                            .definition = KNOWN_STEPS
                            "; if operators were recorded in only some of them: the steps without operators for "
                            "marked phases, the steps with operators for inferred phases",
                            .is_hidden = true},
};

/* Returns true if the step counts. If no step has known phases, steps count in which calls tell some phases. */
static bool is_known(const struct job_step *step, bool is_by_calls)
{
	return is_by_calls ? step->has_calls : step->has_phases;
}

/* Returns the time of the step outside the phases that calls tell. */
static double untold_ns(const struct job_step *step)
{
	double left_ns = step->dur_ns;

	for (int phase = 1; phase < PHASE_COUNT; phase++)
		left_ns -= step_times_is_told_by_calls(phase) ? step->phase_ns[phase] : 0;
	return left_ns;
}

static bool knows_calls_only(const struct step_times *times)
{
	bool has_calls = false;

	for (uint32_t i = 0; i < times->job_count; i++) {
		if (times->job[i].has_phases)
			return false;
		has_calls |= times->job[i].has_calls;
	}
	return has_calls;
}

static void add_phase(struct table *table, const struct step_times *times, int phase, double *values, double total_ns)
{
	bool is_by_calls = knows_calls_only(times);
	struct summary summary;
	uint32_t count = 0;
	int64_t with = 0;
	int row;

	for (uint32_t i = 0; i < times->job_count; i++) {
		if (!is_known(&times->job[i], is_by_calls))
			continue;
		values[count] = is_by_calls && phase == PHASE_OTHER ? untold_ns(&times->job[i])
		                                                    : times->job[i].phase_ns[phase];
		with += values[count++] > 0;
	}
	if (!with && phase != PHASE_OTHER)
		return;
	summary_compute(&summary, values, count);
	row = table_row(table);
	table_set_text(table, row, PHASE_NAME,
	               is_by_calls && phase == PHASE_OTHER ? "forward and other" : phase_name(phase));
	table_set_double(table, row, PHASE_MEAN, summary.mean);
	if (total_ns > 0)
		table_set_double(table, row, PHASE_RATIO, summary.mean * summary.count / total_ns);
	else
		table_set_missing(table, row, PHASE_RATIO, "the steps took no time");
	for (int column = PHASE_LOW; column <= PHASE_HIGH; column++) {
		if (summary.has_interval)
			table_set_double(table, row, column, column == PHASE_LOW ? fmax(summary.low, 0) : summary.high);
		else
			table_set_missing(table, row, column, "one step has no spread");
	}
	table_set_double(table, row, PHASE_P50, summary.p50);
	table_set_double(table, row, PHASE_P95, summary.p95);
	table_set_double(table, row, PHASE_P99, summary.p99);
	table_set_double(table, row, PHASE_MAX, summary.max);
	table_set_int(table, row, PHASE_STEPS, with);
	table_set_int(table, row, PHASE_OF_STEPS, count);
}

/* Inferred waits are known only in steps with operators. In other steps they are part of the phases around them. */
static const char *waits_note(const struct model *model, const struct step_times *times, struct arena *arena)
{
	const char *part = step_kinds_operators_note(times, arena);
	bool is_inferred = false;
	double waits_ns = 0;

	for (uint32_t i = 0; i < model->steps_count; i++)
		is_inferred |= model->steps[i].is_inferred;
	for (uint32_t i = 0; i < times->job_count; i++)
		waits_ns += times->job[i].phase_ns[STEPSCOPE_PHASE_COMMUNICATION];
	return part && is_inferred && waits_ns > 0
	               ? arena_printf(arena, "communication is known only with operators: %s", part)
	               : NULL;
}

static enum status run_phases(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	double *values = memory_resize(NULL, (size_t)times->job_count + 1, sizeof(*values));
	double total_ns = 0;
	uint32_t count = 0;
	bool is_by_calls = knows_calls_only(times);

	table_init(table, "phases", "Where a step goes",
	           "mean time per step in each phase, on the thread that marks the steps; with several "
	           "processes, the mean over them, step by step");
	for (uint32_t i = 0; i < times->job_count; i++) {
		bool is_here = is_known(&times->job[i], is_by_calls);

		total_ns += is_here ? times->job[i].dur_ns : 0;
		count += is_here;
	}
	for (int column = 0; column < PHASE_COLUMNS; column++) {
		struct table_column copy = phase_columns[column];

		if (column == PHASE_MEAN)
			copy.total = count ? total_ns / count : 0;
		table_column(table, &copy);
	}
	for (int phase = 1; phase < PHASE_COUNT && count; phase++)
		if (!is_by_calls || step_times_is_told_by_calls(phase))
			add_phase(table, times, phase, values, total_ns);
	if (count)
		add_phase(table, times, PHASE_OTHER, values, total_ns);
	else
		table->empty = times->job_count ? "not measured, because " STEP_TIMES_LOST_PHASES
		                                : step_times_empty_reason(times);
	if (is_by_calls)
		table->note = "no operators were recorded, so forward cannot be separated from the rest";
	else if (table->row_count == 1)
		table->note = model_reason(context->model, REASON_NO_PHASES);
	else if (count < times->job_count)
		table->note = step_kinds_phases_note(times, &table->arena);
	else
		table->note = waits_note(model, times, &table->arena);
	free(values);
	return STATUS_OK;
}

const struct analysis analysis_phases = {
	.name = "phases",
	.row = "phase",
	.question = "where does a step go?",
	.run = run_phases,
	.is_of_phases = true,
};

/* ---- between_steps ---- */

enum {
	BETWEEN_PART,
	BETWEEN_TIME,
	BETWEEN_RATIO,
	BETWEEN_COLUMNS
};

static const struct table_column between_columns[BETWEEN_COLUMNS] = {
	[BETWEEN_PART] = {.name = "part",
                          .type = TABLE_TEXT,
                          .role = ROLE_KEY,
                          .definition = "part of the recorded time of the processes that mark steps"},
	[BETWEEN_TIME] = {.name = "total_ns",
                          .title = "time",
                          .type = TABLE_INT,
                          .unit = UNIT_NS,
                          .definition = "time in it, summed over the processes",
                          .rules = RULE_NOT_NEGATIVE},
	[BETWEEN_RATIO] =
		{.name = "ratio",
                 .title = "%",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition = "share of the recorded time",
                 .denominator = "time from the first to the last known instant of each process; with --steps, from "
                                "the start of the first to the end of the last selected step; without steps, that "
                                "time of each thread that marks phases",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE},
};

struct whole {
	int64_t before_ns, steps_ns, missed_ns, lost_ns, after_ns, between_ns[PHASE_COUNT], total_ns;
};

static void whole_add(struct whole *whole, const struct process *process, const struct step_span *span, bool is_window)
{
	int64_t first_ns = is_window || process->first_ns > span->first_ns ? span->first_ns : process->first_ns;
	int64_t last_ns = is_window || process->last_ns < span->last_ns ? span->last_ns : process->last_ns;

	clamped_add(&whole->before_ns, span->first_ns - first_ns);
	clamped_add(&whole->after_ns, last_ns - span->last_ns);
	clamped_add(&whole->steps_ns, span->steps_ns);
	clamped_add(&whole->missed_ns, span->missed_ns);
	clamped_add(&whole->lost_ns, span->lost_ns);
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		clamped_add(&whole->between_ns[phase], span->phase_ns[phase]);
	clamped_add(&whole->total_ns, last_ns - first_ns);
}

static void phases_add_part(struct table *table, const char *part, int64_t part_ns, int64_t total_ns)
{
	int row = table_row(table);

	table_set_text(table, row, BETWEEN_PART, part);
	table_set_int(table, row, BETWEEN_TIME, part_ns);
	if (total_ns > 0)
		table_set_double(table, row, BETWEEN_RATIO, (double)part_ns / (double)total_ns);
	else
		table_set_missing(table, row, BETWEEN_RATIO, "no time was recorded");
}

static void add_parts(struct table *table, const struct whole *whole, bool is_window)
{
	if (!is_window)
		phases_add_part(table, CELL_BEFORE_STEPS, whole->before_ns, whole->total_ns);
	phases_add_part(table, CELL_STEPS, whole->steps_ns, whole->total_ns);
	for (int phase = 1; phase < PHASE_COUNT; phase++) {
		if (whole->between_ns[phase])
			phases_add_part(table, arena_printf(&table->arena, CELL_BETWEEN_STEPS "%s", phase_name(phase)),
			                whole->between_ns[phase], whole->total_ns);
	}
	phases_add_part(table, CELL_BETWEEN_STEPS CELL_PHASE_OTHER, whole->between_ns[PHASE_OTHER], whole->total_ns);
	if (whole->lost_ns)
		phases_add_part(table, CELL_BETWEEN_REMOVED, whole->lost_ns, whole->total_ns);
	if (whole->missed_ns)
		phases_add_part(table, CELL_STEPS_MISSED, whole->missed_ns, whole->total_ns);
	if (!is_window)
		phases_add_part(table, CELL_AFTER_STEPS, whole->after_ns, whole->total_ns);
}

/* For a program without steps: adds the recorded time of each thread that marks phases. */
static void add_phases_without_steps(struct table *table, const struct model *model)
{
	int64_t sum[PHASE_COUNT] = {0}, total_ns = 0;

	for (uint32_t track = 0; track < model->tracks_count; track++) {
		const struct process *process = &model->processes[model->tracks[track]->process];
		struct step_span span = {.first_ns = process->first_ns, .last_ns = process->last_ns};

		if (model->tracks[track]->kind != TRACK_THREAD)
			continue;
		phase_sweep_track(model, track, &span);
		if (span.phase_ns[PHASE_OTHER] == span.last_ns - span.first_ns)
			continue;
		clamped_add(&total_ns, span.last_ns - span.first_ns);
		for (int phase = 0; phase < PHASE_COUNT; phase++)
			clamped_add(&sum[phase], span.phase_ns[phase]);
	}
	for (int phase = 1; phase < PHASE_COUNT; phase++) {
		if (sum[phase])
			phases_add_part(table, phase_name(phase), sum[phase], total_ns);
	}
	if (total_ns)
		phases_add_part(table, phase_name(PHASE_OTHER), sum[PHASE_OTHER], total_ns);
}

static enum status run_between(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	struct whole whole = {0};

	table_init(table, "between_steps", "Where the recorded time goes",
	           "recorded time inside, between and around steps, of all processes that mark steps; "
	           "if none does, by phase, of the threads that mark phases");
	table_columns(table, between_columns, BETWEEN_COLUMNS);
	for (uint32_t i = 0; i < times->span_count; i++)
		whole_add(&whole, &model->processes[times->spans[i].process], &times->spans[i],
		          context->options.filter.has_steps);
	if (times->span_count)
		add_parts(table, &whole, context->options.filter.has_steps);
	else if (!times->count)
		add_phases_without_steps(table, model);
	if (!table->row_count)
		table->empty = step_times_empty_reason(times);
	return STATUS_OK;
}

const struct analysis analysis_between_steps = {
	.name = "between_steps",
	.row = "part of the recorded time",
	.question = "what happens outside the steps?",
	.run = run_between,
};
