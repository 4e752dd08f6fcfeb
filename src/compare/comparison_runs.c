/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_runs.c: the table `runs` of a comparison: the data of each run that is compared.
 */
#include "compare/comparison_build.h"
#include "model/cell_words.h"

#include <math.h>

static const struct table_column columns[RUNS_COLUMNS] = {
	[RUNS_SIDE] = {.name = "side", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "base or new"},
	[RUNS_RUN] = {.name = "run", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name of the run"},
	[RUNS_CREATED] = {.name = "created", .type = TABLE_TEXT, .definition = "start of the run"},
	[RUNS_STEPS] = {.name = "steps",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "number of complete steps compared",
                        .rules = RULE_NOT_NEGATIVE},
	[RUNS_SKIPPED] = {.name = "warm_up_steps",
                          .title = "warm-up",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "steps excluded at the start: the stretch in the first quarter in which at "
                                        "least half of the steps are slow. A slow step exceeds the median of the second "
                                        "half by 5 * 1.4826 median absolute deviations and by 5 %",
                          .rules = RULE_NOT_NEGATIVE},
	[RUNS_MEDIAN] = {.name = "step_ns",
                         .title = "step time",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_NS,
                         .definition = "median duration of these steps (evened out if steps are of two kinds; if the run "
                                       "drifts, in its middle)"},
	[RUNS_ERROR] = {.name = "error_ratio",
                        .title = "error",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .denominator = "the median",
                        .definition = "standard error of the median from the run's own steps, by a stationary bootstrap "
                                      "of blocks of steps"},
	[RUNS_TREND] = {.name = "trend_ratio",
                        .title = "drift",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .denominator = "the duration of the first step",
                        .definition = "change of the step time over the run, removed before the comparison"},
	[RUNS_DAMAGE] = {.name = "damage",
                         .type = TABLE_TEXT,
                         .definition = "reason for the run's failure, and losses of the input that the ledger lists",
                         .is_hidden = true},
	[RUNS_BLOCK] = {.name = "block_steps",
                        .title = "block",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_COUNT,
                        .role = ROLE_EVIDENCE,
                        .definition = "mean length of the bootstrap's blocks; 1 if steps are independent of each other",
                        .is_hidden = true},
};

static void runs_add_row(struct table *table, const struct compared_sides *sides, int side, size_t i)
{
	const struct compared_run *run = &sides->runs[side][i];
	const struct step_level *level = &sides->levels[side][i];
	int row = table_row(table);

	table_set_text(table, row, RUNS_SIDE, side == SIDE_BASE ? CELL_SIDE_BASE : CELL_SIDE_NEW);
	table_set_text(table, row, RUNS_RUN, run->name);
	table_set_text_or(table, row, RUNS_CREATED, run->created, "the input has no wall clock");
	table_set_int(table, row, RUNS_STEPS, sides->has_level[side][i] ? (int64_t)level->run.steps : 0);
	table_set_int(table, row, RUNS_SKIPPED, run->warm_up);
	table_set_text_or(table, row, RUNS_DAMAGE, compared_run_trouble(run, &table->arena), "the input is whole");
	if (!sides->has_level[side][i]) {
		for (int column = RUNS_MEDIAN; column < RUNS_COLUMNS; column++)
			if (column != RUNS_DAMAGE)
				table_set_missing(table, row, column,
				                  run->no_steps ? run->no_steps : "no step was completed");
		return;
	}
	table_set_double(table, row, RUNS_MEDIAN, exp(level->run.level));
	if (level->run.steps > 1)
		table_set_double(table, row, RUNS_ERROR, level->run.error);
	else
		table_set_missing(table, row, RUNS_ERROR, "the error needs more than one step");
	table_set_double(table, row, RUNS_BLOCK, level->block);
	if (level->has_trend)
		table_set_double(table, row, RUNS_TREND, level->trend);
	else
		table_set_missing(table, row, RUNS_TREND, "no drift of 1 % or more");
}

void comparison_add_runs(struct table *table, struct compared_sides *sides)
{
	table_init(table, "runs", "Runs", "the runs that are compared");
	table_columns(table, columns, RUNS_COLUMNS);
	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			runs_add_row(table, sides, side, i);
}
