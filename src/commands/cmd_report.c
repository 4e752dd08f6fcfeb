/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_report.c: `stepscope report RUN`: how the time of steps was spent, as text, JSON or CSV.
 */
#include "commands/command.h"
#include "compare/canary_metrics.h"
#include "load/load_run.h"
#include "output/result.h"
#include "output/text/csv.h"
#include "output/text/json.h"
#include "output/text/layout.h"
#include "output/text/report_metrics.h"
#include "output/text/report_torch.h"
#include "output/text/summary.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <strings.h>
#include <sys/stat.h>

#define NO_LIMIT INT64_MIN

static const char *table_name, *sort_column, *column_names, *steps, *window, *output, *style_name, *header, *time_unit;
static int64_t limit = NO_LIMIT, memory_bytes, name_width = REPORT_TORCH_WIDTH, shapes_width = REPORT_TORCH_WIDTH,
	       source_width = REPORT_TORCH_WIDTH, frames;
static bool is_list, is_json, is_csv, is_explained, is_top_level, has_events, has_all_threads, is_strict;
static struct option_list by;

static const struct option options[] = {
	OPTION_GROUP("Contents"),
	OPTION_TEXT("table", 't', &table_name, "NAME", "print one table in full instead of the report"),
	OPTION_FLAG("tables", 0, &is_list, "list the tables"),
	OPTION_TEXT("columns", 0, &column_names, "A,B", "print only these columns of the table"),
	OPTION_TEXT("sort", 0, &sort_column, "COLUMN",
                    "sort the table by COLUMN, numbers from the largest, texts alphabetically; -COLUMN "
                    "reverses the order"),
	OPTION_INT("limit", 'n', &limit, "N", "print at most N rows of the table"),
	OPTION_LIST("by", 0, &by, "WHAT",
                    "split operations by shape, thread or phase; with --table kernels by shape, module, "
                    "line or stack; without --table, line, stack and module print those tables"),
	OPTION_TEXT("steps", 0, &steps, "A-B", STEPS_HELP),
	OPTION_TEXT("window", 0, &window, "N", WINDOW_HELP),
	OPTION_FLAG("explain", 0, &is_explained, "print the definition of each column"),
	OPTION_FLAG("strict", 0, &is_strict, "exit with 1 if part of the input is missing, damaged or repaired"),
	OPTION_GROUP("In the style of torch.profiler"),
	OPTION_TEXT("style", 0, &style_name, "NAME",
                    "torch: print operators like key_averages().table(); torch-1.13: like PyTorch 1.13; "
                    "also with --sort, --limit (-1 prints all rows), --by shape, --columns memory,flops"),
	OPTION_TEXT("header", 0, &header, "TEXT", "print TEXT above the table"),
	OPTION_FLAG("top-level", 0, &is_top_level, "only operators not nested in another operator"),
	OPTION_TEXT("time-unit", 0, &time_unit, "UNIT", "unit of all times: us, ms or s"),
	OPTION_INT("name-width", 0, &name_width, "N", "cut names after N characters (-1 never cuts; default: 55)"),
	OPTION_INT("shapes-width", 0, &shapes_width, "N", "cut shapes after N characters (-1 never cuts; default: 80)"),
	OPTION_INT("source-width", 0, &source_width, "N",
                   "cut Python frames to their last N characters (-1 never cuts; default: 75)"),
	OPTION_INT("frames", 0, &frames, "N", "print one row per Python stack, using its innermost N frames"),
	OPTION_FLAG("events", 0, &has_events, "list every call instead of one row per operator"),
	OPTION_FLAG("all-threads", 0, &has_all_threads, "with --window, add threads that its profiler does not follow"),
	OPTION_GROUP("Form"),
	OPTION_FLAG("json", 0, &is_json,
                    "print one JSON document: stepscope.summary/1, or stepscope.table/1 with --table"),
	OPTION_FLAG("csv", 0, &is_csv, "print CSV: one table, or with -o one file per table"),
	OPTION_TEXT("output", 'o', &output, "PATH",
                    "write to PATH instead of standard output: a file, or the directory for the CSV of all "
                    "tables"),
	OPTION_BYTES("memory", 0, &memory_bytes, "SIZE", MEMORY_HELP("512M")),
	OPTION_END,
};

/* ---- options ---- */

#define BYS 6
static const char *const by_names[BYS + 1] = {"shape", "thread", "phase", "line", "stack", "module", NULL};
static const unsigned by_bits[BYS] = {BY_SHAPE, BY_THREAD, BY_PHASE, BY_LINE, BY_STACK, BY_MODULE};

static enum status parse_by(struct analysis_options *analysis, struct error *err)
{
	/* tables to show if the chosen table cannot be split this way */
	static const char *const tables[BYS] = {NULL, NULL, NULL, "lines", "stacks", "modules"};
	const struct analysis *wanted = table_name ? analysis_find(table_name) : NULL;
	unsigned splits = wanted ? wanted->splits : 0;
	const char *split = NULL, *whole = NULL;

	for (int i = 0; i < by.count; i++) {
		const char *nearest = nearest_name(by.items[i], by_names);
		int n = 0;

		while (by_names[n] && strcmp(by_names[n], by.items[i]) != 0)
			n++;
		if (by_names[n] && tables[n] && !(splits & by_bits[n])) {
			if (table_name && strcmp(table_name, tables[n]) != 0)
				return error_set(err, STATUS_USAGE, "options '--by %s' and '%s %s' exclude each other",
				                 by_names[n], whole ? "--by" : "--table", whole ? whole : table_name);
			table_name = tables[n];
			whole = by_names[n];
			continue;
		}
		if (by_names[n]) {
			analysis->by |= by_bits[n];
			split = by_names[n];
			continue;
		}
		error_set(err, STATUS_USAGE,
		          "option '--by' wants shape, thread, phase, line, stack or module, got '%s'", by.items[i]);
		if (nearest)
			error_hint(err, "did you mean '--by %s'?", nearest);
		return STATUS_USAGE;
	}
	if (split && whole)
		return error_set(err, STATUS_USAGE, "options '--by %s' and '--by %s' exclude each other", split, whole);
	return STATUS_OK;
}

static enum status exclude(const char *one, const char *other, struct error *err)
{
	return error_set(err, STATUS_USAGE, "options '%s' and '%s' exclude each other", one, other);
}

/* torch.profiler's table is separate, so options for our tables are refused. */
static enum status check_style(const struct analysis_options *analysis, struct error *err)
{
	char chosen[32] = "--table"; /* --table itself, or a --by that selects a table */

	if (by.count && !analysis->by)
		snprintf(chosen, sizeof(chosen), "--by %s", by.items[0]);
	if (is_csv)
		return exclude("--style", "--csv", err);
	if (table_name)
		return exclude("--style", chosen, err);
	if (is_explained)
		return exclude("--style", "--explain", err);
	if (analysis->by & ~(unsigned)BY_SHAPE)
		return exclude("--style", analysis->by & BY_THREAD ? "--by thread" : "--by phase", err);
	if (has_all_threads && !window)
		return error_set(err, STATUS_USAGE, "option '--all-threads' wants '--window'");
	return STATUS_OK;
}

static enum status check_list(struct error *err)
{
	const struct {
		bool is_given;
		const char *name;
	} others[] = {
		{style_name, "--style"},
		{table_name, "--table"},
		{by.count, "--by"},
		{sort_column, "--sort"},
		{limit != NO_LIMIT, "--limit"},
		{column_names, "--columns"},
		{is_json, "--json"},
		{is_csv, "--csv"},
		{output, "--output"},
		{is_explained, "--explain"},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].is_given)
			return exclude("--tables", others[i].name, err);
	return STATUS_OK;
}

/* Refuses --by for a table that cannot be split: it would have no effect. */
static enum status check_split(const struct analysis_options *analysis, struct error *err)
{
	const struct analysis *wanted = table_name ? analysis_find(table_name) : NULL;

	for (unsigned i = 0; wanted && i < BYS; i++) {
		if (!(analysis->by & ~wanted->splits & by_bits[i]))
			continue;
		error_set(err, STATUS_USAGE, "table '%s' cannot be split by %s", table_name, by_names[i]);
		error_hint(err, "'--table ops' can");
		return STATUS_USAGE;
	}
	return STATUS_OK;
}

static enum status cmd_report_check_usage(const struct options_result *arguments,
                                          const struct analysis_options *analysis, struct error *err)
{
	if (check_operands(arguments, "report", err))
		return err->status;
	if (is_list)
		return check_list(err);
	if (style_name)
		return check_style(analysis, err);
	if (header || is_top_level || time_unit || has_events || has_all_threads || frames ||
	    name_width != REPORT_TORCH_WIDTH || shapes_width != REPORT_TORCH_WIDTH ||
	    source_width != REPORT_TORCH_WIDTH) {
		error_set(err, STATUS_USAGE,
		          "options '--header', '--top-level', '--time-unit', '--frames', '--events', "
		          "'--all-threads' and '--...-width' want '--style'");
		error_hint(err, "for example 'stepscope report RUN --style torch --top-level'");
		return STATUS_USAGE;
	}
	if (limit < 1 && limit != NO_LIMIT)
		return error_set(err, STATUS_USAGE, "option '--limit' wants a number of rows, 1 or more, got %lld",
		                 (long long)limit);
	if (column_names && !column_names[strspn(column_names, ", ")])
		return error_set(err, STATUS_USAGE, "option '--columns' wants names of columns, got '%s'",
		                 column_names);
	if (is_json && is_csv)
		return exclude("--json", "--csv", err);
	if (is_csv && !table_name && !output) {
		error_set(err, STATUS_USAGE, "option '--csv' wants one table, or a directory for all tables");
		error_hint(err, "add '-o DIR', or '--table NAME'");
		return STATUS_USAGE;
	}
	if ((sort_column || limit != NO_LIMIT || column_names) && !table_name) {
		error_set(err, STATUS_USAGE, "options '--sort', '--limit' and '--columns' want '--table'");
		error_hint(err, "for example 'stepscope report RUN --table ops --sort total_ns'");
		return STATUS_USAGE;
	}
	return check_split(analysis, err);
}

/* ---- one table ---- */

static enum status unknown_table(const char *name, struct error *err)
{
	const char *names[ANALYSIS_COUNT + 1];
	const char *nearest;
	int count = 0;

	for (; analyses[count]; count++)
		names[count] = analyses[count]->name;
	names[count] = NULL;
	nearest = nearest_name(name, names);
	error_set(err, STATUS_USAGE, "unknown table '%s'", name);
	if (nearest)
		error_hint(err, "did you mean '--table %s'?", nearest);
	else
		error_hint(err, "'stepscope report --tables' lists the tables");
	return STATUS_USAGE;
}

/* Returns the column with this name, or with this heading in text output. If columns share a heading, returns the first
 * one shown. */
static int column_called(const struct table *table, const char *wanted)
{
	int hidden = -1;

	for (int i = 0; i < table->column_count; i++)
		if (!strcasecmp(table->columns[i].name, wanted))
			return i;
	for (int i = 0; i < table->column_count; i++) {
		const struct table_column *column = &table->columns[i];

		if (!column->title || strcasecmp(column->title, wanted) != 0)
			continue;
		if (!column->is_hidden)
			return i;
		hidden = hidden < 0 ? i : hidden;
	}
	return hidden;
}

static enum status find_column(const struct table *table, const char *name, size_t length, int *column,
                               struct error *err)
{
	const char *names[2 * 64 + 1];
	const char *nearest;
	char wanted[128];
	int count = 0;

	while (length && *name == ' ')
		name++, length--;
	while (length && name[length - 1] == ' ')
		length--;
	snprintf(wanted, sizeof(wanted), "%.*s", (int)length, name);
	*column = column_called(table, wanted);
	if (*column >= 0)
		return STATUS_OK;
	for (char *at = wanted; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	for (int i = 0; i < table->column_count; i++) {
		names[count++] = table->columns[i].name;
		if (table->columns[i].title)
			names[count++] = table->columns[i].title;
	}
	names[count] = NULL;
	nearest = nearest_name(wanted, names);
	snprintf(wanted, sizeof(wanted), "%.*s", (int)length, name);
	error_set(err, STATUS_USAGE, "table '%s' has no column '%s'", table->name, wanted);
	if (nearest)
		error_hint(err, "did you mean '%s'?", nearest);
	else
		error_hint(err, "'stepscope report RUN --table %s --explain' lists the columns", table->name);
	return STATUS_USAGE;
}

/* Gets the numbers of --columns, each once. Returns their count, or -1 if a name is unknown. */
static int find_columns(const struct table *table, int columns[64], struct error *err)
{
	int count = 0;

	for (const char *name = column_names; name && *name;) {
		size_t length = strcspn(name, ",");
		int column, known = 0;

		if (find_column(table, name, length, &column, err))
			return -1;
		while (known < count && columns[known] != column)
			known++;
		columns[known] = column;
		count += known == count;
		name += length + (name[length] == ',');
	}
	return count;
}

/* Returns the names of the columns that the user gave, for text output. */
static const char *names_of(struct table *table, const int *columns, int count)
{
	const char *names = count ? table->columns[columns[0]].name : NULL;

	for (int i = 1; i < count; i++)
		names = arena_printf(&table->arena, "%s,%s", names, table->columns[columns[i]].name);
	return names;
}

static enum status arrange_table(struct table *table, struct error *err)
{
	enum status status;
	int column, columns[64];
	int count = find_columns(table, columns, err);

	if (count < 0)
		return err->status;
	column_names = names_of(table, columns, count);
	if (sort_column) {
		bool is_turned = sort_column[0] == '-';
		const char *name = sort_column + is_turned;

		status = find_column(table, name, strlen(name), &column, err);
		if (status)
			return status;
		table_sort(table, column, is_turned != (table->columns[column].type == TABLE_TEXT));
	}
	if (limit != NO_LIMIT)
		table_limit(table, (int)(limit < INT_MAX ? limit : INT_MAX));
	if (count && (is_csv || is_json)) /* text output needs the others, too, to say why some cells are missing */
		table_choose(table, columns, count);
	return STATUS_OK;
}

static void print_table(struct buffer *out, const struct table *table)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};
	const struct text_view view = {.columns = column_names, .has_heading = true, .is_explained = is_explained};
	struct json_writer json;

	if (is_csv) {
		csv_table(out, table);
	} else if (is_json) {
		json_writer_init(&json, out, JSON_PRETTY);
		json_table(&json, table);
		buffer_add_text(out, "\n");
	} else {
		text_heading(out, table->title, &style);
		buffer_add_text(out, "\n");
		text_table(out, table, &view, &style);
	}
}

/* ---- all tables ---- */

static void explain_all(struct buffer *out, struct report *report)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};

	for (int i = 0; analyses[i]; i++) {
		buffer_add_text(out, "\n");
		text_definitions(out, report_table(report, analyses[i]->name), &style);
	}
}

static void print_report(struct buffer *out, struct report *report)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};

	if (is_json) {
		summary_write(out, report);
		return;
	}
	layout_write(out, layout_report, report, &style);
	if (is_explained)
		explain_all(out, report);
}

static enum status write_csv_directory(struct report *report, struct error *err)
{
	struct result file;
	char path[PATH_MAX];

	if (mkdir(output, 0777) != 0 && errno != EEXIST)
		return error_errno(err, STATUS_IO, errno, "cannot create the directory '%s'", output);
	for (int i = 0; analyses[i]; i++) {
		const struct table *table = report_table(report, analyses[i]->name);

		snprintf(path, sizeof(path), "%s/%s.csv", output, analyses[i]->name);
		if (result_open(&file, path, err))
			return err->status;
		csv_table(&file.text, table);
		if (result_close(&file, STATUS_OK, err))
			return err->status;
	}
	return STATUS_OK;
}

static enum status print_all(struct report *report, struct error *err)
{
	struct table *table = table_name ? report_table_mutable(report, table_name) : NULL;
	struct result result;

	if (is_csv && !table)
		return write_csv_directory(report, err);
	if (table && arrange_table(table, err))
		return err->status;
	if (result_open(&result, output, err))
		return err->status;
	if (table)
		print_table(&result.text, table);
	else
		print_report(&result.text, report);
	return result_close(&result, STATUS_OK, err);
}

static struct report_torch torch_wish(const struct analysis_options *analysis)
{
	return (struct report_torch){.style = style_name,
	                             .columns = column_names,
	                             .sort = sort_column,
	                             .header = header,
	                             .time_unit = time_unit,
	                             .limit = limit,
	                             .name_width = name_width,
	                             .shapes_width = shapes_width,
	                             .source_width = source_width,
	                             .frames = frames,
	                             .is_top_level = is_top_level,
	                             .is_by_shape = analysis->by & BY_SHAPE,
	                             .is_json = is_json,
	                             .has_events = has_events,
	                             .is_window = analysis->filter.window,
	                             .is_profiled_only = analysis->filter.window && !has_all_threads};
}

static enum status print_torch(const struct model *model, const struct report_torch *wish, struct error *err)
{
	struct result result;
	enum status status = result_open(&result, output, err);

	return status ? status : result_close(&result, report_torch_write(&result.text, model, wish, err), err);
}

/* Prints a metrics.json of rlhf-canary, which has numbers of a whole run but no events and no steps. */
static enum status print_metrics(const char *path, struct error *err)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};
	struct result result;

	if (table_name || is_csv || steps || window || style_name || by.count)
		return error_set(
			err, STATUS_USAGE,
			"'%s' is a metrics.json: only the options '--json', '--explain' and '--output' work with it",
			path);
	if (result_open(&result, output, err))
		return err->status;
	return result_close(&result, report_metrics_write(&result.text, path, &style, is_json, is_explained, err), err);
}

static void list_tables(void)
{
	for (int i = 0; analyses[i]; i++)
		printf("%-14s %s\n", analyses[i]->name, analyses[i]->question);
}

/* For --strict: fails if the input differs from what its writer meant. */
static enum status check_evidence(const struct model *model, struct error *err)
{
	for (uint32_t i = 0; is_strict && i < model->ledger_count; i++) {
		if (ledger_is_defect(model->ledger[i].kind))
			return error_set(
				err, STATUS_LIMIT, "part of the input is missing, damaged or repaired: %s (%llu)",
				model_text(model, model->ledger[i].text), (unsigned long long)model->ledger[i].count);
	}
	return STATUS_OK;
}

static int cmd_report_run(const struct options_result *arguments, struct error *err)
{
	struct analysis_options analysis = {0};
	struct loaded_run loaded;
	struct error problem = {0};
	struct report report;
	enum status status = parse_by(&analysis, err); /* may choose a table */

	if (!status)
		status = cmd_report_check_usage(arguments, &analysis, err);
	if (status)
		return status_exit(status);
	if (is_list) {
		list_tables();
		return 0;
	}
	if (table_name && !analysis_find(table_name))
		return status_exit(unknown_table(table_name, err));
	if (parse_steps(steps, &analysis, err) || parse_window(window, &analysis, err))
		return status_exit(err->status);
	analysis.filter.with_past = table_name && analysis_find(table_name)->with_past;
	const struct report_torch wish = torch_wish(&analysis);

	if (style_name && report_torch_check(&wish, err))
		return status_exit(err->status);
	status = load_operands(&loaded, arguments, &analysis, memory_bytes, &problem);
	if (status == STATUS_INPUT && arguments->operand_count == 1 && canary_metrics_probe(arguments->operands[0]))
		return status_exit(print_metrics(arguments->operands[0], err));
	if (status) {
		*err = problem;
		return status_exit(status);
	}
	if (style_name) {
		status = print_torch(&loaded.model, &wish, err);
		status = status ? status : check_evidence(&loaded.model, err);
		loaded_run_release(&loaded);
		return status_exit(status);
	}
	report_init(&report, &loaded.model, &analysis, loaded.path);
	status = print_all(&report, err);
	status = status ? status : check_evidence(&loaded.model, err);
	tell_defects(&report);
	report_release(&report);
	loaded_run_release(&loaded);
	return status_exit(status);
}

const struct command command_report = {
	.name = "report",
	.summary = "Show where each step of a run spends its time",
	.usage = "stepscope report [options] [RUN...]",
	.examples = "  stepscope report latest\n"
		    "  stepscope report latest --table ops --by shape --sort total_ns --limit 20\n"
		    "  stepscope report runs/a --steps 50-60 --json > summary.json",
	.options = options,
	.run = cmd_report_run,
};
