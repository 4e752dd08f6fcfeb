/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_phases.c: the table `rank_phases`: each phase over the ranks: how far they differ, and which one is slowest.
 */
#include "analysis/analysis_context.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_kinds.h"
#include "model/cell_words.h"

enum {
	SPREAD_PHASE,
	SPREAD_MEAN,
	SPREAD_MIN,
	SPREAD_MAX,
	SPREAD_NS,
	SPREAD_RATIO,
	SPREAD_SLOWEST,
	SPREAD_COLUMNS,
};

static const struct table_column columns[SPREAD_COLUMNS] = {
	[SPREAD_PHASE] = {.name = "phase",
                          .type = TABLE_TEXT,
                          .role = ROLE_KEY,
                          .definition = "phase; other: time outside all phases; step: the whole step"},
	[SPREAD_MEAN] = {.name = "mean_ns",
                         .title = "mean",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_NS,
                         .definition = "mean over the ranks of the mean time in it per complete step",
                         .rules = RULE_NOT_NEGATIVE},
	[SPREAD_MIN] = {.name = "min_ns",
                        .title = "fastest",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_NS,
                        .definition = "smallest mean time of a rank",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                        .other = "max_ns"},
	[SPREAD_MAX] = {.name = "max_ns",
                        .title = "slowest",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_NS,
                        .definition = "largest mean time of a rank",
                        .rules = RULE_NOT_NEGATIVE},
	[SPREAD_NS] = {.name = "spread_ns",
                       .title = "spread",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "difference between max_ns and min_ns",
                       .rules = RULE_NOT_NEGATIVE},
	[SPREAD_RATIO] = {.name = "spread_ratio",
                          .title = "spread %",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_RATIO,
                          .definition = "spread_ns divided by mean_ns"},
	[SPREAD_SLOWEST] = {.name = "slowest",
                            .title = "rank",
                            .type = TABLE_TEXT,
                            .definition = "rank with the largest mean time"},
};

/* Computes the mean time in the phase (PHASE_COUNT: in the whole step) over the rank's complete selected steps with
 * known phases. Returns false if there are none. */
static bool mean_of(const struct model *model, const struct step_times *times, uint32_t process, int phase,
                    double *mean)
{
	double sum = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < times->count; i++) {
		const struct step_time *step = &times->steps[i];

		if (model->steps[i].process != process || step->job == MODEL_NONE || !times->job[step->job].has_phases)
			continue;
		sum += (double)(phase == PHASE_COUNT ? step->dur_ns : step->phase_ns[phase]);
		count++;
	}
	*mean = count ? sum / count : 0;
	return count > 0;
}

static void rank_phases_add_row(struct table *table, const struct model *model, const struct step_times *times,
                                int phase)
{
	double sum = 0, least = 0, most = 0, mean;
	uint32_t ranks = 0, slowest = MODEL_NONE;

	for (uint32_t i = 0; i < times->span_count; i++) {
		if (!times->spans[i].is_rank || !mean_of(model, times, times->spans[i].process, phase, &mean))
			continue;
		sum += mean;
		least = !ranks || mean < least ? mean : least;
		if (!ranks || mean > most) {
			most = mean;
			slowest = times->spans[i].process;
		}
		ranks++;
	}
	if (ranks < 2 || most <= 0)
		return;
	int row = table_row(table);

	table_set_text(table, row, SPREAD_PHASE, phase == PHASE_COUNT ? CELL_PHASE_STEP : phase_name(phase));
	table_set_double(table, row, SPREAD_MEAN, sum / ranks);
	table_set_double(table, row, SPREAD_MIN, least);
	table_set_double(table, row, SPREAD_MAX, most);
	table_set_double(table, row, SPREAD_NS, most - least);
	table_set_double(table, row, SPREAD_RATIO, (most - least) * ranks / sum);
	if (most > least)
		table_set_text(table, row, SPREAD_SLOWEST, process_label(model, slowest, &table->arena));
	else
		table_set_missing(table, row, SPREAD_SLOWEST, "all ranks take the same time");
}

static void rank_phases_add_rows(struct table *table, const struct model *model, const struct step_times *times)
{
	rank_phases_add_row(table, model, times, PHASE_COUNT);
	for (int phase = 1; phase < PHASE_COUNT; phase++)
		rank_phases_add_row(table, model, times, phase);
	rank_phases_add_row(table, model, times, PHASE_OTHER);
}

static enum status rank_phases_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);

	table_init(table, "rank_phases", "Phases over the ranks", "differences between ranks in each phase of a step");
	table_columns(table, columns, SPREAD_COLUMNS);
	if (step_times_trainings(times, model))
		table->empty = STEP_TIMES_NO_RANKS;
	else
		rank_phases_add_rows(table, model, times);
	if (!table->row_count && !table->empty)
		table->empty = "fewer than two ranks completed a step";
	else if (table->row_count)
		table->note = step_kinds_phases_note(times, &table->arena);
	return STATUS_OK;
}

const struct analysis analysis_rank_phases = {
	.name = "rank_phases",
	.row = "phase",
	.question = "in which phase do ranks differ?",
	.run = rank_phases_run,
	.is_of_phases = true,
};
