/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_export.c: `stepscope export RUN -o FILE`: the timeline as a file for another viewer.
 */
#include "base/units.h"
#include "commands/command.h"
#include "commands/progress.h"
#include "commands/say.h"
#include "load/load_run.h"
#include "output/export/compress.h"
#include "output/export/export_files.h"
#include "output/export/exporter.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_MEMORY ((int64_t)256 << 20)

static const char *format_name, *output, *steps, *device, *window;
static int64_t memory_bytes;
static double max_mb;
static bool is_no_progress, has_all_threads, is_list;

static char format_help[EXPORTER_WORDS_BYTES + 100], output_help[EXPORTER_WORDS_BYTES + 200];

static const struct option options[] = {
	OPTION_TEXT("format", 'f', &format_name, "NAME", format_help),
	OPTION_FLAG("formats", 0, &is_list, "list the formats with their viewers"),
	OPTION_TEXT("output", 'o', &output, "FILE", output_help),
	OPTION_TEXT("steps", 0, &steps, "A-B", STEPS_HELP),
	OPTION_TEXT("device", 0, &device, "NAME",
                    "device of a memory timeline: cpu or cuda:N (default: the first GPU, otherwise cpu)"),
	OPTION_TEXT("window", 0, &window, "N", WINDOW_HELP),
	OPTION_FLAG("all-threads", 0, &has_all_threads,
                    "with --window, add threads that its profiler does not follow (folded stacks only)"),
	OPTION_DOUBLE("max-mb", 0, &max_mb, "N",
                      "leave out whole steps at the end until the uncompressed file has at most N MiB (0 "
                      "sets no limit)"),
	OPTION_BYTES("memory", 0, &memory_bytes, "SIZE", MEMORY_HELP("256M")),
	OPTION_FLAG("no-progress", 0, &is_no_progress, "hide the progress bar"),
	OPTION_END,
};

/* Lists the formats and suffixes of the exporters. */
static const struct option *make_options(void)
{
	char words[EXPORTER_WORDS_BYTES];

	exporter_list_names(words);
	snprintf(format_help, sizeof(format_help), "%s (default: the format of the suffix of --output)", words);
	exporter_list_suffixes(words);
	snprintf(output_help, sizeof(output_help),
	         "file to write: NAME%s; append .gz or .zst to compress; DIR/ writes one file per rank; "
	         "- writes to standard output (default: a file in the run directory)",
	         words);
	return options;
}

/* ---- format and path ---- */

static bool is_directory(const char *path)
{
	struct stat info;

	return path[0] && (path[strlen(path) - 1] == '/' || (stat(path, &info) == 0 && S_ISDIR(info.st_mode)));
}

static enum status unknown_format(struct error *err)
{
	const char *names[16];
	const char *nearest;
	char words[EXPORTER_WORDS_BYTES];
	int count = 0;

	for (int i = 0; exporters[i] && count < 15; i++)
		names[count++] = exporters[i]->name;
	names[count] = NULL;
	nearest = nearest_name(format_name, names);
	error_set(err, STATUS_USAGE, "unknown format '%s'", format_name);
	exporter_list_names(words);
	if (nearest)
		error_hint(err, "did you mean '--format %s'?", nearest);
	else
		error_hint(err, "give %s", words);
	return STATUS_USAGE;
}

static enum status choose_exporter(const struct exporter **exporter, struct error *err)
{
	char words[EXPORTER_WORDS_BYTES];

	if (format_name) {
		*exporter = exporter_find(format_name);
		return *exporter ? STATUS_OK : unknown_format(err);
	}
	*exporter = output && !is_directory(output) && strcmp(output, "-") != 0 ? exporter_by_suffix(output)
	                                                                        : exporters[0];
	if (*exporter && (!output || strcmp(output, "-") != 0))
		return STATUS_OK;
	exporter_list_suffixes(words);
	error_set(err, STATUS_USAGE, "cannot tell the format of '%s'", output);
	error_hint(err, "end its name in %s, or add --format", words);
	return STATUS_USAGE;
}

/* Refuses options that would have no effect. */
static enum status cmd_export_check_usage(const struct options_result *arguments, const struct exporter *exporter,
                                          struct error *err)
{
	if (check_operands(arguments, "export", err))
		return err->status;
	if (device && !exporter->is_of_a_device) {
		error_set(err, STATUS_USAGE, "option '--device' is for memory timelines, not for the format %s",
		          exporter->name);
		error_hint(err, "'--format memory-timeline'");
		return STATUS_USAGE;
	}
	if (has_all_threads && !window)
		return error_set(err, STATUS_USAGE, "option '--all-threads' wants '--window'");
	if (!(max_mb >= 0 && max_mb < 1e9))
		return error_set(err, STATUS_USAGE, "option '--max-mb' wants a number of MiB, got %g", max_mb);
	return STATUS_OK;
}

/* ---- writing ---- */

static void cmd_export_on_progress(void *context, uint64_t done, uint64_t total)
{
	progress_update(context, done, total);
}

static void print_summary(const struct exporter *exporter, const struct export_result *result, const char *path,
                          const struct progress *progress)
{
	char slices[UNITS_BYTES], bytes[UNITS_BYTES], time[UNITS_BYTES];

	if (common.is_quiet)
		return;
	say("exported %s %s", units_count(slices, (double)result->slices), result->slices == 1 ? "span" : "spans");
	if (result->flows)
		say(", %s %s", units_count(slices, (double)result->flows), result->flows == 1 ? "flow" : "flows");
	if (result->counters)
		say(", %s counter %s", units_count(slices, (double)result->counters),
		    result->counters == 1 ? "value" : "values");
	if (result->instants)
		say(", %s %s", units_count(slices, (double)result->instants),
		    result->instants == 1 ? "instant" : "instants");
	say(" to %s (%s) in %s\n", strcmp(path, "-") == 0 ? "standard output" : path,
	    units_bytes(bytes, (double)result->bytes_file), units_time(time, progress_seconds(progress) * 1e9));
	if (result->note[0])
		say("note: %s\n", result->note);
	if (max_mb > 0 && !exporter->honours_max_bytes)
		say("note: --max-mb has no effect on the format %s\n", exporter->name);
}

static enum status write_one(const struct model *model, const struct exporter *exporter, const char *path,
                             const struct analysis_options *selected, const bool *processes, struct error *err)
{
	struct progress progress;
	struct export_result result;
	struct export_options wanted = {
		.has_steps = selected->filter.has_steps,
		.first_step = selected->filter.first_step,
		.last_step = selected->filter.last_step,
		.max_bytes = (int64_t)(max_mb * 1048576),
		.processes = processes,
		.device = device,
		.progress = cmd_export_on_progress,
		.context = &progress,
	};
	enum status status;

	progress_begin(&progress, "Exporting", "spans", is_no_progress);
	status = exporter->write(model, path, &wanted, &result, err);
	progress_end(&progress);
	if (status == STATUS_OK)
		print_summary(exporter, &result, path, &progress);
	return status;
}

static const char *file_suffix(const struct exporter *exporter)
{
	return strcmp(exporter->name, "chrome") == 0 ? ".pt.trace.json.gz" : exporter->suffix;
}

static enum status write_ranks(const struct model *model, const struct exporter *exporter, const char *directory,
                               const struct analysis_options *selected, struct error *err)
{
	struct export_files files;
	enum status status = STATUS_OK;
	size_t length = strlen(directory);
	char path[PATH_MAX + 512];

	if (length > PATH_MAX)
		return error_set(err, STATUS_USAGE, "the name of the output directory is too long");
	if (mkdir(directory, 0777) < 0 && errno != EEXIST)
		return error_errno(err, STATUS_IO, errno, "cannot create the directory '%s'", directory);
	export_files_init(&files, model);
	for (uint32_t i = 0; i < files.count && status == STATUS_OK; i++) {
		snprintf(path, sizeof(path), "%s%s%s%s", directory, directory[length - 1] == '/' ? "" : "/",
		         files.files[i].name, file_suffix(exporter));
		status = write_one(model, exporter, path, selected, files.files[i].processes, err);
	}
	export_files_release(&files);
	return status;
}

/* Without -o, Kineto files go into RUN/traces, where readers that scan a directory find no other files. */
static enum status write_into_run(const struct loaded_run *run, const struct exporter *exporter,
                                  const struct analysis_options *selected, struct error *err)
{
	char path[PATH_MAX + 64];

	if (!is_directory(run->path)) {
		error_set(err, STATUS_USAGE,
		          "option '--output' is missing, and '%s' is not a run directory to write into", run->path);
		error_hint(err, "for example '-o trace.json.gz'");
		return STATUS_USAGE;
	}
	if (strcmp(exporter->name, "chrome") == 0) {
		snprintf(path, sizeof(path), "%s/traces", run->path);
		return write_ranks(&run->model, exporter, path, selected, err);
	}
	snprintf(path, sizeof(path), "%s/trace%s", run->path, exporter->suffix);
	return write_one(&run->model, exporter, path, selected, NULL, err);
}

static enum status export_run(const struct loaded_run *run, const struct exporter *exporter,
                              const struct analysis_options *selected, struct error *err)
{
	enum status status;

	if (!output)
		return write_into_run(run, exporter, selected, err);
	if (is_directory(output))
		return write_ranks(&run->model, exporter, output, selected, err);
	status = write_one(&run->model, exporter, output, selected, NULL, err);
	if (status == STATUS_OK && !common.is_quiet && export_rank_count(&run->model) > 1)
		say("hint: several ranks are in one file; -o DIR/ writes one file per rank, as HTA needs it\n");
	return status;
}

static enum status check_steps(const struct model *model, const struct analysis_options *selected, struct error *err)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	if (!selected->filter.has_steps)
		return STATUS_OK;
	for (uint32_t i = 0; i < model->steps_count; i++) {
		int64_t number = model->steps[i].number;

		if (number >= selected->filter.first_step && number <= selected->filter.last_step)
			return STATUS_OK;
		first = number < first ? number : first;
		last = number > last ? number : last;
	}
	error_set(err, STATUS_INPUT, "the recording has no step in %" PRId64 "-%" PRId64, selected->filter.first_step,
	          selected->filter.last_step);
	if (first <= last)
		error_hint(err, "it has steps %" PRId64 " to %" PRId64, first, last);
	return STATUS_INPUT;
}

static void list_formats(void)
{
	for (int i = 0; exporters[i]; i++)
		printf("%-16s %s%s%s\n%-16s %s\n%-16s viewers: %s\n", exporters[i]->name, exporters[i]->suffix,
		       exporters[i]->other_suffix ? ", " : "",
		       exporters[i]->other_suffix ? exporters[i]->other_suffix : "", "", exporters[i]->what, "",
		       exporters[i]->viewers);
}

static int cmd_export_run(const struct options_result *arguments, struct error *err)
{
	struct analysis_options selected = {0};
	const struct exporter *exporter;
	struct loaded_run loaded;
	enum status status;

	if (is_list) {
		list_formats();
		return 0;
	}
	status = choose_exporter(&exporter, err);
	if (status == STATUS_OK)
		status = cmd_export_check_usage(arguments, exporter, err);
	if (status == STATUS_OK)
		status = check_output(arguments, output, err);
	if (status == STATUS_OK)
		status = parse_steps(steps, &selected, err);
	if (status == STATUS_OK)
		status = parse_window(window, &selected, err);
	if (status == STATUS_OK)
		status = load_operands(&loaded, arguments, &selected, memory_bytes ? memory_bytes : DEFAULT_MEMORY,
		                       err);
	if (status != STATUS_OK)
		return status_exit(status);
	loaded.model.tells_profiled &= !has_all_threads;
	status = check_steps(&loaded.model, &selected, err);
	if (status == STATUS_OK)
		status = export_run(&loaded, exporter, &selected, err);
	loaded_run_release(&loaded);
	return status_exit(status);
}

const struct command command_export = {
	.name = "export",
	.summary = "Write the timeline of a run for Perfetto, chrome://tracing, TensorBoard or HTA",
	.usage = "stepscope export [options] [RUN...]",
	.examples = "  stepscope export latest -o trace.json.gz\n"
		    "  stepscope export latest -o trace.pftrace --steps 10-12\n"
		    "  stepscope export latest --format chrome -o traces/",
	.make_options = make_options,
	.run = cmd_export_run,
};
