/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_compare.c: `stepscope compare BASE NEW`: whether NEW is slower, how sure that is, and where the difference comes from.
 */
#include "commands/command.h"

#include "base/memory.h"
#include "commands/load_run.h"
#include "compare/comparison.h"
#include "output/comparison_json.h"
#include "output/comparison_text.h"
#include "output/csv.h"
#include "output/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAXIMUM_OUTPUT ((size_t)1 << 28)

static const char *steps, *table_name, *output, *smallest, *tolerance, *noise;
static int64_t memory_bytes;
static bool is_json, is_csv, is_long, is_explained;

static const struct option options[] = {
	OPTION_GROUP("What is compared"),
	OPTION_TEXT("steps", 0, &steps, "A-B", "only these step numbers"),
	OPTION_TEXT("smallest", 0, &smallest, "PERCENT", "changes below it do not count, however certain (1)"),
	OPTION_TEXT("tolerance", 0, &tolerance, "PERCENT", "\"no difference\" must rule out changes of this size (3)"),
	OPTION_TEXT("noise", 0, &noise, "PERCENT",
                    "how much runs differ from each other, assumed where no repeats tell it (1)"),
	OPTION_GROUP("Form"),
	OPTION_FLAG("long", 0, &is_long, "everything that contributes to the difference"),
	OPTION_TEXT("table", 't', &table_name, "NAME",
                    "one table: verdict, metrics, differences, contributions or runs"),
	OPTION_FLAG("explain", 0, &is_explained, "with --table: say how each column is defined"),
	OPTION_FLAG("json", 0, &is_json, "one JSON document: stepscope.compare/1, with --table stepscope.table/1"),
	OPTION_FLAG("csv", 0, &is_csv, "with --table: CSV"),
	OPTION_TEXT("output", 'o', &output, "FILE", "write there"),
	OPTION_BYTES("memory", 0, &memory_bytes, "SIZE", "memory for a trace before it goes to a temporary file (1G)"),
	OPTION_END,
};

/* ---- options ---- */

static enum status parse_percent(const char *text, const char *name, double *ratio, struct error *err)
{
	char *end;
	double percent;

	if (!text)
		return STATUS_OK;
	percent = strtod(text, &end);
	while (*end == ' ')
		end++;
	if (end == text || (strcmp(end, "%") != 0 && *end) || !(percent >= 0) || !(percent <= 1000))
		return error_set(err, STATUS_USAGE, "option '--%s' wants a percentage such as 3, got '%s'", name, text);
	*ratio = percent / 100;
	return STATUS_OK;
}

static enum status parse_options(struct comparison_options *compare, struct analysis_options *analysis,
                                 struct error *err)
{
	*compare = comparison_defaults;
	if (parse_percent(smallest, "smallest", &compare->smallest, err) ||
	    parse_percent(tolerance, "tolerance", &compare->tolerance, err) ||
	    parse_percent(noise, "noise", &compare->assumed_noise, err) || parse_steps(steps, analysis, err))
		return err->status;
	if (compare->tolerance <= 0)
		return error_set(err, STATUS_USAGE, "option '--tolerance' wants more than 0");
	if (is_json && is_csv)
		return error_set(err, STATUS_USAGE, "options '--json' and '--csv' exclude each other");
	if ((is_csv || is_explained) && !table_name)
		return error_set(err, STATUS_USAGE, "options '--csv' and '--explain' want '--table'");
	return STATUS_OK;
}

/* How many of the operands are the base. */
static enum status split_operands(const struct options_result *arguments, int *base_count, struct error *err)
{
	*base_count = arguments->has_terminator ? arguments->before_terminator : 1;
	if (*base_count >= 1 && arguments->operand_count > *base_count &&
	    (arguments->has_terminator || arguments->operand_count == 2))
		return STATUS_OK;
	error_set(err, STATUS_USAGE, "compare takes two runs, or runs on both sides of '--'");
	error_hint(err, "for example 'stepscope compare base1 base2 -- new1 new2'");
	return STATUS_USAGE;
}

/* ---- reading ---- */

static enum status read_run(struct compared_run *run, const char *operand, const struct analysis_options *analysis,
                            struct error *err)
{
	struct loaded_run loaded;
	struct report report;
	enum status status = load_run(&loaded, operand, analysis, memory_bytes, err);

	if (status)
		return status;
	report_init(&report, &loaded.model, analysis, loaded.path);
	compared_run_init(run, &report);
	tell_defects(&report);
	report_release(&report);
	loaded_run_release(&loaded);
	return STATUS_OK;
}

/* ---- writing ---- */

static const struct table *table_called(const struct comparison *comparison, const char *name)
{
	const struct table *const tables[] = {&comparison->verdict, &comparison->metrics, &comparison->differences,
	                                      &comparison->contributions, &comparison->runs};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strcmp(tables[i]->name, name))
			return tables[i];
	return NULL;
}

static enum status add_table(struct buffer *text, const struct comparison *comparison, const struct text_style *style,
                             struct error *err)
{
	const struct table *table = table_called(comparison, table_name);
	struct json_writer json;

	if (!table) {
		error_set(err, STATUS_USAGE, "unknown table '%s'", table_name);
		error_hint(err, "there are verdict, metrics, differences, contributions and runs");
		return STATUS_USAGE;
	}
	if (is_csv) {
		csv_table(text, table);
	} else if (is_json) {
		json_writer_init(&json, text, JSON_PRETTY);
		json_table(&json, table);
		buffer_add_text(text, "\n");
	} else {
		text_table(text, table, &(struct text_view){.has_heading = true, .is_explained = is_explained}, style);
	}
	return STATUS_OK;
}

static enum status print(const struct comparison *comparison, struct error *err)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};
	enum status status = STATUS_OK;
	struct buffer text;

	buffer_init(&text, MAXIMUM_OUTPUT);
	if (table_name)
		status = add_table(&text, comparison, &style, err);
	else if (is_json)
		comparison_json(&text, comparison);
	else
		comparison_text(&text, comparison, is_long, &style);
	if (!status)
		status = output ? write_text_file(output, &text, err) : write_text(stdout, &text, err);
	buffer_release(&text);
	return status;
}

/* The answer was printed: nothing to add on stderr. */
static enum status judge(const struct comparison *comparison)
{
	const char *result = table_get(&comparison->verdict, 0, COMPARISON_RESULT)->text;

	if (!strcmp(result, RESULT_SAME) || !strcmp(result, RESULT_IMPROVEMENT))
		return STATUS_OK;
	return strcmp(result, RESULT_REGRESSION) ? STATUS_INCONCLUSIVE : STATUS_LIMIT;
}

/* ---- the command ---- */

static enum status compare(const struct options_result *arguments, int base_count, struct error *err)
{
	int count = arguments->operand_count, read = 0;
	struct comparison_options compare_options;
	struct analysis_options analysis = {0};
	struct comparison comparison;
	struct compared_run *runs;
	enum status status = parse_options(&compare_options, &analysis, err);

	if (status)
		return status;
	runs = memory_resize(NULL, (size_t)count, sizeof(*runs));
	while (read < count && !(status = read_run(&runs[read], arguments->operands[read], &analysis, err)))
		read++;
	if (!status) {
		comparison_init(&comparison, runs, base_count, runs + base_count, count - base_count, &compare_options);
		status = print(&comparison, err);
		status = status ? status : judge(&comparison);
		comparison_release(&comparison);
	}
	while (read > 0)
		compared_run_release(&runs[--read]);
	free(runs);
	return status;
}

static int run(const struct options_result *arguments, struct error *err)
{
	int base_count;
	enum status status = split_operands(arguments, &base_count, err);

	return status_exit(status ? status : compare(arguments, base_count, err));
}

const struct command command_compare = {
	.name = "compare",
	.summary = "Say whether a run is slower than another, how sure that is, and why",
	.usage = "stepscope compare [options] BASE NEW\n       stepscope compare [options] BASE... -- NEW...",
	.examples = "  stepscope compare runs/main runs/mine\n"
		    "  stepscope compare runs/main.* -- runs/mine.*\n"
		    "  stepscope compare trace1.json.gz trace2.json.gz --json > comparison.json",
	.options = options,
	.run = run,
};
