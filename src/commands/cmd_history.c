/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_history.c: `stepscope history`: stores the key numbers and step times of runs, so that later runs can be compared
 * with them.
 */
#include "commands/command.h"
#include "commands/say.h"
#include "compare/canary_metrics.h"
#include "load/job_files.h"
#include "load/load_run.h"
#include "output/result.h"
#include "output/text/csv.h"
#include "output/text/json.h"
#include "output/text/text.h"
#include "store/compare_baseline.h"
#include "store/history.h"
#include "store/key_numbers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAXIMUM_OUTPUT ((size_t)1 << 28)

static const char *history_file, *series, *name, *output;
static int64_t memory_bytes, limit;
static bool is_json, is_csv;

static const struct option options[] = {
	OPTION_GROUP("History and runs"),
	OPTION_TEXT("history", 0, &history_file, "FILE",
                    "history file (default: $STEPSCOPE_HISTORY, otherwise stepscope/history.db in the "
                    "user's data directory)"),
	OPTION_TEXT("series", 0, &series, "NAME",
                    "add: series of the run (default: the program's name); other actions: only runs of this series"),
	OPTION_TEXT("name", 0, &name, "NAME",
                    "add: name of the run, such as a commit (default: the name of its directory)"),
	OPTION_INT("limit", 'n', &limit, "N", "list: only the newest N runs"),
	OPTION_GROUP("Form"),
	OPTION_FLAG("json", 0, &is_json, "print one JSON document: stepscope.table/1, or stepscope.history/1 of show"),
	OPTION_FLAG("csv", 0, &is_csv, "print CSV"),
	OPTION_TEXT("output", 'o', &output, "FILE", "write to FILE instead of standard output"),
	OPTION_BYTES("memory", 0, &memory_bytes, "SIZE", "add: " MEMORY_HELP("512M")),
	OPTION_END,
};

static enum status open_history(struct history *history, enum history_access access, struct error *err)
{
	struct arena arena;
	const char *path = history_file;
	enum status status;

	arena_init(&arena, 0);
	*history = (struct history){0};
	if (!path)
		path = history_default_path(&arena, err);
	status = path ? history_open(history, path, access, err) : STATUS_ENVIRONMENT;
	arena_release(&arena);
	if (!status && history->network && access == HISTORY_WRITE && !common.is_quiet)
		say("stepscope: note: the run history is on a network file system (%s): concurrent writes "
		    "from several machines depend on its locks\n",
		    history->network);
	return status;
}

/* ---- add ---- */

/* Returns the data by which a run without steps is compared; NULL: there is none. */
static const char *kept_of(const struct compared_run *run)
{
	if (run->functions_count)
		return "the functions of its stacks";
	if (run->telemetry_count)
		return "its telemetry of GPUs";
	if (!run->parts_count)
		return NULL;
	return strncmp(run->parts[0].level, COMPARED_MEMORY, strlen(COMPARED_MEMORY)) != 0 ? "the cost of the whole run"
	                                                                                   : "its memory";
}

static void tell_without_steps(const struct history_entry *entry)
{
	const char *kept = kept_of(entry->run);

	if (kept)
		say("stepscope: note: '%s' has no steps: later runs are compared with it by %s\n", entry->name, kept);
	else
		say("stepscope: note: later runs cannot be compared with '%s', which has no usable step: %s\n",
		    entry->name, entry->run->no_steps ? entry->run->no_steps : "no step was completed");
}

static enum status cmd_history_add_entry(struct history *history, const struct history_entry *entry, struct error *err)
{
	struct history_added added;
	enum status status = history_add(history, entry, &added, err);

	if (status || common.is_quiet)
		return status;
	bool is_moved = added.from && strcmp(added.from, entry->series) != 0;
	say("stepscope: %s as run %lld of series '%s'%s%s%s\n", added.is_known ? "updated" : "added",
	    (long long)added.run, entry->series, is_moved ? ", moved from '" : "", is_moved ? added.from : "",
	    is_moved ? "'" : "");
	if (!entry->run->steps_count && !entry->run->summary.steps)
		tell_without_steps(entry);
	return STATUS_OK;
}

static void tell_trouble(const struct compared_run *run, const char *fact, const char *lead, const char *operand)
{
	const char *trouble = compared_run_fact(run, fact);

	if (trouble && !common.is_quiet)
		say("stepscope: note: '%s' is added, but %s%s\n", operand, lead, trouble);
}

/* Adds a metrics.json of rlhf-canary. */
static enum status cmd_history_add_metrics(struct history *history, const char *operand, struct error *err)
{
	char path[PATH_MAX];
	struct compared_run run;
	struct table numbers;
	struct history_entry entry = {
		.path = realpath(operand, path) ? path : operand, .numbers = &numbers, .run = &run};
	enum status status = canary_metrics_read(&run, operand, err);

	if (status)
		return status;
	tell_trouble(&run, COMPARED_DAMAGE, "", operand);
	entry.series = series ? series : canary_metrics_series(&run);
	entry.name = name ? name : run.name;
	entry.identity = canary_metrics_identity(&run);
	key_numbers_of_run(&numbers, &run);
	status = cmd_history_add_entry(history, &entry, err);
	compared_run_release(&run);
	table_release(&numbers);
	return status;
}

/* Adds a report of `count` files. */
static enum status add_report(struct history *history, struct report *report, uint32_t count, struct error *err)
{
	char path[PATH_MAX];
	struct compared_run run = {0};
	struct table numbers;
	const char *called = count > 1 ? job_files_name(&report->arena, report->name, count) : report->name;
	struct history_entry entry = {.series = series ? series : key_numbers_series(report),
	                              .name = name ? name : called,
	                              .path = realpath(report->path, path) ? path : report->path,
	                              .identity = key_numbers_identity(report),
	                              .numbers = &numbers,
	                              .run = &run};
	enum status status = key_numbers_pick(&numbers, report, err);

	if (status)
		return status;
	compared_run_init(&run, report);
	tell_trouble(&run, COMPARED_END, "the run did not complete: ", called);
	if (count > 1 && !common.is_quiet)
		say("stepscope: note: %u files are ranks of one job and count as one run, '%s'\n", count, called);
	status = cmd_history_add_entry(history, &entry, err);
	compared_run_release(&run);
	table_release(&numbers);
	return status;
}

/* Adds one run, or the files of one job. */
static enum status cmd_history_add_run(struct history *history, const char *const *paths, uint32_t count,
                                       struct error *err)
{
	struct analysis_options analysis = {0};
	struct loaded_run loaded;
	struct report report;
	enum status status;

	if (canary_metrics_probe(paths[0]))
		return cmd_history_add_metrics(history, paths[0], err);
	status = count > 1 ? load_files(&loaded, paths, count, &analysis, memory_bytes, err)
	                   : load_run(&loaded, paths[0], &analysis, memory_bytes, err);
	if (status)
		return status;
	report_init(&report, &loaded.model, &analysis, loaded.path);
	status = add_report(history, &report, count, err);
	tell_defects(&report);
	report_release(&report);
	loaded_run_release(&loaded);
	return status;
}

/* Reads a file that may be a rank of a job, to find its rank and times. */
static enum status cmd_history_look_at(struct job_file *file, const char *operand, struct error *err)
{
	struct analysis_options analysis = {0};
	struct loaded_run loaded;
	struct stat info;
	enum status status;

	*file = (struct job_file){.path = operand, .rank = -1};
	if (stat(operand, &info) != 0 || !S_ISREG(info.st_mode) || canary_metrics_probe(operand))
		return STATUS_OK;
	status = load_run(&loaded, operand, &analysis, memory_bytes, err);
	if (status)
		return status;
	job_file_init(file, operand, &loaded.model);
	loaded_run_release(&loaded);
	return STATUS_OK;
}

/* Reads all files before it adds any, because files of ranks of one job are one run. */
static enum status add_operands(struct history *history, int count, const char **operands, struct arena *arena,
                                struct error *err)
{
	struct job_file *files = arena_array(arena, (size_t)count, sizeof(*files));
	const char **paths = arena_array(arena, (size_t)count, sizeof(*paths));
	int *job = arena_array(arena, (size_t)count, sizeof(*job));
	enum status status = STATUS_OK;

	for (int i = 0; i < count && !status; i++)
		status = cmd_history_look_at(&files[i], operands[i], err);
	if (status)
		return status;
	job_files_find(files, 0, count, job);
	for (int i = 0; i < count && !status; i++)
		if (job[i] == i)
			status = cmd_history_add_run(history, paths, job_files_of(files, i, count, job, paths), err);
	return status;
}

static enum status cmd_history_add(struct history *history, int count, const char **operands, struct error *err)
{
	static const char *const latest = "latest";
	struct arena arena;
	enum status status;

	if (count < 2)
		return cmd_history_add_run(history, count ? operands : &latest, 1, err);
	arena_init(&arena, 0);
	status = add_operands(history, count, operands, &arena, err);
	arena_release(&arena);
	return status;
}

/* ---- list, show ---- */

static enum status write_result(const struct buffer *text, struct error *err)
{
	return output ? write_text_file(output, text, err) : write_text(stdout, text, err);
}

static void cmd_history_add_table(struct buffer *out, const struct table *table, const char *columns)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};
	const struct text_view view = {.columns = columns, .has_heading = true, .is_brief = columns != NULL};

	struct json_writer json;

	if (is_json) {
		json_writer_init(&json, out, JSON_PRETTY);
		json_table(&json, table);
		buffer_add_text(out, "\n");
	} else if (is_csv) {
		csv_table(out, table);
	} else {
		text_table(out, table, &view, &style);
	}
}

static enum status list(struct history *history, struct error *err)
{
	struct buffer text;
	struct table runs;
	enum status status = history_list(history, series, 0, limit, &runs, err);

	buffer_init(&text, MAXIMUM_OUTPUT);
	if (!status) {
		cmd_history_add_table(
			&text, &runs,
			"run,series,name,baseline,steps,step_time_p50_ns,tokens_per_s,device_memory_peak_bytes,added");
		status = write_result(&text, err);
	}
	buffer_release(&text);
	table_release(&runs);
	return status;
}

/* Writes both tables as one document. */
static void show_json(struct buffer *out, const struct table *run, const struct table *facts)
{
	struct json_writer json;

	json_writer_init(&json, out, JSON_PRETTY);
	json_object_begin(&json);
	json_key(&json, "schema"), json_string(&json, "stepscope.history/1");
	json_key(&json, "run"), json_row(&json, run, 0);
	json_key(&json, "facts"), json_rows(&json, facts);
	json_key(&json, "not_measured"), json_object_begin(&json);
	for (int column = 0; column < run->column_count; column++) {
		const struct table_cell *cell = table_get(run, 0, column);

		if (!cell->has_value)
			json_key(&json, run->columns[column].name), json_string(&json, cell->reason);
	}
	json_object_end(&json);
	json_object_end(&json);
	buffer_add_text(out, "\n");
}

static enum status print_run(struct table *run, const struct table *facts, struct error *err)
{
	struct buffer text;
	enum status status;

	for (int column = 0; column < run->column_count; column++)
		run->columns[column].is_hidden = false;
	buffer_init(&text, MAXIMUM_OUTPUT);
	if (is_json) {
		show_json(&text, run, facts);
	} else {
		cmd_history_add_table(&text, run, NULL);
		if (!is_csv && facts->row_count) {
			buffer_add_text(&text, "\n");
			cmd_history_add_table(&text, facts, "kind,fact,value");
		}
	}
	status = write_result(&text, err);
	buffer_release(&text);
	return status;
}

static enum status cmd_history_find(struct history *history, const char *word, struct history_run *found,
                                    struct error *err)
{
	return history_find(history, &(struct history_wanted){.series = series, .word = word}, found, err);
}

static enum status show(struct history *history, const char *word, struct error *err)
{
	struct history_run found;
	struct table run, facts;
	enum status status = cmd_history_find(history, word, &found, err);

	if (status)
		return status;
	status = history_list(history, NULL, found.run, 1, &run, err);
	if (!status) {
		status = history_facts(history, found.run, &facts, err);
		if (!status)
			status = print_run(&run, &facts, err);
		table_release(&facts);
	}
	table_release(&run);
	return status;
}

/* ---- baseline, remove ---- */

static enum status list_baselines(struct history *history, struct error *err)
{
	struct buffer text;
	struct table baselines;
	enum status status = history_baselines(history, series, &baselines, err);

	buffer_init(&text, MAXIMUM_OUTPUT);
	if (!status) {
		cmd_history_add_table(&text, &baselines, "baseline,series,run,name");
		status = write_result(&text, err);
	}
	buffer_release(&text);
	table_release(&baselines);
	return status;
}

/* Refuses names that history_find() gives another meaning. */
static enum status check_baseline_name(const char *word, struct error *err)
{
	if (strlen(word) > BASELINE_NAME)
		return error_set(err, STATUS_USAGE, "the name of the baseline is too long: at most %d bytes",
		                 BASELINE_NAME);
	if (!word[0] || !strcmp(word, "last") || !strncmp(word, "last:", 5) || !strcmp(word, "best") ||
	    strspn(word, "0123456789") == strlen(word))
		return error_set(err, STATUS_USAGE, "a baseline cannot be called '%s'", word);
	return STATUS_OK;
}

static enum status set_baseline(struct history *history, const char *baseline, const char *word, struct error *err)
{
	struct history_run found;
	enum status status = check_baseline_name(baseline, err);

	if (!status)
		status = cmd_history_find(history, word, &found, err);
	if (!status)
		status = history_set_baseline(history, baseline, found.run, err);
	if (!status && !common.is_quiet)
		say("stepscope: baseline '%s' of series '%s' is run %lld, '%s'\n", baseline, found.series,
		    (long long)found.run, found.name);
	return status;
}

static enum status change_baseline(struct history *history, int count, const char **operands, struct error *err)
{
	if (count && !strcmp(operands[0], "set") && (count == 2 || count == 3))
		return set_baseline(history, operands[1], count == 3 ? operands[2] : "last", err);
	if (count == 2 && !strcmp(operands[0], "remove"))
		return history_remove_baseline(history, series, operands[1], err);
	error_set(err, STATUS_USAGE, "history baseline wants 'set NAME [KEPT]' or 'remove NAME'");
	error_hint(err, "'stepscope history baseline' alone lists them");
	return STATUS_USAGE;
}

static enum status remove_runs(struct history *history, int count, const char **operands, struct error *err)
{
	enum status status = STATUS_OK;

	if (!count)
		return error_set(err, STATUS_USAGE, "history remove wants at least one run");
	for (int i = 0; i < count && !status; i++) {
		struct history_run found;

		status = cmd_history_find(history, operands[i], &found, err);
		if (!status)
			status = history_remove(history, found.run, err);
	}
	return status;
}

/* ---- run ---- */

static enum status read_only(const char *action, int count, const char **operands, struct error *err)
{
	struct history history;
	enum status status = open_history(&history, HISTORY_READ, err);

	if (status)
		return status;
	if (!strcmp(action, "list"))
		status = list(&history, err);
	else if (!strcmp(action, "show"))
		status = show(&history, count ? operands[0] : "last", err);
	else
		status = list_baselines(&history, err);
	history_close(&history);
	return status;
}

static enum status change(const char *action, int count, const char **operands, struct error *err)
{
	struct history history;
	enum status status = open_history(&history, HISTORY_WRITE, err);

	if (status)
		return status;
	if (!strcmp(action, "add"))
		status = cmd_history_add(&history, count, operands, err);
	else if (!strcmp(action, "remove"))
		status = remove_runs(&history, count, operands, err);
	else
		status = change_baseline(&history, count, operands, err);
	history_close(&history);
	return status;
}

static enum status unknown_action(const char *action, struct error *err)
{
	static const char *const actions[] = {"add", "list", "show", "baseline", "remove", NULL};
	const char *nearest = nearest_name(action, actions);

	error_set(err, STATUS_USAGE, "history has no action '%s'", action);
	if (nearest)
		error_hint(err, "did you mean '%s'?", nearest);
	else
		error_hint(err, "the actions are add, list, show, baseline and remove");
	return STATUS_USAGE;
}

static int cmd_history_run(const struct options_result *arguments, struct error *err)
{
	const char *action = arguments->operand_count ? arguments->operands[0] : "list";
	const char **operands = arguments->operands + 1;
	int count = arguments->operand_count ? arguments->operand_count - 1 : 0;
	bool is_reading = (!strcmp(action, "list") && !count) || (!strcmp(action, "show") && count < 2) ||
	                  (!strcmp(action, "baseline") && !count);

	if (is_json && is_csv)
		return status_exit(error_set(err, STATUS_USAGE, "options '--json' and '--csv' exclude each other"));
	if (is_reading)
		return status_exit(read_only(action, count, operands, err));
	if (!strcmp(action, "list") || !strcmp(action, "show"))
		return status_exit(
			error_set(err, STATUS_USAGE, "history %s does not take '%s'", action, operands[count - 1]));
	if (!strcmp(action, "add") || !strcmp(action, "baseline") || !strcmp(action, "remove"))
		return status_exit(change(action, count, operands, err));
	return status_exit(unknown_action(action, err));
}

const struct command command_history = {
	.name = "history",
	.summary = "Keep the key numbers of runs for later comparisons",
	.usage = "stepscope history [options] [add [RUN...] | list | show [KEPT] | baseline [set NAME [KEPT] | remove NAME] | remove KEPT...]",
	.examples = "  stepscope history add latest --name $(git rev-parse --short HEAD)\n"
		    "  stepscope history list --series train\n"
		    "  stepscope history baseline set main last",
	.options = options,
	.run = cmd_history_run,
};
