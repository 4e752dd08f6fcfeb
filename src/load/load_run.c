/* SPDX-License-Identifier: Apache-2.0
 *
 * load_run.c: see the header.
 */
#include "load/load_run.h"

#include "base/storage.h"
#include "commands/command.h"
#include "commands/progress.h"
#include "commands/say.h"
#include "compare/canary_metrics.h"
#include "importers/importer.h"
#include "load/run_path.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

static void load_run_on_progress(void *context, uint64_t done, uint64_t total)
{
	progress_update(context, done, total);
}

/* Only a note: results are not affected. */
static void tell_memory(const struct storage *storage)
{
	say("stepscope: the trace takes %llu MiB of memory, more than --memory: %s\n",
	    (unsigned long long)(storage_memory_bytes(storage) >> 20), storage_problem(storage)->text);
	say("hint: set TMPDIR to a directory on a disk with more space\n");
}

/* A metrics.json is JSON like a trace, but has no events. An error that names its kind is more useful. */
static void explain_metrics(const char *const *paths, uint32_t count, struct error *err)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!canary_metrics_probe(paths[i]))
			continue;
		error_set(err, STATUS_INPUT,
		          "'%s' is a metrics.json of rlhf-canary: numbers of a whole run, not a trace", paths[i]);
		error_hint(err, "read it with 'stepscope report', 'compare', 'history add' or 'diagnose --style "
		                "canary'; its profiler.trace_path, if present, names the trace");
		return;
	}
}

static enum status load_run_load(struct loaded_run *run, const char *const *paths, uint32_t count,
                                 const struct analysis_options *options, int64_t memory_bytes, struct error *err)
{
	struct progress progress;
	enum status status;

	if (memory_bytes < 0)
		return error_set(err, STATUS_USAGE, "option '--memory' wants a size such as 512M");
	signal(SIGXFSZ, SIG_IGN); /* a temporary file that may not grow is an error, as a full disk is */
	model_init(&run->model, (uint64_t)memory_bytes);
	progress_begin(&progress, "Reading", "bytes", false);
	run->model.on_progress = load_run_on_progress;
	run->model.progress_context = &progress;
	status = import_paths(paths, count, &options->filter, &run->model, err);
	run->model.on_progress = NULL;
	progress_end(&progress);
	if (status == STATUS_INPUT)
		explain_metrics(paths, count, err);
	if (status)
		model_release(&run->model);
	else if (storage_problem(run->model.storage))
		tell_memory(run->model.storage);
	return status;
}

enum status load_run(struct loaded_run *run, const char *operand, const struct analysis_options *options,
                     int64_t memory_bytes, struct error *err)
{
	run->path = command_run_path(operand, err);
	if (!run->path)
		return err->status;
	return load_run_load(run, &run->path, 1, options, memory_bytes, err);
}

enum status load_files(struct loaded_run *run, const char *const *paths, uint32_t count,
                       const struct analysis_options *options, int64_t memory_bytes, struct error *err)
{
	run->path = paths[0];
	return load_run_load(run, paths, count, options, memory_bytes, err);
}

static bool is_file(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

/* Writes the operands as on the command line; of many, only the first and the last. */
static void join_operands(char *name, size_t size, const struct options_result *arguments)
{
	size_t length = 0;

	for (int i = 0; i < arguments->operand_count && length < size; i++)
		length += (size_t)snprintf(name + length, size - length, "%s%s", i ? " " : "", arguments->operands[i]);
	if (length >= size)
		snprintf(name, size, "%s ... %s", arguments->operands[0],
		         arguments->operands[arguments->operand_count - 1]);
}

enum status check_operands(const struct options_result *arguments, const char *command, struct error *err)
{
	for (int i = 0; i < arguments->operand_count && arguments->operand_count > 1; i++) {
		const char *path = command_run_path(arguments->operands[i], err);

		if (!path)
			return err->status;
		if (is_file(path))
			continue;
		error_set(err, STATUS_USAGE, "%s takes one run, got '%s' and '%s'", command, arguments->operands[0],
		          arguments->operands[1]);
		error_hint(err, "several files are one run if they are traces of its ranks");
		return STATUS_USAGE;
	}
	return STATUS_OK;
}

enum status load_operands(struct loaded_run *run, const struct options_result *arguments,
                          const struct analysis_options *options, int64_t memory_bytes, struct error *err)
{
	static char name[PATH_MAX];

	if (arguments->operand_count < 2)
		return load_run(run, arguments->operand_count ? arguments->operands[0] : "latest", options,
		                memory_bytes, err);
	join_operands(name, sizeof(name), arguments);
	run->path = name;
	return load_run_load(run, arguments->operands, (uint32_t)arguments->operand_count, options, memory_bytes, err);
}

bool ledger_is_defect(enum ledger_kind kind)
{
	return ledger_is_loss(kind) || kind == LEDGER_UNMATCHED_END || kind == LEDGER_REPAIRED;
}

enum status check_output(const struct options_result *arguments, const char *output, struct error *err)
{
	struct stat out, in;

	if (!output || stat(output, &out) != 0 || !S_ISREG(out.st_mode))
		return STATUS_OK;
	for (int i = 0; i < arguments->operand_count; i++) {
		if (stat(arguments->operands[i], &in) != 0 || in.st_dev != out.st_dev || in.st_ino != out.st_ino)
			continue;
		error_set(err, STATUS_USAGE, "'%s' is an input: the output would overwrite it", output);
		error_hint(err, "give another name for the output");
		return STATUS_USAGE;
	}
	return STATUS_OK;
}

void loaded_run_release(struct loaded_run *run)
{
	model_release(&run->model);
}

static bool parse_number(const char **text, int64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoll(*text, &end, 10);
	if (end == *text || errno)
		return false;
	*text = end;
	return true;
}

void tell_defects(const struct report *report)
{
	for (int i = 0; i < report->defect_count; i++)
		say("stepscope: internal error: %s; please report this\n", report->defects[i]);
}

enum status parse_steps(const char *text, struct analysis_options *options, struct error *err)
{
	struct model_filter *filter = &options->filter;
	const char *at = text;
	bool is_good;

	if (!text)
		return STATUS_OK;
	filter->has_steps = true;
	is_good = parse_number(&at, &filter->first_step);
	filter->last_step = filter->first_step;
	if (is_good && *at == '-') {
		at++;
		is_good = parse_number(&at, &filter->last_step);
	}
	if (!is_good || *at)
		return error_set(err, STATUS_USAGE, "option '--steps' wants A-B or one number, got '%s'", text);
	if (filter->last_step < filter->first_step)
		return error_set(err, STATUS_USAGE, "option '--steps' wants the smaller number first, got '%s'", text);
	return STATUS_OK;
}

enum status parse_window(const char *text, struct analysis_options *options, struct error *err)
{
	struct model_filter *filter = &options->filter;
	const char *at = text;
	int64_t first, last;
	bool is_good;

	if (!text)
		return STATUS_OK;
	if (filter->has_steps)
		return error_set(err, STATUS_USAGE, "options '--steps' and '--window' exclude each other");
	is_good = parse_number(&at, &first) && first >= 1;
	last = first;
	if (is_good && *at == '-')
		is_good = (at++, parse_number(&at, &last)) && last >= first && last - first < 100000;
	if (is_good && *at == '@')
		is_good = (at++, parse_number(&at, &filter->pid)) && filter->pid >= 1;
	if (!is_good || *at || last > INT32_MAX)
		return error_set(err, STATUS_USAGE, "option '--window' wants N, N-M or N@PID, got '%s'", text);
	filter->window = (uint32_t)first;
	filter->last_window = (uint32_t)last;
	return STATUS_OK;
}
