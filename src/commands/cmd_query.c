/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_query.c: `stepscope query RUN "SELECT ..."`: SQL over the tables of a run and over its trace.
 */
#include "commands/command.h"
#include "commands/say.h"
#include "load/load_run.h"
#include "output/result.h"
#include "output/text/csv.h"
#include "output/text/json.h"
#include "output/text/text.h"
#include "query/query.h"

#include <errno.h>

#define MAXIMUM_OUTPUT ((size_t)1 << 31)
#define ROWS_AT_ONCE 10000
#define MAXIMUM_ROWS 1000000 /* for text and JSON, which are written as a whole */

static const char *steps, *window, *output, *schema_name;
static int64_t memory_bytes, query_memory_bytes = (int64_t)256 << 20;
static double seconds = 60;
static bool is_list, is_json, is_csv;

static const struct option options[] = {
	OPTION_GROUP("Tables"),
	OPTION_FLAG("tables", 0, &is_list, "list the tables"),
	OPTION_TEXT("schema", 0, &schema_name, "TABLE", "list the columns of TABLE and their definitions"),
	OPTION_TEXT("steps", 0, &steps, "A-B",
                    "restrict the report's tables to these steps; 'spans' and other raw tables are not restricted"),
	OPTION_TEXT("window", 0, &window, "N", WINDOW_HELP),
	OPTION_GROUP("Form"),
	OPTION_FLAG("json", 0, &is_json, "print one JSON document: stepscope.table/1"),
	OPTION_FLAG("csv", 0, &is_csv, "print CSV, with any number of rows"),
	OPTION_TEXT("output", 'o', &output, "FILE", "write to FILE instead of standard output"),
	OPTION_GROUP("Limits"),
	OPTION_DOUBLE("time-limit", 0, &seconds, "SECONDS", "time limit of the query (0 sets no limit; default: 60)"),
	OPTION_BYTES("query-memory", 0, &query_memory_bytes, "SIZE",
                     "memory limit of the query (0 sets no limit; default: 256M)"),
	OPTION_BYTES("memory", 0, &memory_bytes, "SIZE", MEMORY_HELP("512M")),
	OPTION_END,
};

static enum status cmd_query_check_usage(const struct options_result *arguments, struct error *err)
{
	int wanted = schema_name ? 1 : 2;

	if (is_json && is_csv)
		return error_set(err, STATUS_USAGE, "options '--json' and '--csv' exclude each other");
	if (seconds < 0 || query_memory_bytes < 0)
		return error_set(err, STATUS_USAGE, "options '--time-limit' and '--query-memory' want 0 or more");
	if (arguments->operand_count > wanted)
		return error_set(err, STATUS_USAGE, "query takes a run and one statement, got also '%s'",
		                 arguments->operands[wanted]);
	if (arguments->operand_count == wanted)
		return STATUS_OK;
	error_set(err, STATUS_USAGE, schema_name ? "query --schema wants a run" : "query wants a run and a statement");
	error_hint(err, "for example: stepscope query latest \"SELECT name, self_ns FROM ops LIMIT 5\"");
	return STATUS_USAGE;
}

/* ---- writing ---- */

static void cmd_query_add_table(struct buffer *out, const struct table *table)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};
	const struct text_view view = {.has_heading = true, .is_raw = true}; /* WHERE needs the raw name */
	struct json_writer json;

	if (is_csv) {
		csv_table(out, table);
	} else if (is_json) {
		json_writer_init(&json, out, JSON_PRETTY);
		json_table(&json, table);
		buffer_add_text(out, "\n");
	} else {
		text_table(out, table, &view, &style);
	}
}

static enum status write_rows(FILE *file, struct query *query, struct error *err)
{
	struct table rows;
	struct buffer text;
	enum status status = query_fetch(query, &rows, MAXIMUM_ROWS, err);

	if (status)
		return status;
	buffer_init(&text, MAXIMUM_OUTPUT);
	if (!query->is_done) {
		status = error_set(err, STATUS_LIMIT, "the query returns more than %d rows", MAXIMUM_ROWS);
		error_hint(err, "'--csv' writes any number of rows; LIMIT in the statement reduces their number");
	} else {
		cmd_query_add_table(&text, &rows);
		status = write_text(file, &text, err);
	}
	buffer_release(&text);
	table_release(&rows);
	return status;
}

/* Writes in pieces, because the result may be larger than memory. */
static enum status write_csv(FILE *file, struct query *query, struct error *err)
{
	enum status status = STATUS_OK;
	bool has_heading = false;

	while (!status && !query->is_done) {
		struct table rows;
		struct buffer text;

		status = query_fetch(query, &rows, ROWS_AT_ONCE, err);
		if (status)
			break;
		buffer_init(&text, MAXIMUM_OUTPUT);
		if (!has_heading)
			csv_heading(&text, &rows);
		has_heading = true;
		csv_rows(&text, &rows);
		status = write_text(file, &text, err);
		buffer_release(&text);
		table_release(&rows);
	}
	return status;
}

static enum status write_result(struct query *query, struct error *err)
{
	FILE *file = output ? fopen(output, "w") : stdout;
	enum status status;

	if (!file)
		return error_errno(err, STATUS_IO, errno, "cannot write '%s'", output);
	status = is_csv ? write_csv(file, query, err) : write_rows(file, query, err);
	if (output && fclose(file) != 0 && !status)
		status = error_errno(err, STATUS_IO, errno, "cannot write '%s'", output);
	return status;
}

/* ---- tables and columns ---- */

static void list_tables(void)
{
	for (int i = 0; query_model_tables[i].name; i++)
		printf("%-14s %s\n", query_model_tables[i].name, query_model_tables[i].question);
	for (int i = 0; analyses[i]; i++)
		printf("%-14s %s\n", analyses[i]->name, analyses[i]->question);
}

static enum status write_schema(struct query *query, struct error *err)
{
	struct table columns;
	struct buffer text;
	enum status status;

	if (!query_schema(query, schema_name, &columns)) {
		error_set(err, STATUS_USAGE, "there is no table '%s'", schema_name);
		error_hint(err, "'stepscope query --tables' lists the tables");
		return STATUS_USAGE;
	}
	buffer_init(&text, MAXIMUM_OUTPUT);
	cmd_query_add_table(&text, &columns);
	status = output ? write_text_file(output, &text, err) : write_text(stdout, &text, err);
	buffer_release(&text);
	table_release(&columns);
	return status;
}

/* --steps restricts tables of analyses, but not the trace. */
static void tell_steps(const char *sql)
{
	if (steps && sql && !common.is_quiet && strcasestr(sql, "spans"))
		say("note: --steps does not restrict 'spans': use WHERE step BETWEEN A AND B\n");
}

static enum status cmd_query_answer(struct report *report, const char *sql, struct error *err)
{
	const struct query_limits limits = {seconds, query_memory_bytes};
	struct query query;
	enum status status = query_init(&query, report, &limits, err);

	if (status)
		return status;
	if (schema_name) {
		status = write_schema(&query, err);
	} else {
		tell_steps(sql);
		status = query_begin(&query, sql, err);
		status = status ? status : write_result(&query, err);
	}
	query_release(&query);
	return status;
}

static int cmd_query_run(const struct options_result *arguments, struct error *err)
{
	struct analysis_options analysis = {.keeps_recorded = true};
	struct loaded_run loaded;
	struct report report;
	enum status status;

	if (is_list) {
		list_tables();
		return 0;
	}
	status = cmd_query_check_usage(arguments, err);
	if (status)
		return status_exit(status);
	if (parse_steps(steps, &analysis, err) || parse_window(window, &analysis, err))
		return status_exit(err->status);
	status = load_run(&loaded, arguments->operands[0], &analysis, memory_bytes, err);
	if (status)
		return status_exit(status);
	report_init(&report, &loaded.model, &analysis, loaded.path);
	status = cmd_query_answer(&report, schema_name ? NULL : arguments->operands[1], err);
	tell_defects(&report);
	report_release(&report);
	loaded_run_release(&loaded);
	return status_exit(status);
}

const struct command command_query = {
	.name = "query",
	.summary = "Query the tables of a run in SQL",
	.usage = "stepscope query [options] RUN \"SELECT ...\"",
	.examples = "  stepscope query latest \"SELECT name, self_ns FROM ops ORDER BY self_ns DESC LIMIT 10\"\n"
		    "  stepscope query latest --schema spans\n"
		    "  stepscope query runs/a \"SELECT * FROM spans WHERE kind = 'op'\" --csv -o ops.csv",
	.options = options,
	.run = cmd_query_run,
};
