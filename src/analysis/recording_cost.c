/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_cost.c: the table `cost`, and the ratio that every report prints. The cost per event is calibrated by the
 * recorder at start. With --cost-every the schedule wants steps recorded in which the recorder then pauses.
 */
#include "analysis/recording_cost.h"

#include "analysis/labels.h"
#include "analysis/processes.h"
#include "analysis/statistics.h"
#include "analysis/step_times.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <stepscope/format.h>

/* Threads that recorded, and the recorder's own. */
static double count_threads(const struct model *model, uint32_t process)
{
	double threads = 1;

	for (uint32_t i = 0; i < model->tracks_count; i++)
		threads += model->tracks[i]->process == process && model->tracks[i]->kind == TRACK_THREAD;
	return threads > 1 ? threads : 2;
}

/* The last sample may be older than the last event, and the cost of an event is an estimate: no less than the work. */
static double find_cpu(const struct model *model, uint32_t process, const struct recording_cost *cost)
{
	double cpu_ns, work_ns = cost->events_ns + cost->stacks_ns + cost->drainer_ns;
	int64_t sampled_ns;

	if (process_counter(model, process, "process.cpu_ns", &sampled_ns) && sampled_ns > 0)
		cpu_ns = (double)sampled_ns;
	else
		cpu_ns = cost->wall_ns * count_threads(model, process);
	return cpu_ns > work_ns ? cpu_ns : work_ns;
}

static double count_cpu_steps(const struct model *model, uint32_t process)
{
	double count = 0;

	for (uint32_t i = 0; i < model->steps_count; i++)
		count += model->steps[i].process == process && model->steps[i].has_cpu;
	return count;
}

/* False when the process did not measure itself. */
static bool cost_of(struct recording_cost *cost, const struct model *model, uint32_t number)
{
	const struct process *process = &model->processes[number];
	int64_t sampled_ns;
	bool is_sane = process->cost_per_event_ns >= 0 && process->cost_per_event_ns < 1e12 &&
	               process->drainer_cpu_ns >= 0;

	*cost = (struct recording_cost){.events = process->event_count};
	if (!process->has_cost || !is_sane || !process->has_times || process->last_ns <= process->first_ns)
		return false;
	cost->events_ns = (double)process->event_count * process->cost_per_event_ns;
	if (process->cost_per_step_ns > 0 && process->cost_per_step_ns < 1e9)
		cost->events_ns += count_cpu_steps(model, number) * process->cost_per_step_ns;
	if (process->cost_per_frame_ns > 0 && process->cost_per_frame_ns < 1e9)
		cost->stacks_ns = (double)process->stack_frames * process->cost_per_frame_ns;
	cost->drainer_ns = (double)process->drainer_cpu_ns;
	if (process_counter(model, number, "process.recorder_cpu_ns", &sampled_ns) &&
	    sampled_ns > process->drainer_cpu_ns)
		cost->drainer_ns = (double)sampled_ns;
	cost->wall_ns = (double)(process->last_ns - process->first_ns);
	cost->cpu_ns = find_cpu(model, number, cost);
	cost->ratio = (cost->events_ns + cost->stacks_ns + cost->drainer_ns) / cost->cpu_ns;
	return true;
}

bool recording_cost_all(struct recording_cost *cost, const struct model *model)
{
	*cost = (struct recording_cost){0};
	for (uint32_t i = 0; i < model->processes_count; i++) {
		struct recording_cost one;

		/* `stepscope run` records the machine at its own expense, beside the program */
		if (model->processes[i].role == STEPSCOPE_ROLE_HOST || !cost_of(&one, model, i))
			continue;
		cost->events += one.events;
		cost->events_ns += one.events_ns;
		cost->stacks_ns += one.stacks_ns;
		cost->drainer_ns += one.drainer_ns;
		cost->wall_ns += one.wall_ns;
		cost->cpu_ns += one.cpu_ns;
	}
	if (cost->cpu_ns <= 0)
		return false;
	cost->ratio = (cost->events_ns + cost->stacks_ns + cost->drainer_ns) / cost->cpu_ns;
	return true;
}

enum {
	COST_PROCESS,
	COST_EVENTS,
	COST_PER_EVENT,
	COST_EVENTS_TIME,
	COST_STACKS,
	COST_DRAINER,
	COST_WALL,
	COST_CPU,
	COST_RATIO,
	COST_ON,
	COST_OFF,
	COST_ON_MEAN,
	COST_OFF_MEAN,
	COST_DIFFERENCE,
	COST_DIFFERENCE_LOW,
	COST_DIFFERENCE_HIGH,
	COST_COLUMNS,
};

static const struct table_column columns[COST_COLUMNS] = {
	[COST_PROCESS] = PROCESS_COLUMN,
	[COST_EVENTS] = {.name = "events",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .definition = "recorded events",
                         .rules = RULE_NOT_NEGATIVE},
	[COST_PER_EVENT] = {.name = "per_event_ns",
                            .title = "per event",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_NS,
                            .definition = "cost of one event in the thread that records it, calibrated at start",
                            .rules = RULE_NOT_NEGATIVE},
	[COST_EVENTS_TIME] = {.name = "events_ns",
                              .title = "in threads",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_NS,
                              .definition = "events times the cost of one, in the program's threads"},
	[COST_STACKS] =
		{.name = "stacks_ns",
                 .title = "lines",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition =
                         "frames of Python that were read for lines times the cost of one, calibrated at start, in the "
                         "program's threads"},
	[COST_DRAINER] = {.name = "drainer_cpu_ns",
                          .title = "own thread",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_NS,
                          .definition = "CPU time of the recorder's own thread"},
	[COST_WALL] = {.name = "wall_ns",
                       .title = "recorded",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "from the first to the last known instant of the process"},
	[COST_CPU] = {.name = "cpu_ns",
                      .title = "CPU",
                      .type = TABLE_DOUBLE,
                      .unit = UNIT_NS,
                      .definition = "CPU time of the process; where that was not sampled, its recorded time times the "
                                    "number of threads that recorded and the recorder's own"},
	[COST_RATIO] = {.name = "ratio",
                        .title = "%",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = RECORDING_COST_DEFINITION,
                        .denominator = "column 'CPU'",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[COST_ON] = {.name = "on_steps",
                     .title = "steps on",
                     .type = TABLE_INT,
                     .unit = UNIT_COUNT,
                     .role = ROLE_EVIDENCE,
                     .definition =
                             "complete steps recorded in full while recording alternated, but for the first stretch of "
                             "them, in which the program warms up"},
	[COST_OFF] = {.name = "off_steps",
                      .title = "steps off",
                      .type = TABLE_INT,
                      .unit = UNIT_COUNT,
                      .role = ROLE_EVIDENCE,
                      .definition = "complete steps with recording off in between"},
	[COST_ON_MEAN] = {.name = "on_mean_ns",
                          .title = "mean on",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_NS,
                          .definition = "mean duration of the steps with recording on"},
	[COST_OFF_MEAN] = {.name = "off_mean_ns",
                           .title = "mean off",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_NS,
                           .definition = "mean duration of the steps with recording off"},
	[COST_DIFFERENCE] = {.name = "difference_ratio",
                             .title = "on/off",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_RATIO,
                             .definition = "how much longer a step takes with recording on, of a step with it off"},
	[COST_DIFFERENCE_LOW] = {.name = "difference_low_ratio",
                                 .title = "low",
                                 .type = TABLE_DOUBLE,
                                 .unit = UNIT_RATIO,
                                 .role = ROLE_EVIDENCE,
                                 .definition = "lower end of the 95 % interval of the difference (Welch)"},
	[COST_DIFFERENCE_HIGH] = {.name = "difference_high_ratio",
                                  .title = "high",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_EVIDENCE,
                                  .definition = "upper end of the 95 % interval of the difference (Welch)"},
};

/* Those that the schedule wanted. */
static bool is_wanted(const struct model *model, const struct step_times *times, uint32_t process, uint32_t step)
{
	return model->steps[step].process == process && times->steps[step].is_complete &&
	       times->steps[step].is_selected && model->steps[step].capture >= STEPSCOPE_CAPTURE_RECORD;
}

static bool has_entry(const struct model *model, enum ledger_kind kind, uint32_t process)
{
	for (uint32_t i = 0; i < model->ledger_count; i++) {
		if (model->ledger[i].kind == kind && model->ledger[i].process == process)
			return true;
	}
	return false;
}

/* The program warms up in the first stretch with recording on: it is left out, when there is another one; else its first step. Steps whose
 * operators were removed again, which are the oldest, are of neither kind. */
static uint32_t first_to_compare(const struct model *model, const struct step_times *times, uint32_t process)
{
	uint32_t first = MODEL_NONE, first_off = MODEL_NONE, later = 0;
	bool is_removed = has_entry(model, LEDGER_REMOVED, process);

	for (uint32_t i = 0; i < times->count; i++) {
		is_removed = is_removed && !(model->steps[i].process == process && model->steps[i].has_detail);
		if (is_removed || !is_wanted(model, times, process, i))
			continue;
		first = first == MODEL_NONE ? i : first;
		first_off = first_off == MODEL_NONE && !model->steps[i].has_detail ? i : first_off;
		later += first_off != MODEL_NONE && model->steps[i].has_detail;
	}
	return later > 1 ? first_off : first == MODEL_NONE ? times->count : first + 1;
}

/* The steps of a process that the schedule wanted, by whether the recorder paused in them. */
static void split_steps(const struct model *model, const struct step_times *times, uint32_t process, double *values,
                        size_t *on, size_t *off)
{
	*on = *off = 0;
	for (uint32_t i = first_to_compare(model, times, process); i < times->count; i++) {
		if (!is_wanted(model, times, process, i))
			continue;
		if (!model->steps[i].has_detail)
			values[times->count - ++*off] = (double)times->steps[i].dur_ns;
		else
			values[(*on)++] = (double)times->steps[i].dur_ns;
	}
}

/* Difference of two means with Welch's interval, relative to the second. */
static void find_difference(struct cost_difference *difference, const struct summary *on, const struct summary *off)
{
	double on_part = on->std * on->std / (double)on->count, off_part = off->std * off->std / (double)off->count;
	double both = on_part + off_part, degrees, half;

	degrees = both > 0 ? both * both /
	                             (on_part * on_part / (double)(on->count - 1) +
	                              off_part * off_part / (double)(off->count - 1))
	                   : (double)(on->count + off->count - 2);
	half = student_t95(degrees) * sqrt(both);
	difference->ratio = (on->mean - off->mean) / off->mean;
	difference->low = (on->mean - off->mean - half) / off->mean;
	difference->high = (on->mean - off->mean + half) / off->mean;
}

static void set_difference(struct table *table, int row, const struct summary *on, const struct summary *off)
{
	struct cost_difference difference;

	find_difference(&difference, on, off);
	table_set_double(table, row, COST_ON_MEAN, on->mean);
	table_set_double(table, row, COST_OFF_MEAN, off->mean);
	table_set_double(table, row, COST_DIFFERENCE, difference.ratio);
	table_set_double(table, row, COST_DIFFERENCE_LOW, difference.low);
	table_set_double(table, row, COST_DIFFERENCE_HIGH, difference.high);
}

/* False: recording did not alternate in the process, or it cannot be told where. */
static bool compare_steps(struct summary *on, struct summary *off, const struct model *model,
                          const struct step_times *times, uint32_t process)
{
	double *values = memory_resize(NULL, (size_t)times->count + 1, sizeof(*values));
	size_t on_count, off_count;

	split_steps(model, times, process, values, &on_count, &off_count);
	summary_compute(on, values, on_count);
	summary_compute(off, values + times->count - off_count, off_count);
	free(values);
	/* dropped events make steps look as if the recorder had paused */
	return !has_entry(model, LEDGER_DROPPED, process) && on_count > 1 && off_count > 1 && off->mean > 0;
}

static void set_alternation(struct table *table, int row, const struct model *model, const struct step_times *times,
                            uint32_t process)
{
	struct summary on, off;

	if (compare_steps(&on, &off, model, times, process)) {
		table_set_int(table, row, COST_ON, (int64_t)on.count);
		table_set_int(table, row, COST_OFF, (int64_t)off.count);
		set_difference(table, row, &on, &off);
		return;
	}
	for (int column = COST_ON; column <= COST_DIFFERENCE_HIGH; column++)
		table_set_missing(table, row, column, "recording did not alternate: --cost-every");
}

static void add_row(struct table *table, const struct model *model, const struct step_times *times, uint32_t process,
                    bool is_window)
{
	const char *reason = is_window ? RECORDING_COST_OF_A_PART : "the recorder did not measure itself";
	struct recording_cost cost;
	int row = table_row(table);

	table_set_text(table, row, COST_PROCESS, process_label(model, process, &table->arena));
	set_alternation(table, row, model, times, process);
	table_set_int(table, row, COST_EVENTS, (int64_t)model->processes[process].event_count);
	if (is_window || !cost_of(&cost, model, process)) {
		for (int column = COST_PER_EVENT; column <= COST_RATIO; column++)
			table_set_missing(table, row, column, reason);
		return;
	}
	table_set_double(table, row, COST_PER_EVENT, model->processes[process].cost_per_event_ns);
	table_set_double(table, row, COST_EVENTS_TIME, cost.events_ns);
	if (cost.stacks_ns > 0)
		table_set_double(table, row, COST_STACKS, cost.stacks_ns);
	else
		table_set_missing(table, row, COST_STACKS, "no lines of Python were recorded");
	table_set_double(table, row, COST_DRAINER, cost.drainer_ns);
	table_set_double(table, row, COST_WALL, cost.wall_ns);
	table_set_double(table, row, COST_CPU, cost.cpu_ns);
	table_set_double(table, row, COST_RATIO, cost.ratio);
}

bool recording_cost_compare(struct cost_difference *difference, const struct model *model,
                            const struct step_times *times)
{
	struct summary on, off;

	for (uint32_t i = 0; i < times->span_count; i++) {
		if (!times->spans[i].is_rank || !compare_steps(&on, &off, model, times, times->spans[i].process))
			continue;
		find_difference(difference, &on, &off);
		return true;
	}
	return false;
}

static enum status run(const struct model *model, const struct analysis_options *options, struct table *table,
                       struct error *err)
{
	struct step_times own = {0};
	const struct step_times *times = step_times_get(&own, model, options);
	bool is_ours = false;

	table_init(table, "cost", "Cost of recording", "what the recorder cost each process, as it measured itself");
	table_columns(table, columns, COST_COLUMNS);
	for (uint32_t i = 0; i < model->processes_count; i++) {
		is_ours |= model->processes[i].role == STEPSCOPE_ROLE_HOST;
		/* `stepscope run` records the machine at its own expense, beside the program */
		if (model->processes[i].role != STEPSCOPE_ROLE_IMPORTED &&
		    model->processes[i].role != STEPSCOPE_ROLE_HOST)
			add_row(table, model, times, i, options->has_steps);
	}
	if (!table->row_count)
		table->empty = is_ours ? "no process of the program was recorded" : "another tool recorded this";
	step_times_release(&own);
	return STATUS_OK;
}

const struct analysis analysis_cost = {"cost", "what did recording cost?", run};
