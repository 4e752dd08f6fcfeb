/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_whatif.c: `stepscope whatif RUN`: how long a step would take without a cost, or without several at once.
 */
#include "analysis/report.h"
#include "analysis/what_if/replayed.h"
#include "analysis/what_if/what_if_table.h"
#include "base/arena.h"
#include "commands/command.h"
#include "load/load_run.h"
#include "output/result.h"
#include "output/text/csv.h"
#include "output/text/json.h"
#include "output/text/text.h"

#include <string.h>

#define MAXIMUM_OUTPUT ((size_t)1 << 28)

static const char *steps, *window, *output, *without;
static int64_t memory_bytes;
static bool is_json, is_csv, is_explain;

static const struct option options[] = {
	OPTION_GROUP("Costs"),
	OPTION_TEXT("without", 0, &without, "CUT,...",
                    "replay without these costs at once; a cut is a name, or NAME:PLACE as in the table"),
	OPTION_FLAG("explain", 0, &is_explain,
                    "list the cuts: the part of a step that each removes, and the limits of its replay"),
	OPTION_TEXT("steps", 0, &steps, "A-B", STEPS_HELP),
	OPTION_TEXT("window", 0, &window, "N", WINDOW_HELP),
	OPTION_GROUP("Form"),
	OPTION_FLAG("json", 0, &is_json, "print one JSON document: stepscope.table/1"),
	OPTION_FLAG("csv", 0, &is_csv, "print CSV"),
	OPTION_TEXT("output", 'o', &output, "FILE", "write to FILE instead of standard output"),
	OPTION_BYTES("memory", 0, &memory_bytes, "SIZE", MEMORY_HELP("512M")),
	OPTION_END,
};

/* ---- cuts ---- */

/* One of the list: "data", or "host:between the steps". */
static enum status choose(const char *text, struct arena *arena, bool *is_cut, struct error *err)
{
	const char *colon = strchr(text, ':');
	const char *name = colon ? arena_dup_n(arena, text, (size_t)(colon - text)) : text;
	enum replay_cut cut = replay_cut_find(name, colon ? colon + 1 : NULL);

	if (cut == CUT_COUNT) {
		error_set(err, STATUS_USAGE, "option '--without' names the cut '%s', which does not exist", text);
		error_hint(err, "'stepscope whatif --explain' lists the cuts");
		return STATUS_USAGE;
	}
	is_cut[cut] = true;
	return STATUS_OK;
}

static enum status choose_all(bool *is_cut, struct error *err)
{
	enum status status = STATUS_OK;
	struct arena arena;

	arena_init(&arena, 0);
	for (const char *at = without; *at && !status;) {
		size_t length = strcspn(at, ",");

		status = choose(arena_dup_n(&arena, at, length), &arena, is_cut, err);
		at += length + (at[length] != '\0');
	}
	arena_release(&arena);
	return status;
}

/* ---- output ---- */

static enum status cmd_whatif_write(const struct buffer *text, struct error *err)
{
	return output ? write_text_file(output, text, err) : write_text(stdout, text, err);
}

static enum status explain(struct error *err)
{
	struct buffer text;
	enum status status;

	buffer_init(&text, MAXIMUM_OUTPUT);
	for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++) {
		const struct cut_kind *kind = &replay_cuts[cut];

		buffer_printf(&text, "%s%s%s%s\n  removes    %s\n  not known  %s\n", kind->name, kind->place ? ":" : "",
		              kind->place ? kind->place : "",
		              kind->is_choice  ? "   (a choice: it changes results or memory)"
		              : kind->is_bound ? "   (at most: it is part of the model)"
		                               : "",
		              kind->without, kind->not_known);
	}
	status = cmd_whatif_write(&text, err);
	buffer_release(&text);
	return status;
}

static enum status print_table(const struct table *table, struct error *err)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};
	const struct text_view view = {.has_heading = true};
	struct json_writer json;
	struct buffer text;
	enum status status;

	buffer_init(&text, MAXIMUM_OUTPUT);
	if (is_csv) {
		csv_table(&text, table);
	} else if (is_json) {
		json_writer_init(&json, &text, JSON_PRETTY);
		json_table(&json, table);
		buffer_add_text(&text, "\n");
	} else {
		text_table(&text, table, &view, &style);
	}
	status = cmd_whatif_write(&text, err);
	buffer_release(&text);
	return status;
}

/* ---- the whole ---- */

static enum status cmd_whatif_answer(struct report *report, const bool *is_cut, struct error *err)
{
	struct what_if *what_if;
	struct table table;
	enum status status;

	report_leave_out_damage(report);
	report_leave_out_start_up(report);
	what_if = replayed_get(&report->context);
	if (what_if->problem)
		return error_set(err, STATUS_INCONCLUSIVE, "'%s' cannot be replayed: %s", report->path,
		                 what_if->problem);
	what_if_table_init(&table, what_if);
	if (without) {
		struct what_if_cut together;

		what_if_together(what_if, is_cut, &together);
		what_if_table_add_together(&table, without, &together);
	} else {
		what_if_table_add_cuts(&table, what_if);
	}
	status = print_table(&table, err);
	table_release(&table);
	return status;
}

static int cmd_whatif_run(const struct options_result *arguments, struct error *err)
{
	struct analysis_options analysis = {0};
	bool is_cut[CUT_COUNT] = {false};
	struct loaded_run loaded;
	struct report report;
	enum status status;

	if (is_explain)
		return status_exit(explain(err));
	if (is_json && is_csv)
		return status_exit(error_set(err, STATUS_USAGE, "options '--json' and '--csv' exclude each other"));
	if (check_operands(arguments, "whatif", err) || (without && choose_all(is_cut, err)) ||
	    parse_steps(steps, &analysis, err) || parse_window(window, &analysis, err))
		return status_exit(err->status);
	status = load_operands(&loaded, arguments, &analysis, memory_bytes, err);
	if (status)
		return status_exit(status);
	report_init(&report, &loaded.model, &analysis, loaded.path);
	status = cmd_whatif_answer(&report, is_cut, err);
	tell_defects(&report);
	report_release(&report);
	loaded_run_release(&loaded);
	return status_exit(status);
}

const struct command command_whatif = {
	.name = "whatif",
	.summary = "Replay a run without a cost: how long a step would take, and how sure that is",
	.usage = "stepscope whatif [options] [RUN...]",
	.examples = "  stepscope whatif trace.json.gz\n"
		    "  stepscope whatif trace.json.gz --without data,launch --json\n"
		    "  stepscope whatif --explain",
	.options = options,
	.run = cmd_whatif_run,
};
