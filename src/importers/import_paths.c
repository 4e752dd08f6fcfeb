/* SPDX-License-Identifier: Apache-2.0
 *
 * import_paths.c: loads one or more paths: a file, a stream, or the ranks of a job in a directory, an archive or a
 * list. Then runs the checks that all formats share.
 */
#include "base/memory.h"
#include "base/text.h"
#include "importers/find_importer.h"
#include "importers/importer.h"
#include "importers/other_times.h"
#include "importers/rank_files.h"
#include "importers/smi/nvidia_smi.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LOOKED_FOR_BYTES 512
#define MOST_PHRASES 16

/* Adds telemetry from the same folder that covers the same time. */
static void add_beside(const struct importer *importer, const struct importer_source *source, struct model *model)
{
	char folder[PATH_MAX];
	if (!importer->has_telemetry_beside)
		return;
	const char *slash = strrchr(source->path, '/');
	int length = source->is_directory ? (int)strlen(source->path) : slash ? (int)(slash - source->path) : 0;
	if (snprintf(folder, sizeof folder, "%.*s", length, source->path) < (int)sizeof folder)
		smi_add_beside(model, length ? folder : slash ? "/" : ".");
}

/* If the input has no steps, a step filter is an error: its tables would look as if they were for the chosen steps. */
static enum status check_filter(const struct model *model, const struct model_filter *filter, const char *path,
                                struct error *err)
{
	const struct importer *importer = importer_of_format(model_meta(model, MODEL_NONE, "trace.format"));
	if (!importer || importer->has_steps || !filter || !filter->has_steps)
		return STATUS_OK;
	return error_set(err, STATUS_USAGE, "'%s' is %s: it has no steps to choose from", path, importer->kind);
}

enum status error_no_step(struct error *err, const char *input, const struct model_filter *filter, int64_t lowest,
                          int64_t highest)
{
	if (filter->first_step == filter->last_step)
		return error_set(err, STATUS_INPUT,
		                 "the %s has no step %" PRId64 ": its steps are %" PRId64 " to %" PRId64, input,
		                 filter->first_step, lowest, highest);
	return error_set(err, STATUS_INPUT,
	                 "the %s has no step from %" PRId64 " to %" PRId64 ": its steps are %" PRId64 " to %" PRId64,
	                 input, filter->first_step, filter->last_step, lowest, highest);
}

/* Only for importers that read all steps. The others report a missing step themselves. */
static enum status check_steps(const struct model *model, const struct model_filter *filter, struct error *err)
{
	int64_t lowest = INT64_MAX, highest = INT64_MIN;
	if (!filter || !filter->has_steps)
		return STATUS_OK;
	for (uint32_t i = 0; i < model->steps_count; i++) {
		int64_t number = model->steps[i].number;
		if (number >= filter->first_step && number <= filter->last_step)
			return STATUS_OK;
		lowest = number < lowest ? number : lowest;
		highest = number > highest ? number : highest;
	}
	if (!model->steps_count)
		return error_set(err, STATUS_INPUT, "the trace has no steps to choose from");
	return error_no_step(err, "trace", filter, lowest, highest);
}

/* importer is NULL for several files or a stream. */
static enum status check_window(const struct importer *importer, const struct model_filter *filter, const char *path,
                                struct error *err)
{
	if (!filter || !filter->window || (importer && importer->has_windows))
		return STATUS_OK;
	error_set(err, STATUS_USAGE, "'%s' has no profiler windows to choose from", path);
	error_hint(err, "only a recording of 'stepscope run' has windows; in a trace, choose steps with '--steps'");
	return STATUS_USAGE;
}

static enum status import_paths_finish(const struct importer *importer, const struct model_filter *filter,
                                       const char *path, enum status status, struct model *model, struct error *err)
{
	/* A recording that was converted from a trace keeps the words of the trace. */
	const struct importer *origin = importer_of_format(model_meta(model, MODEL_NONE, "trace.format"));
	model->reasons = origin ? origin->reasons : NULL;
	if (status == STATUS_OK)
		status = check_filter(model, filter, path, err);
	if (status == STATUS_OK && !(importer && importer->selects_steps))
		status = check_steps(model, filter, err);
	if (status == STATUS_OK) {
		other_times_leave_out(model);
		model_finish(model);
	}
	return status;
}

enum status importer_load(const struct importer *importer, const char *path, const struct model_filter *filter,
                          struct model *model, struct error *err)
{
	struct input_stream *input;
	if (importer->load)
		return importer->load(path, filter, model, err);
	enum status status = input_open(path, &input, err);
	if (status != STATUS_OK)
		return status;
	status = importer->load_input(input, path, filter, model, err);
	input_close(input);
	return status;
}

static enum status import_paths_load(const struct importer *importer, const char *path,
                                     const struct model_filter *filter, struct model *model, struct error *err)
{
	return import_paths_finish(importer, filter, path, importer_load(importer, path, filter, model, err), model,
	                           err);
}

/* Loads the ranks in a directory without a trace or a recording, or in an archive without a trace. If the source holds
 * no ranks, returns false and leaves *status unchanged. */
static bool load_ranks_of(const struct importer_source *source, const struct model_filter *filter, struct model *model,
                          enum status *status, struct error *err)
{
	const char *path = source->path;
	struct rank_files files = {0};
	bool is_found = source->is_directory && rank_files_find(&files, path, importer_of_file);
	enum status loaded = is_found ? check_window(NULL, filter, path, err) : STATUS_OK;
	if (is_found && loaded == STATUS_OK)
		loaded = rank_files_load(&files, path, filter, model, err);
	else if (!is_found && !source->is_directory)
		loaded = rank_files_load_archive(path, importer_of_bytes, filter, model, &is_found, err);
	if (is_found)
		*status = import_paths_finish(NULL, filter, path, loaded, model, err);
	rank_files_release(&files);
	return is_found;
}

/* Loads files of another kind as ranks if `importer` found no data in the directory or archive. The ledger
 * entries of the first attempt are removed. */
static bool load_as_ranks(const struct importer *importer, const struct importer_source *source,
                          const struct model_filter *filter, struct model *model, enum status *status,
                          struct error *err)
{
	bool may_hold = source->is_directory || (importer->is_archive && importer->is_archive(source->path));
	if (model->processes_count || !may_hold)
		return false;
	model->ledger_count = 0;
	return load_ranks_of(source, filter, model, status, err);
}

/* Returns the importer that reads several files as one run. It also reads streams, since no importer can look at a
 * stream first. */
static const struct importer *importer_of_sets(void)
{
	size_t i = 0;
	while (!importers[i]->load_set)
		i++;
	return importers[i];
}

static enum status import_paths_load_stream(const char *path, const struct model_filter *filter, struct model *model,
                                            struct error *err)
{
	enum status status = check_window(NULL, filter, path, err);
	if (status == STATUS_OK)
		status = import_paths_load(importer_of_sets(), path, filter, model, err);
	if (status == STATUS_INPUT && !err->hint[0])
		error_hint(err, "standard input is always read as a torch.profiler trace; pass other formats by path");
	return status;
}

/* Reports compressed data that cannot be decompressed at all. No importer could recognise such a file. */
static enum status check_compression(const char *path, struct error *err)
{
	struct input_stream *input = NULL;
	const char *bytes;
	size_t length;
	enum status status = input_open(path, &input, err);
	if (status == STATUS_OK && strcmp(input_compression(input), "none") != 0)
		status = input_peek(input, &bytes, &length, err);
	input_close(input);
	return status;
}

/* Lists the formats in the order of the registry: "traces of torch.profiler ..., a run directory ... or stacks of a
 * sampler". */
static void list_formats(char text[LOOKED_FOR_BYTES])
{
	const char *phrases[MOST_PHRASES];
	size_t count = 0;
	for (size_t i = 0; importers[i] && count < MOST_PHRASES; i++)
		if (importers[i]->looked_for)
			phrases[count++] = importers[i]->looked_for;
	text_alternatives(text, LOOKED_FOR_BYTES, phrases, count);
}

enum status import_path(const char *path, const struct model_filter *filter, struct model *model, struct error *err)
{
	struct importer_source source;
	if (importer_source_is_stream(path))
		return import_paths_load_stream(path, filter, model, err);
	enum status status = importer_source_read(&source, path, err);
	if (status != STATUS_OK)
		return status;
	const struct importer *importer = importer_find(&source);
	if (importer && check_window(importer, filter, path, err) != STATUS_OK)
		return STATUS_USAGE;
	if (importer) {
		struct error problem;
		status = import_paths_load(importer, path, filter, model, &problem);
		if (status == STATUS_OK)
			add_beside(importer, &source, model);
		else if (!load_as_ranks(importer, &source, filter, model, &status, err))
			*err = problem;
		return status;
	}
	if (!source.is_directory && source.length == 0)
		return error_set(err, STATUS_INPUT, "'%s' is empty", path);
	if (!source.is_directory && check_compression(path, err) != STATUS_OK)
		return STATUS_INPUT;
	char looked_for[LOOKED_FOR_BYTES];
	list_formats(looked_for);
	error_set(err, STATUS_INPUT, "'%s' is not a recording: looked for %s", path, looked_for);
	error_hint(err, "'stepscope run -- PROGRAM' makes a recording");
	return STATUS_INPUT;
}

/* Removes paths that name the same file and returns the number removed. Pipes are always kept. */
static uint32_t drop_repeats(const char **paths, uint32_t *count)
{
	struct stat *files = memory_resize(NULL, *count, sizeof *files);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < *count; i++) {
		uint32_t same = 0;
		bool is_file = stat(paths[i], &files[kept]) == 0 && S_ISREG(files[kept].st_mode);
		if (!is_file)
			files[kept] = (struct stat){0};
		while (is_file && same < kept &&
		       (files[same].st_ino != files[kept].st_ino || files[same].st_dev != files[kept].st_dev))
			same++;
		if (!is_file || same == kept)
			paths[kept++] = paths[i];
	}
	free(files);
	uint32_t dropped = *count - kept;
	*count = kept;
	return dropped;
}

static enum status load_paths(const char *const *paths, uint32_t count, const struct model_filter *filter,
                              struct model *model, struct error *err)
{
	if (count == 1)
		return import_path(paths[0], filter, model, err);
	enum status status = check_window(NULL, filter, paths[0], err);
	if (status != STATUS_OK)
		return status;
	struct rank_files files = {0};
	bool is_found = rank_files_take(&files, paths, count, importer_of_file);
	status = is_found ? rank_files_load(&files, paths[0], filter, model, err)
	                  : importer_of_sets()->load_set(paths, count, filter, model, err);
	rank_files_release(&files);
	return import_paths_finish(NULL, filter, paths[0], status, model, err);
}

enum status import_paths(const char *const *paths, uint32_t count, const struct model_filter *filter,
                         struct model *model, struct error *err)
{
	const char **once = memory_resize(NULL, count, sizeof *once);
	memcpy(once, paths, count * sizeof *once);
	uint32_t repeats = drop_repeats(once, &count);
	enum status status = load_paths(once, count, filter, model, err);
	if (status == STATUS_OK && repeats)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, "", repeats,
		                 "files were given more than once; each is read once");
	free(once);
	return status;
}
