/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.c: the table `ranks`: the trainers that mark steps, side by side, without the processes that they fork. In a
 * synchronous job all ranks show the same step time, because the fast ones wait for the slow one inside communication.
 * So ranks are compared by the time outside it.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/machine/processes.h"
#include "analysis/ranks/rank_arrivals.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_kinds.h"
#include "base/memory.h"
#include "base/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

enum {
	RANK_PROCESS,
	RANK_RANK,
	RANK_HOST,
	RANK_STEPS,
	RANK_MEAN,
	RANK_P50,
	RANK_DATA,
	RANK_COMMUNICATION,
	RANK_OWN,
	RANK_BEHIND,
	RANK_BEHIND_RATIO,
	RANK_SLOWEST,
	RANK_CAUSED,
	RANK_EXCESS,
	RANK_THEN,
	RANK_WAITED,
	RANK_MOST_STEP,
	RANK_MOST_RATIO,
	RANK_LATE,
	RANK_WAITS,
	RANK_END,
	RANK_COLUMNS,
};

static const struct table_column columns[RANK_COLUMNS] = {
	[RANK_PROCESS] = PROCESS_COLUMN,
	[RANK_RANK] = {.name = "rank", .type = TABLE_INT, .role = ROLE_KEY, .definition = "rank", .is_hidden = true},
	[RANK_HOST] = {.name = "host", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "machine"},
	[RANK_STEPS] =
		{.name = "steps",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .role = ROLE_EVIDENCE,
                 .definition = "number of complete steps that the row covers. If phases are inferred from operators "
                               "that were recorded in only some steps, only steps with operators in all ranks"},
	[RANK_MEAN] = {.name = "mean_ns",
                       .title = "mean step",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "mean duration of its steps",
                       .rules = RULE_NOT_NEGATIVE},
	[RANK_P50] = {.name = "p50_ns",
                      .title = "p50",
                      .type = TABLE_DOUBLE,
                      .unit = UNIT_NS,
                      .definition = "median duration of its steps"},
	[RANK_DATA] = {.name = "data_ns",
                       .title = "data",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "mean time per step in the phase data",
                       .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                       .other = "mean_ns"},
	[RANK_COMMUNICATION] =
		{.name = "communication_ns",
                 .title = "communication",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition = "mean time per step in the phase communication, including waits for others. If "
                               "kernels communicate, the time in which a communication kernel and no compute kernel "
                               "runs on a device",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                 .other = "mean_ns"},
	[RANK_OWN] = {.name = "own_ns",
                      .title = "own",
                      .type = TABLE_DOUBLE,
                      .unit = UNIT_NS,
                      .definition = "mean time per step outside communication",
                      .rules = RULE_AT_MOST_OTHER,
                      .other = "mean_ns"},
	[RANK_BEHIND] = {.name = "behind_ns",
                         .title = "behind",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_NS,
                         .definition = "own_ns minus the median of the other ranks; negative: faster"},
	[RANK_BEHIND_RATIO] = {.name = "behind_ratio",
                               .title = "behind %",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_RATIO,
                               .definition = "behind_ns divided by the median of the other ranks"},
	[RANK_SLOWEST] =
		{.name = "is_slowest",
                 .title = "slowest",
                 .type = TABLE_BOOL,
                 .role = ROLE_EVIDENCE,
                 .definition = "the others wait longest for this rank (caused_ns). If that is unknown, it is the "
                               "last to call the last collective of a step (late_ns); otherwise it has the longest "
                               "own time"},
	[RANK_CAUSED] =
		{.name = "caused_ns",
                 .title = "makes wait",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition = "mean wait in collectives, per step and other rank, for this rank or for a rank that "
                               "it held up before; over the steps that all ranks completed, with operators in all "
                               "ranks",
                 .rules = RULE_NOT_NEGATIVE},
	[RANK_EXCESS] =
		{.name = "excess_ns",
                 .title = "holds up",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition = "how much shorter the mean step would be if this rank were as fast as the next "
                               "slowest. Computed from the part of caused_ns after all other ranks arrived; if "
                               "collectives were not recorded, from own_ns, at most the shortest communication of "
                               "the others",
                 .rules = RULE_NOT_NEGATIVE},
	[RANK_THEN] = {.name = "then_excess_ns",
                       .title = "then holds up",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "excess_ns if the slowest rank were no later than the others: how much shorter the "
                                     "mean step would then be if this rank, too, were no later than the next",
                       .rules = RULE_NOT_NEGATIVE,
                       .is_hidden = true},
	[RANK_WAITED] =
		{.name = "waited_ns",
                 .title = "waited",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition = "mean time per step that it waits in collectives for other ranks, or for ranks that "
                               "held those up before",
                 .rules = RULE_NOT_NEGATIVE,
                 .is_hidden = true},
	[RANK_MOST_STEP] = {.name = "worst_step",
                            .title = "in step",
                            .type = TABLE_INT,
                            .definition = "step in which the others wait longest for it",
                            .is_hidden = true},
	[RANK_MOST_RATIO] = {.name = "worst_step_ratio",
                             .title = "in step %",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_RATIO,
                             .definition = "share of worst_step in the total time that the others wait for it",
                             .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE,
                             .is_hidden = true},
	[RANK_LATE] =
		{.name = "late_ns",
                 .title = "late",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition = "mean time from the first rank's call of the last collective of a step, on the host, "
                               "to its own call",
                 .rules = RULE_NOT_NEGATIVE},
	[RANK_WAITS] = {.name = "waits_ns",
                        .title = "waits",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_NS,
                        .definition = "mean time from its own call to the last rank's call",
                        .rules = RULE_NOT_NEGATIVE},
	[RANK_END] = {.name = "end", .type = TABLE_TEXT, .definition = "how the process ended, if it failed"},
};

struct rank_mean {
	double mean_ns, p50_ns, data_ns, communication_ns, own_ns;
	double alone_ns, then_ns; /* see struct rank_arrival */
	size_t count, with_phases, measured;
	bool has_kernels; /* kernels that communicate */
};

/* Finds when devices of the process communicate and compute nothing. Returns false if they have no kernels that
 * communicate. */
static bool find_exposed(struct intervals *exposed, struct analysis_context *context, uint32_t process)
{
	struct device_work work = {0};
	struct device_times times = {0};
	bool has_kernels;

	device_work_get(&work, context, process, DEVICE_ANY);
	device_times_fill(&times, &work);
	has_kernels = times.communication.count > 0;
	intervals_subtract(exposed, &times.communication, &times.compute);
	device_times_release(&times);
	device_work_release(&work);
	return has_kernels;
}

static void compute_mean(struct rank_mean *mean, struct analysis_context *context, const struct step_times *times,
                         uint32_t process, double *values)
{
	const struct model *model = context->model;
	struct intervals exposed = {0};
	struct summary summary;

	*mean = (struct rank_mean){.has_kernels = find_exposed(&exposed, context, process)};
	for (uint32_t i = 0; i < times->count; i++) {
		const struct model_step *step = &model->steps[i];
		const int64_t *phase_ns = times->steps[i].phase_ns;

		if (step->process != process || !step_kinds_tells_ranks(times, i))
			continue;
		mean->measured += times->steps[i].is_measured;
		values[mean->count++] = (double)times->steps[i].dur_ns;
		mean->with_phases += times->steps[i].has_phases;
		mean->data_ns += times->steps[i].has_phases ? (double)phase_ns[STEPSCOPE_PHASE_DATA] : 0;
		mean->communication_ns += (double)(mean->has_kernels
		                                           ? intervals_within(&exposed, step->start_ns, step->end_ns)
		                                           : phase_ns[STEPSCOPE_PHASE_COMMUNICATION]);
	}
	intervals_release(&exposed);
	if (!summary_compute(&summary, values, mean->count))
		return;
	mean->mean_ns = summary.mean;
	mean->p50_ns = summary.p50;
	if (mean->with_phases)
		mean->data_ns /= (double)mean->with_phases;
	mean->communication_ns /= (double)mean->count;
	mean->own_ns = mean->mean_ns - mean->communication_ns;
}

/* Returns why its waits for others are unknown; NULL: they are known. */
static const char *unknown_communication(const struct step_span *span, const struct rank_mean *mean)
{
	bool is_known = mean->has_kernels || (span->has_waits_in_part && mean->count &&
	                                      mean->measured == mean->count); /* its waits are known in these steps */

	return is_known ? NULL : span->no_waits;
}

static void ranks_add_row(struct table *table, const struct model *model, const struct step_span *span,
                          const struct rank_mean *mean)
{
	const struct process *which = &model->processes[span->process];
	int row = table_row(table);

	table_set_text(table, row, RANK_PROCESS, process_label(model, span->process, &table->arena));
	table_set_text_or(table, row, RANK_HOST,
	                  *model_text(model, which->host) ? model_text(model, which->host) : NULL,
	                  "the trace does not say it");
	table_set_int(table, row, RANK_STEPS, (int64_t)mean->count);
	if (which->rank >= 0)
		table_set_int(table, row, RANK_RANK, which->rank);
	else
		table_set_missing(table, row, RANK_RANK, "no launcher set a rank");
	if (!mean->count) {
		for (int column = RANK_MEAN; column <= RANK_SLOWEST; column++)
			table_set_missing(table, row, column, "no step was completed");
		return;
	}
	table_set_double(table, row, RANK_MEAN, mean->mean_ns);
	table_set_double(table, row, RANK_P50, mean->p50_ns);
	if (mean->data_ns > 0)
		table_set_double(table, row, RANK_DATA, mean->data_ns);
	else
		table_set_missing(table, row, RANK_DATA,
		                  "its steps have no phase data: no wait for data was recorded or marked");
	if (unknown_communication(span, mean)) {
		table_set_missing(table, row, RANK_COMMUNICATION, span->no_waits);
		table_set_missing(table, row, RANK_OWN, span->no_waits);
		return;
	}
	if (mean->has_kernels || mean->communication_ns > 0)
		table_set_double(table, row, RANK_COMMUNICATION, mean->communication_ns);
	else
		table_set_missing(table, row, RANK_COMMUNICATION,
		                  "its steps have no phase communication, and it ran no communication kernel");
	table_set_double(table, row, RANK_OWN, mean->own_ns);
}

/* Returns the median of all sorted values except one that equals `left_out`. So with two ranks, one is compared with
 * the other. */
static double median_of_others(const double *values, size_t count, double left_out)
{
	size_t place = 0, others = count - 1, low = (others - 1) / 2, high = others / 2;

	assert(count > 1 && left_out <= values[count - 1]);

	while (values[place] < left_out)
		place++;
	return (values[low + (low >= place)] + values[high + (high >= place)]) / 2;
}

/* Compares each rank with the median of the others that completed a step. */
static void ranks_compare_ranks(struct table *table, const struct rank_mean *means, double *values)
{
	size_t count = 0;
	double longest;

	for (int row = 0; row < table->row_count; row++) {
		if (means[row].count)
			values[count++] = means[row].own_ns;
	}
	if (!count)
		return;
	sort_doubles(values, count);
	longest = values[count - 1];
	for (int row = 0; row < table->row_count; row++) {
		double median;

		if (!means[row].count)
			continue;
		if (count < 2) {
			for (int column = RANK_BEHIND; column <= RANK_SLOWEST; column++)
				table_set_missing(table, row, column, "there is no other rank");
			continue;
		}
		median = median_of_others(values, count, means[row].own_ns);
		table_set_double(table, row, RANK_BEHIND, means[row].own_ns - median);
		if (median > 0)
			table_set_double(table, row, RANK_BEHIND_RATIO, (means[row].own_ns - median) / median);
		table_set_bool(table, row, RANK_SLOWEST, means[row].own_ns >= longest);
	}
}

/* Used if own times are not known for all ranks. */
static void give_up_comparing(struct table *table, const struct rank_mean *means, const char *reason)
{
	for (int row = 0; row < table->row_count; row++) {
		for (int column = RANK_BEHIND; means[row].count && column <= RANK_SLOWEST; column++)
			table_set_missing(table, row, column, reason);
	}
}

/* Returns the best known measure of who is slowest; 0 if there is none. */
static double lateness(const struct rank_arrivals *arrivals, uint32_t span)
{
	return arrivals->no_waits ? arrivals->list[span].late_ns : arrivals->list[span].caused_ns;
}

static void set_waits(struct table *table, int row, const struct rank_arrivals *arrivals,
                      const struct rank_arrival *arrival)
{
	if (arrivals->no_waits) {
		table_set_missing(table, row, RANK_CAUSED, arrivals->no_waits);
		table_set_missing(table, row, RANK_WAITED, arrivals->no_waits);
	} else {
		table_set_double(table, row, RANK_CAUSED, arrival->caused_ns);
		table_set_double(table, row, RANK_WAITED, arrival->waited_ns);
	}
	if (!arrivals->no_waits && arrival->most_share > 0) {
		table_set_int(table, row, RANK_MOST_STEP, arrival->most_step);
		table_set_double(table, row, RANK_MOST_RATIO, arrival->most_share);
		return;
	}
	for (int column = RANK_MOST_STEP; column <= RANK_MOST_RATIO; column++)
		table_set_missing(table, row, column, arrivals->no_waits ? arrivals->no_waits : "no rank waits for it");
}

static void set_arrival(struct table *table, int row, const struct rank_arrivals *arrivals, uint32_t span)
{
	const struct rank_arrival *arrival = &arrivals->list[span];

	set_waits(table, row, arrivals, arrival);
	if (arrivals->no_calls) {
		table_set_missing(table, row, RANK_LATE, arrivals->no_calls);
		table_set_missing(table, row, RANK_WAITS, arrivals->no_calls);
		return;
	}
	table_set_double(table, row, RANK_LATE, arrival->late_ns);
	table_set_double(table, row, RANK_WAITS, arrival->waits_ns);
}

/* Returns how much shorter the steps of all ranks would be if this rank were no slower than the next slowest. This is
 * less than its distance to the median, and to the mean. No rank can gain more than it waits for others. */
static double ranks_excess_of(const struct rank_mean *means, int count, int rank, bool has_waits)
{
	double next_ns = 0, waits_ns = INFINITY;
	double own_ns = has_waits ? means[rank].alone_ns : means[rank].own_ns;

	for (int i = 0; i < count; i++) {
		if (i == rank || !means[i].count)
			continue;
		next_ns = fmax(next_ns, has_waits ? means[i].alone_ns : means[i].own_ns);
		waits_ns = fmin(waits_ns, means[i].communication_ns);
	}
	return fmax(0, has_waits ? own_ns - next_ns : fmin(own_ns - next_ns, waits_ns));
}

/* Sets the same excess among the ranks without the slowest. */
static void set_then(struct table *table, const struct rank_mean *means, const char *unknown)
{
	for (int row = 0; row < table->row_count; row++) {
		double next_ns = 0;

		for (int i = 0; i < table->row_count; i++)
			next_ns = i == row ? next_ns : fmax(next_ns, means[i].then_ns);
		if (unknown)
			table_set_missing(table, row, RANK_THEN, unknown);
		else
			table_set_double(table, row, RANK_THEN, fmax(0, means[row].then_ns - next_ns));
	}
}

/* unknown: why own times are unknown; NULL: they are known. */
static void set_excess(struct table *table, const struct rank_mean *means, bool has_waits, const char *unknown)
{
	bool has_communication = false;

	for (int row = 0; row < table->row_count; row++)
		has_communication |= means[row].count && (means[row].has_kernels || means[row].communication_ns > 0);
	if (!unknown && !has_communication)
		unknown = "no communication between ranks was recorded, so it is unknown whether other ranks "
			  "wait for this one";
	for (int row = 0; row < table->row_count; row++) {
		if (table->row_count < 2)
			table_set_missing(table, row, RANK_EXCESS, "there is no other rank");
		else if (!means[row].count)
			table_set_missing(table, row, RANK_EXCESS, "no step was completed");
		else if (!has_waits && unknown)
			table_set_missing(table, row, RANK_EXCESS, unknown);
		else
			table_set_double(table, row, RANK_EXCESS,
			                 ranks_excess_of(means, table->row_count, row, has_waits));
	}
}

/* Sets which rank the others wait for. The rows are those of the ranks, in order. */
static void set_arrivals(struct table *table, struct analysis_context *context, const struct step_times *times,
                         struct rank_mean *means, const char *unknown)
{
	const struct model *model = context->model;
	struct rank_arrivals arrivals;
	double most = 0;
	int row = 0;

	rank_arrivals_find(&arrivals, context, times);
	for (uint32_t i = 0; i < times->span_count; i++) {
		double value = lateness(&arrivals, i);

		most = times->spans[i].is_rank && value > most ? value : most;
	}
	for (uint32_t i = 0; i < times->span_count; i++) {
		const char *end;

		if (!times->spans[i].is_rank)
			continue;
		end = process_failure(model, times->spans[i].process, &table->arena);
		if (end)
			table_set_text(table, row, RANK_END, end);
		else
			table_set_missing(table, row, RANK_END, "no failure is known");
		set_arrival(table, row, &arrivals, i);
		means[row].alone_ns = arrivals.list[i].alone_ns;
		means[row].then_ns = arrivals.list[i].then_ns;
		if (means[row].count && (!arrivals.no_waits || !arrivals.no_calls))
			table_set_bool(table, row, RANK_SLOWEST, most > 0 && lateness(&arrivals, i) >= most);
		row++;
	}
	if (!arrivals.no_waits && arrivals.measured < arrivals.steps)
		table->note = arena_printf(
			&table->arena,
			"waits between ranks are from %u of %u steps (those with operators in all ranks)",
			arrivals.measured, arrivals.steps);
	else
		table->note = step_kinds_phases_note(times, &table->arena);
	set_excess(table, means, !arrivals.no_waits, unknown);
	set_then(table, means, arrivals.no_then);
	rank_arrivals_release(&arrivals);
}

static enum status ranks_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	double *values = memory_resize(NULL, (size_t)times->count + model->processes_count + 1, sizeof(*values));
	struct rank_mean *means = memory_resize(NULL, (size_t)times->span_count + 1, sizeof(*means));
	const char *unknown = NULL;

	table_init(table, "ranks", "Ranks", "comparison of the trainers that mark steps");
	table_columns(table, columns, RANK_COLUMNS);
	for (uint32_t i = 0; i < times->span_count; i++) {
		struct rank_mean *mean = &means[table->row_count];

		if (!times->spans[i].is_rank)
			continue;
		compute_mean(mean, context, times, times->spans[i].process, values);
		ranks_add_row(table, model, &times->spans[i], mean);
		if (unknown_communication(&times->spans[i], mean))
			unknown = times->spans[i].no_waits;
	}
	if (step_times_ranks_apart(times, model))
		unknown = step_times_ranks_apart(times, model);
	if (unknown)
		give_up_comparing(table, means, unknown);
	else
		ranks_compare_ranks(table, means, values);
	set_arrivals(table, context, times, means, unknown);
	table_sort(table, RANK_RANK, true);
	if (!table->row_count)
		table->empty = step_times_empty_reason(times);
	free(values);
	free(means);
	return STATUS_OK;
}

const struct analysis analysis_ranks = {
	.name = "ranks",
	.row = "process that marks steps",
	.question = "is one rank slower than the others?",
	.run = ranks_run,
	.is_of_phases = true,
};
