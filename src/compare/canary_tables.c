/* SPDX-License-Identifier: Apache-2.0
 *
 * canary_tables.c: see the header. Nothing is computed here.
 */
#include "compare/canary_tables.h"

#include "compare/canary_metrics.h"

#include <string.h>

enum {
	NUMBER_RUN,
	NUMBER_CREATED,
	NUMBER_STEPS,
	NUMBER_P50,
	NUMBER_TOKENS,
	NUMBER_VALUES, /* from here on the values of the run, see values[] */
	NUMBER_COLUMNS = NUMBER_VALUES + 10,
};

static const struct value_column {
	const char *value; /* name of the run's value */
	const char *name, *title;
	enum table_unit unit;
	const char *definition;
} values[NUMBER_COLUMNS - NUMBER_VALUES] = {
	{"step_time_mean", "mean_ns", "mean step", UNIT_NS, "mean duration of the steps"},
	{"step_time_p95", "p95_ns", "p95", UNIT_NS, "95 % of the steps are at most this long"},
	{"tokens_per_s", "tokens_per_s", "tokens/s", UNIT_COUNT,
         "tokens per step divided by the mean step, as estimated by the writer of the file"},
	{"device_memory", "device_memory_bytes", "device memory", UNIT_BYTES,
         "largest peak of PyTorch's allocations on a device"},
	{"utilization", "utilization_ratio", "utilization", UNIT_RATIO,
         "utilization of the GPU, as measured by the writer of the file"},
	{"wait_ratio", "wait_ratio", "between steps", UNIT_RATIO,
         "share of the time between steps: waits for data and callbacks"},
	{"profiled_device_time", "profiled_device_ns", "CUDA time", UNIT_NS,
         "CUDA time in the profiled part of the run; the file does not tell its number of steps"},
	{"profiled_host_time", "profiled_host_ns", "CPU time", UNIT_NS, "CPU time in the profiled part of the run"},
	{"final_loss", "final_loss", "final loss", UNIT_NONE, "the last loss"},
	{"not_finite", "not_finite", "NaN or infinite", UNIT_COUNT, "steps with a loss that is NaN or infinite"},
};

static void add_number_columns(struct table *table)
{
	static const struct table_column first[NUMBER_VALUES] = {
		[NUMBER_RUN] = {.name = "run",
	                        .type = TABLE_TEXT,
	                        .role = ROLE_KEY,
	                        .definition = "run_id, or the file's name if it has no run_id"},
		[NUMBER_CREATED] = {.name = "created", .type = TABLE_TEXT, .definition = "timestamp in the file"},
		[NUMBER_STEPS] = {.name = "steps",
	                          .type = TABLE_INT,
	                          .unit = UNIT_COUNT,
	                          .definition = "number of measured steps"},
		[NUMBER_P50] = {.name = "p50_ns",
	                        .title = "median step",
	                        .type = TABLE_DOUBLE,
	                        .unit = UNIT_NS,
	                        .definition = "median duration of the steps"},
		[NUMBER_TOKENS] = {.name = "tokens",
	                           .title = "tokens per step",
	                           .type = TABLE_DOUBLE,
	                           .unit = UNIT_COUNT,
	                           .definition = "tokens per second times the mean step"},
	};
	struct table_column all[NUMBER_COLUMNS];

	memcpy(all, first, sizeof(first));
	for (int i = NUMBER_VALUES; i < NUMBER_COLUMNS; i++) {
		const struct value_column *value = &values[i - NUMBER_VALUES];

		all[i] = (struct table_column){.name = value->name,
		                               .title = value->title,
		                               .type = TABLE_DOUBLE,
		                               .unit = value->unit,
		                               .definition = value->definition};
	}
	table_columns(table, all, NUMBER_COLUMNS);
}

static void fill_numbers(struct table *table, const struct compared_run *run)
{
	table_init(table, "numbers", "Numbers", "the file's numbers for the whole run");
	add_number_columns(table);
	table_row(table);
	table_set_text(table, 0, NUMBER_RUN, run->name);
	table_set_text_or(table, 0, NUMBER_CREATED, run->created, "the file has no such value");
	table_set_int(table, 0, NUMBER_STEPS, run->summary.steps);
	table_set_double(table, 0, NUMBER_P50, run->summary.median_ns);
	if (run->summary.tokens > 0)
		table_set_double(table, 0, NUMBER_TOKENS, run->summary.tokens);
	else
		table_set_missing(table, 0, NUMBER_TOKENS, "the file has no such value");
	for (int i = NUMBER_VALUES; i < NUMBER_COLUMNS; i++) {
		const struct compared_value *value = compared_run_value(run, values[i - NUMBER_VALUES].value);

		if (value && value->has_value)
			table_set_double(table, 0, i, value->value);
		else
			table_set_missing(table, 0, i, value ? value->reason : "the file has no such value");
	}
}

enum {
	FACTS_KIND,
	FACTS_NAME,
	FACTS_VALUE,
	FACTS_COLUMNS,
};

static void fill_facts(struct table *table, const struct compared_run *run)
{
	static const struct table_column columns[FACTS_COLUMNS] = {
		[FACTS_KIND] = {.name = "kind", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "kind of the fact"},
		[FACTS_NAME] = {.name = "fact", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "key in the file"},
		[FACTS_VALUE] = {.name = "value", .type = TABLE_TEXT, .definition = "value in the file"},
	};

	table_init(table, "facts", "Facts", "the file's facts about the run");
	table_columns(table, columns, FACTS_COLUMNS);
	table->empty = run->facts_count ? NULL : "the file has no facts about the machine or the configuration";
	for (size_t i = 0; i < run->facts_count; i++) {
		int row = table_row(table);

		table_set_text(table, row, FACTS_KIND, fact_kind_names[run->facts[i].kind]);
		table_set_text(table, row, FACTS_NAME, run->facts[i].name);
		table_set_text(table, row, FACTS_VALUE, run->facts[i].value);
	}
}

enum {
	OPERATORS_LIST,
	OPERATORS_NAME,
	OPERATORS_TIME,
	OPERATORS_CALLS,
	OPERATORS_COLUMNS,
};

static void fill_operators(struct table *table, const struct compared_run *run)
{
	static const struct table_column columns[OPERATORS_COLUMNS] = {
		[OPERATORS_LIST] = {.name = "list",
	                            .type = TABLE_TEXT,
	                            .role = ROLE_KEY,
	                            .definition = "list in the file"},
		[OPERATORS_NAME] = {.name = "operation",
	                            .type = TABLE_TEXT,
	                            .role = ROLE_KEY,
	                            .definition = "name of the operator"},
		[OPERATORS_TIME] =
			{.name = "self_ns",
	                 .title = "self",
	                 .type = TABLE_DOUBLE,
	                 .unit = UNIT_NS,
	                 .definition = "self time in the profiled part of the run, on the GPU or on the host"},
		[OPERATORS_CALLS] = {.name = "calls",
	                             .type = TABLE_DOUBLE,
	                             .unit = UNIT_COUNT,
	                             .definition = "calls in the profiled part of the run"},
	};

	table_init(table, "operators", "Operators", "operators in the profiler's lists of the file");
	table_columns(table, columns, OPERATORS_COLUMNS);
	table->empty = run->parts_count ? NULL : "the file has no operator lists of a profiler";
	for (size_t i = 0; i < run->parts_count; i++) {
		const struct compared_part *part = &run->parts[i];
		int row = table_row(table);

		table_set_text(table, row, OPERATORS_LIST, part->level);
		table_set_text(table, row, OPERATORS_NAME, part->name);
		table_set_double(table, row, OPERATORS_TIME, part->amount);
		if (part->has_calls)
			table_set_double(table, row, OPERATORS_CALLS, part->calls);
		else
			table_set_missing(table, row, OPERATORS_CALLS, "the file has no such value");
	}
}

void canary_tables_init(struct canary_tables *tables, const struct compared_run *run)
{
	fill_numbers(&tables->numbers, run);
	fill_facts(&tables->facts, run);
	fill_operators(&tables->operators, run);
}

void canary_tables_release(struct canary_tables *tables)
{
	table_release(&tables->numbers);
	table_release(&tables->facts);
	table_release(&tables->operators);
}
