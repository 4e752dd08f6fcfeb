/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_convert.c: `stepscope convert IN OUT`: converts any supported input to a recording, or to any format that export
 * writes, and repairs it.
 */
#include "base/units.h"
#include "commands/command.h"
#include "commands/progress.h"
#include "commands/say.h"
#include "load/load_run.h"
#include "output/export/exporter.h"

#include <string.h>

#define DEFAULT_MEMORY ((int64_t)256 << 20)

static const char *steps;
static int64_t memory_bytes;
static bool is_strict, is_no_progress;

static const struct option options[] = {
	OPTION_TEXT("steps", 0, &steps, "A-B", STEPS_HELP "; not for .ssr files"),
	OPTION_FLAG("strict", 0, &is_strict, "exit with 1 if part of the input is missing, damaged or repaired"),
	OPTION_BYTES("memory", 0, &memory_bytes, "SIZE", MEMORY_HELP("256M")),
	OPTION_FLAG("no-progress", 0, &is_no_progress, "hide the progress bar"),
	OPTION_END,
};

static void cmd_convert_on_progress(void *context, uint64_t done, uint64_t total)
{
	progress_update(context, done, total);
}

static enum status choose_exporter(const struct options_result *arguments, const struct exporter **exporter,
                                   struct error *err)
{
	if (arguments->operand_count < 2) {
		error_set(err, STATUS_USAGE, "convert wants an input and an output file");
		error_hint(err, "for example 'stepscope convert trace.json.gz trace.ssr'");
		return STATUS_USAGE;
	}
	const char *path = arguments->operands[arguments->operand_count - 1];
	*exporter = exporter_by_suffix(path);
	if (*exporter && (*exporter)->is_whole && steps)
		return error_set(err, STATUS_USAGE,
		                 "option '--steps' is not for recordings (%s), which hold the whole input",
		                 (*exporter)->suffix);
	if (*exporter)
		return STATUS_OK;
	error_set(err, STATUS_USAGE, "cannot tell the format of '%s'", path);
	char suffixes[EXPORTER_WORDS_BYTES];
	exporter_list_suffixes(suffixes);
	error_hint(err, "end its name in %s; append .gz or .zst to compress", suffixes);
	return STATUS_USAGE;
}

static const char *cmd_convert_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* Prints each repair and each loss on a line, because users who convert a file need to know. */
static bool tell_evidence(const struct model *model)
{
	bool is_good = true;

	for (uint32_t i = 0; i < model->ledger_count; i++) {
		const struct ledger_entry *entry = &model->ledger[i];
		if (!ledger_is_defect(entry->kind))
			continue;
		is_good = false;
		if (common.is_quiet)
			continue;
		say("%s: %llu %s", model_text(model, entry->where), (unsigned long long)entry->count,
		    model_text(model, entry->text));
		if (entry->has_first_offset)
			say(" (first at byte %llu)", (unsigned long long)entry->first_offset);
		say("\n");
	}
	return is_good;
}

static enum status write_file(const struct loaded_run *loaded, const struct exporter *exporter, const char *path,
                              const struct analysis_options *selected, struct error *err)
{
	char slices[UNITS_BYTES], bytes[UNITS_BYTES];
	struct export_result result;
	struct progress progress;
	struct export_options wanted = {
		.has_steps = selected->filter.has_steps,
		.first_step = selected->filter.first_step,
		.last_step = selected->filter.last_step,
		.progress = cmd_convert_on_progress,
		.context = &progress,
	};
	enum status status;

	progress_begin(&progress, "Writing", "spans", is_no_progress);
	status = exporter->write(&loaded->model, path, &wanted, &result, err);
	progress_end(&progress);
	if (status == STATUS_OK && !common.is_quiet) {
		say("converted %s span%s to %s (%s)\n", units_count(slices, (double)result.slices),
		    cmd_convert_plural(result.slices), path, units_bytes(bytes, (double)result.bytes_file));
		if (result.note[0])
			say("note: %s\n", result.note);
	}
	return status;
}

static int cmd_convert_run(const struct options_result *arguments, struct error *err)
{
	struct analysis_options selected = {0};
	struct options_result inputs = *arguments;
	const struct exporter *exporter;
	struct loaded_run loaded;
	enum status status = choose_exporter(arguments, &exporter, err);

	inputs.operand_count--;
	if (status == STATUS_OK)
		status = check_operands(&inputs, "convert", err);
	if (status == STATUS_OK)
		status = check_output(&inputs, arguments->operands[inputs.operand_count], err);
	if (status == STATUS_OK)
		status = parse_steps(steps, &selected, err);
	if (status == STATUS_OK)
		status = load_operands(&loaded, &inputs, &selected, memory_bytes ? memory_bytes : DEFAULT_MEMORY, err);
	if (status != STATUS_OK)
		return status_exit(status);
	bool is_good = tell_evidence(&loaded.model);
	status = write_file(&loaded, exporter, arguments->operands[arguments->operand_count - 1], &selected, err);
	if (status == STATUS_OK && is_strict && !is_good)
		status = error_set(err, STATUS_LIMIT, "part of the input is missing, damaged or repaired");
	loaded_run_release(&loaded);
	return status_exit(status);
}

const struct command command_convert = {
	.name = "convert",
	.summary = "Convert any supported input to a .ssr recording or another viewer's format, repairing it",
	.usage = "stepscope convert [options] IN... OUT",
	.examples = "  stepscope convert trace.json.gz trace.ssr\n"
		    "  stepscope convert broken.json whole.json.gz\n"
		    "  stepscope convert ranks.zip all.ssr",
	.options = options,
	.run = cmd_convert_run,
};
