/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.c: the table `cost`, and the ratio that every report prints. The recorder calibrates the cost per event at
 * start. The cost of operators is measured if only some steps have them, see operator_cost.h.
 */
#include "analysis/evidence/cost.h"

#include "analysis/analysis_context.h"
#include "analysis/machine/processes.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_kinds.h"
#include "model/reasons.h"

#include <math.h>
#include <stepscope/format.h>
#include <string.h>

/* Returns the number of threads that recorded, plus the recorder's thread. */
static double count_threads(const struct model *model, uint32_t process)
{
	double threads = 1;

	for (uint32_t i = 0; i < model->tracks_count; i++)
		threads += model->tracks[i]->process == process && model->tracks[i]->kind == TRACK_THREAD;
	return threads > 1 ? threads : 2;
}

/* The last sample may be older than the last event, and the cost of an event is an estimate. So the result is at least
 * the recorder's work. */
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

static double reading_cost(const struct model *model, const struct thread_reading *reading)
{
	const struct process *process = &model->processes[model->tracks[reading->track]->process];
	double ns = process->cost_per_reading_ns, more_ns = process->cost_per_process_reading_ns;

	if (reading->process_ns != STEPSCOPE_USE_UNKNOWN)
		ns += more_ns;
	return ns > 0 && ns < 1e9 ? ns : 0;
}

static double sum_readings(const struct model *model, uint32_t process)
{
	double sum_ns = 0;

	for (uint32_t i = 0; i < model->readings_count; i++)
		if (model->tracks[model->readings[i].track]->process == process)
			sum_ns += reading_cost(model, &model->readings[i]);
	return sum_ns;
}

/* Returns the cost of the readings in the ranks' steps without operators. */
static double sum_plain_readings(const struct model *model, const struct step_times *times)
{
	double sum_ns = 0;

	for (uint32_t i = 0; i < model->readings_count; i++) {
		const struct thread_reading *reading = &model->readings[i];
		uint32_t process = model->tracks[reading->track]->process;
		const struct model_step *step = step_times_step_at(model, process, reading->time_ns);

		if (step && times->steps[step - model->steps].job != MODEL_NONE && step_is_plain(step))
			sum_ns += reading_cost(model, reading);
	}
	return sum_ns;
}

/* Returns false if the process did not measure itself. */
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
	cost->events_ns += sum_readings(model, number);
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

		/* `stepscope run` records the machine in its own process, beside the program */
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

/* Computes the CPU time of the recorder's threads as a share of the recorded time of the ranks. Returns false if no
 * rank measured itself. */
static bool own_share(double *share, const struct model *model, const struct step_times *times)
{
	double own_ns = 0, wall_ns = 0;

	for (uint32_t i = 0; i < times->span_count; i++) {
		struct recording_cost one;

		if (!times->spans[i].is_rank || !cost_of(&one, model, times->spans[i].process))
			continue;
		own_ns += one.drainer_ns;
		wall_ns += one.wall_ns;
	}
	*share = wall_ns > 0 ? own_ns / wall_ns : 0;
	return wall_ns > 0;
}

/* Returns the share of events in the time of the ranks' steps, over the steps without operators. */
static double counted_share(const struct model *model, const struct step_times *times)
{
	double events_ns = sum_plain_readings(model, times), steps_ns = 0;

	for (uint32_t i = 0; i < times->count; i++)
		if (times->steps[i].job != MODEL_NONE && step_is_plain(&model->steps[i]))
			steps_ns += (double)times->steps[i].dur_ns;
	for (uint32_t number = 0; number < model->tracks_count; number++) {
		const struct track *track = model->tracks[number];
		double event_ns = model->processes[track->process].cost_per_event_ns;

		for (uint32_t c = 0; c < track->chunk_count; c++) {
			const struct span_chunk *chunk = track->chunks[c];

			for (uint32_t i = 0; i < chunk->count; i++)
				if (chunk->step[i] >= 0 && times->steps[chunk->step[i]].job != MODEL_NONE &&
				    step_is_plain(&model->steps[chunk->step[i]]))
					events_ns += 2 * event_ns;
			model_chunk_done(model, chunk);
		}
	}
	for (uint32_t i = 0; i < times->count; i++)
		if (model->steps[i].has_cpu && times->steps[i].job != MODEL_NONE && step_is_plain(&model->steps[i]))
			events_ns += model->processes[model->steps[i].process].cost_per_step_ns;
	return steps_ns > 0 ? events_ns / steps_ns : 0;
}

/* Returns true if PyTorch's callbacks stayed installed in all steps of some process. */
static bool is_observed(const struct model *model)
{
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model_meta(model, i, "torch.callbacks"))
			return true;
	return false;
}

struct recording_price recording_price_find(const struct model *model, const struct step_times *times)
{
	struct recording_price price = {.operators = operator_cost_find(model, times, MODEL_NONE)};
	const struct operator_cost *operators = &price.operators;
	double own, half;

	if (operators->with < operators->count && is_observed(model)) {
		price.unknown =
			"PyTorch's callbacks also ran in the steps without operators, because only operators reveal the steps";
		return price;
	}
	price.unknown = operators->unknown;
	price.is_counted = operators->count && !operators->with;
	if (price.unknown && !price.is_counted)
		return price;
	if (!own_share(&own, model, times) && price.is_counted) {
		price.unknown = model_reason(model, REASON_NO_COST);
		return price;
	}
	own += counted_share(model, times);
	half = price.is_counted ? 0 : operators->half * operators->with / operators->count;
	price.has_interval = true;
	price.ratio = own + (price.is_counted ? 0 : operators->ratio * operators->with / operators->count);
	price.low = fmax(0, price.ratio - half);
	price.high = fmax(0, price.ratio + half);
	price.all = own + operators->ratio;
	price.unknown = operator_cost_is_told(price.ratio, half) ? NULL : RECORDING_PRICE_BOUND;
	return price;
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
                              .definition = "events times the cost of one event, and readings of CPU time times the "
                                            "cost of one reading, in the program's threads"},
	[COST_STACKS] =
		{.name = "stacks_ns",
                 .title = "lines",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition =
                         "Python frames read for lines, times the calibrated cost of one frame, in the program's threads"},
	[COST_DRAINER] = {.name = "drainer_cpu_ns",
                          .title = "own thread",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_NS,
                          .definition = "CPU time of the recorder's own thread"},
	[COST_WALL] = {.name = "wall_ns",
                       .title = "recorded",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "time from the first to the last known instant of the process"},
	[COST_CPU] =
		{.name = "cpu_ns",
                 .title = "CPU",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition =
                         "CPU time of the process; if it was not sampled, recorded time times the number of recording threads "
                         "plus the recorder's thread"},
	[COST_RATIO] = {.name = "ratio",
                        .title = "%",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = RECORDING_COST_DEFINITION,
                        .denominator = "column 'CPU'",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[COST_ON] =
		{.name = "on_steps",
                 .title = "steps with",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .role = ROLE_EVIDENCE,
                 .definition =
                         "complete steps with operators that have a neighbour without; excludes the first three steps, steps "
                         "with an evaluation, and neighbours across a gap"},
	[COST_OFF] = {.name = "off_steps",
                      .title = "steps without",
                      .type = TABLE_INT,
                      .unit = UNIT_COUNT,
                      .role = ROLE_EVIDENCE,
                      .definition = "steps without operators that these steps are compared with"},
	[COST_ON_MEAN] = {.name = "on_mean_ns",
                          .title = "mean with",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_NS,
                          .definition = "mean duration of the steps with operators"},
	[COST_OFF_MEAN] =
		{.name = "off_mean_ns",
                 .title = "mean without",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition = "mean, over the steps with operators, of the mean duration of their neighbours without"},
	[COST_DIFFERENCE] =
		{.name = "difference_ratio",
                 .title = "difference",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .definition =
                         "extra time of a step with operators over its neighbours without: mean difference divided by the mean "
                         "without"},
	[COST_DIFFERENCE_LOW] =
		{.name = "difference_low_ratio",
                 .title = "low",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_EVIDENCE,
                 .definition = "lower end of the 95 % interval of difference_ratio (Student's t on the differences)"},
	[COST_DIFFERENCE_HIGH] = {.name = "difference_high_ratio",
                                  .title = "high",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_EVIDENCE,
                                  .definition = "upper end of the 95 % interval of difference_ratio"},
};

static void set_difference(struct table *table, int row, const struct operator_cost *cost)
{
	if (cost->unknown) {
		for (int column = COST_ON; column <= COST_DIFFERENCE_HIGH; column++)
			table_set_missing(table, row, column, cost->unknown);
		return;
	}
	table_set_int(table, row, COST_ON, cost->pairs);
	table_set_int(table, row, COST_OFF, cost->beside);
	table_set_double(table, row, COST_ON_MEAN, cost->with_ns);
	table_set_double(table, row, COST_OFF_MEAN, cost->without_ns);
	table_set_double(table, row, COST_DIFFERENCE, cost->ratio);
	table_set_double(table, row, COST_DIFFERENCE_LOW, cost->ratio - cost->half);
	table_set_double(table, row, COST_DIFFERENCE_HIGH, cost->ratio + cost->half);
}

static void cost_add_row(struct table *table, const struct model *model, const struct step_times *times,
                         uint32_t process, bool is_window)
{
	const char *reason = is_window ? RECORDING_COST_OF_A_PART : model_reason(model, REASON_NO_COST);
	const struct operator_cost operators = operator_cost_find(model, times, process);
	struct recording_cost cost;
	int row = table_row(table);

	table_set_text(table, row, COST_PROCESS, process_label(model, process, &table->arena));
	set_difference(table, row, &operators);
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
		table_set_missing(table, row, COST_STACKS, "no Python lines were recorded");
	table_set_double(table, row, COST_DRAINER, cost.drainer_ns);
	table_set_double(table, row, COST_WALL, cost.wall_ns);
	table_set_double(table, row, COST_CPU, cost.cpu_ns);
	table_set_double(table, row, COST_RATIO, cost.ratio);
}

static enum status cost_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	bool is_ours = false;

	table_init(table, "cost", "Cost of recording",
	           "cost of the recorder in each process, measured by the recorder itself");
	table_columns(table, columns, COST_COLUMNS);
	for (uint32_t i = 0; i < model->processes_count; i++) {
		is_ours |= model->processes[i].role == STEPSCOPE_ROLE_HOST;
		/* `stepscope run` records the machine in its own process, beside the program */
		if (model->processes[i].role != STEPSCOPE_ROLE_IMPORTED &&
		    model->processes[i].role != STEPSCOPE_ROLE_HOST)
			cost_add_row(table, model, times, i, context->options.filter.has_steps);
	}
	if (!table->row_count)
		table->empty = is_ours ? "no process of the program was recorded" : "another tool recorded this";
	return STATUS_OK;
}

const struct analysis analysis_cost = {
	.name = "cost",
	.row = "process",
	.question = "how much did the recording cost?",
	.run = cost_run,
};
