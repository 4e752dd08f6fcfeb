/* SPDX-License-Identifier: Apache-2.0
 *
 * run_time.c: the table `run_time`: where the wall time of the whole run goes.
 */
#include "analysis/step_times/run_parts.h"
#include "model/cell_words.h"

enum {
	TIME_PART,
	TIME_TOTAL,
	TIME_RATIO,
	TIME_MEANING,
	TIME_COLUMNS,
};

static const struct table_column columns[TIME_COLUMNS] = {
	[TIME_PART] = {.name = "part", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "part of the run"},
	[TIME_TOTAL] = {.name = "total_ns",
                        .title = "time",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_NS,
                        .definition = "time in it, of all occurrences; the mean over the ranks. An instant is in one "
                                      "part, so the rows sum to the wall time. If a part was not measured, its time is "
                                      "in the other parts",
                        .rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL},
	[TIME_RATIO] = {.name = "ratio",
                        .title = "%",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = "share of the wall time",
                        .denominator = "wall time of the run: from the start of the program by `stepscope run` to its "
                                       "end; without `stepscope run`, from the first to the last recorded instant",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE},
	[TIME_MEANING] = {.name = "meaning",
                          .type = TABLE_TEXT,
                          .definition = "definition of the part",
                          .is_hidden = true},
};

static const char *const meanings[RUN_PART_COUNT] = {
	[RUN_PART_START] = "before the first step, outside the parts below",
	[RUN_PART_COMPILATION] = "in torch.compile, at any time",
	[RUN_PART_FIRST_BATCHES] = "start of loader workers, and the wait for the first batch that follows; without "
				   "workers, the first wait for a batch",
	[RUN_PART_STEPS] = "in steps, and between them in phases such as data, forward and optimizer",
	[RUN_PART_EVALUATION] = "in evaluations, inside or outside steps",
	[RUN_PART_CHECKPOINTS] = "in phases checkpoint and in torch.save",
	[RUN_PART_IDLE] = "between the first and the last step, outside all operators and phases, while the thread of "
			  "the loop neither runs nor waits for a processor; in a step, only stretches of ten median steps "
			  "or more",
	[RUN_PART_UNKNOWN] = "between steps, outside everything that was recorded",
	[RUN_PART_END] = "after the last step, outside the parts above",
};

static void run_time_add_row(struct table *table, const struct run_parts *parts, enum run_part part)
{
	const char *missing = parts->unknown ? parts->unknown : parts->missing[part];
	int row = table_row(table);

	table_set_text(table, row, TIME_PART, run_part_name(part));
	table_set_text(table, row, TIME_MEANING, meanings[part]);
	if (missing)
		table_set_missing(table, row, TIME_TOTAL, missing);
	else
		table_set_double(table, row, TIME_TOTAL, parts->ns[part]);
	if (!missing && !(parts->wall_ns > 0))
		missing = RUN_PARTS_NO_TIME;
	if (missing)
		table_set_missing(table, row, TIME_RATIO, missing);
	else
		table_set_double(table, row, TIME_RATIO, parts->ns[part] / parts->wall_ns);
}

static enum status run_time_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct run_parts *parts = run_parts_get(context);

	table_init(table, "run_time", "Where the run goes", "wall time of the whole run, by the activity of the ranks");
	table_columns_of(table, columns, TIME_COLUMNS, parts->wall_ns);
	for (enum run_part part = 0; part < RUN_PART_COUNT; part++)
		run_time_add_row(table, parts, part);
	if (!parts->unknown && !parts->has_launch)
		table->note = "`stepscope run` did not start the program, so the time before its first recorded "
			      "instant is not part of the run";
	return STATUS_OK;
}

const struct analysis analysis_run_time = {
	.name = "run_time",
	.row = "part of the run",
	.question = "where does the wall time of the whole run go?",
	.run = run_time_run,
};
