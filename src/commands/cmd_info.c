/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_info.c: `stepscope info RUN`: contents, missing data and cost of a recording.
 */
#include "commands/command.h"
#include "load/load_run.h"
#include "load/run_files.h"
#include "output/result.h"
#include "output/text/json.h"
#include "output/text/layout.h"

#define MAXIMUM_OUTPUT ((size_t)1 << 28)

static bool is_json;
static int64_t memory_bytes;

static const struct option options[] = {
	OPTION_FLAG("json", 0, &is_json, "print one JSON document with the same tables: stepscope.info/1"),
	OPTION_BYTES("memory", 0, &memory_bytes, "SIZE", MEMORY_HELP("512M")),
	OPTION_END,
};

static void print_text(struct buffer *out, struct report *report, const struct table *files)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};
	const struct text_view view = {
		.columns = "file,bytes,pid,role,rank,segment,clock", .has_heading = true, .is_brief = true};

	text_heading(out, files->title, &style);
	buffer_add_text(out, "\n");
	text_table(out, files, &view, &style);
	layout_write(out, layout_info, report, &style);
}

static void print_json(struct buffer *out, struct report *report, const struct table *files)
{
	struct json_writer json;

	json_writer_init(&json, out, JSON_PRETTY);
	json_object_begin(&json);
	json_key(&json, "schema"), json_string(&json, "stepscope.info/1");
	json_key(&json, "run_id"), json_string(&json, report->name);
	json_key(&json, "files"), json_table(&json, files);
	for (const struct layout_section *section = layout_info; section->form != LAYOUT_END; section++) {
		json_key(&json, section->table);
		json_table(&json, report_table(report, section->table));
	}
	json_object_end(&json);
	buffer_add_text(out, "\n");
}

static int cmd_info_run(const struct options_result *arguments, struct error *err)
{
	struct analysis_options analysis = {0};
	struct loaded_run loaded;
	struct report report;
	struct table files;
	struct buffer text;
	enum status status;

	if (check_operands(arguments, "info", err))
		return status_exit(err->status);
	status = load_operands(&loaded, arguments, &analysis, memory_bytes, err);
	if (status)
		return status_exit(status);
	run_files_table(&files, loaded.path);
	report_init(&report, &loaded.model, &analysis, loaded.path);
	buffer_init(&text, MAXIMUM_OUTPUT);
	if (is_json)
		print_json(&text, &report, &files);
	else
		print_text(&text, &report, &files);
	status = write_text(stdout, &text, err);
	buffer_release(&text);
	report_release(&report);
	table_release(&files);
	loaded_run_release(&loaded);
	return status_exit(status);
}

const struct command command_info = {
	.name = "info",
	.summary = "Show the contents of a recording, its missing data and its cost",
	.usage = "stepscope info [options] [RUN...]",
	.examples = "  stepscope info latest\n"
		    "  stepscope info runs/a\n"
		    "  stepscope info latest --json",
	.options = options,
	.run = cmd_info_run,
};
