/* SPDX-License-Identifier: Apache-2.0
 *
 * recording.c: the importer 'recording': a run directory or one segment file. It surveys all files, then a second pass
 * reads every process's segments in order and delivers their events to the model.
 */
#include "importers/recording/recording.h"

#include "base/text.h"
#include "importers/importer.h"
#include "importers/recording/recording_facts.h"
#include "importers/recording/recording_files.h"
#include "importers/recording/recording_groups.h"
#include "importers/recording/recording_ledger.h"
#include "importers/recording/recording_losses.h"
#include "importers/recording/recording_order.h"
#include "importers/recording/recording_processes.h"
#include "importers/recording/recording_sessions.h"
#include "importers/recording/recording_steps.h"
#include "importers/recording/recording_stream.h"
#include "importers/recording/recording_survey.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void second_pass(struct recording *recording)
{
	const struct segment_visitor visitor = {
		.context = recording,
		.symbol = recording_on_symbol,
		.meta = recording_on_meta,
		.track = recording_on_track,
		.stack = recording_on_stack,
		.wants_events = recording_wants_events,
		.events = recording_events,
	};
	struct recorded_session *open = NULL;
	for (uint32_t i = 0; i < recording->file_count; i++)
		recording->total_bytes += recording->files[i].is_usable ? recording->files[i].stats.file_bytes : 0;
	for (uint32_t i = 0; i < recording->file_count; i++) {
		struct recorded_file *file = &recording->files[i];
		if (!file->is_usable)
			continue;
		struct recorded_session *session = recording->sessions[file->session];
		assert(session);
		if (open && open != session)
			recording_end_session(recording, open);
		if (open != session)
			recording_open_session(session);
		open = recording->session = session;
		recording->file = file;
		recording->process = recording->processes[session->process];
		struct error problem;
		if (recording_read(file, &visitor, &problem) != STATUS_OK)
			model_add_ledger(recording->model, LEDGER_DAMAGED, recording->process->process, file->name, 1,
			                 "the file changed while it was read");
		if (!(file->header.flags & STEPSCOPE_SEGMENT_COARSE)) { /* files are in order: the last one decides */
			recording->process->end = file->stats.is_closed ? RECORDED_CLOSED : RECORDED_UNCLOSED;
			recording->process->end_reason = file->end_reason;
			recording->process->has_rescue = file->stats.rescue_offset != 0;
		}
	}
	if (open)
		recording_end_session(recording, open);
}

static void finish_recording(struct recording *recording)
{
	struct model *model = recording->model;
	for (uint32_t i = 0; i < recording->process_count; i++) {
		struct recorded_process *process = recording->processes[i];
		recording_fill_process(recording, process);
		recording_ledger_process(recording, process);
	}
	for (uint32_t i = 0; i < recording->file_count && recording->files[i].is_usable; i++)
		recording_ledger_file(recording, &recording->files[i]);
	recording_finish_steps(recording);
	recording_finish_losses(recording);
	recording_add_groups(recording);
	if (recording->refused_tracks)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, "", recording->refused_tracks,
		                 "references to threads after the first million were left out");
	if (recording->refused_symbols)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, "", recording->refused_symbols,
		                 "names after the first million of a process were left out");
}

static void release_recording(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->file_count; i++) {
		free(recording->files[i].path);
		free(recording->files[i].host);
	}
	for (uint32_t i = 0; i < recording->session_count; i++) {
		recording_empty_session(recording->sessions[i]);
		free(recording->sessions[i]);
	}
	for (uint32_t i = 0; i < recording->process_count; i++) {
		free(recording->processes[i]->captures);
		free(recording->processes[i]->late_counts);
		free(recording->processes[i]->windows);
		number_map_release(&recording->processes[i]->tid_tracks);
		free(recording->processes[i]);
	}
	clock_set_release(&recording->clocks);
	free(recording->files);
	free(recording->processes);
	free(recording->sessions);
	free(recording->unfolded);
}

static enum status load_recorded_files(struct recording *recording, struct error *err)
{
	enum status status = recording_survey(recording, err);
	if (status != STATUS_OK)
		return status;
	recording_add_processes(recording);
	recording_find_detail_since(recording);
	recording_sort_files(recording);
	if (recording->filter && recording->filter->window)
		status = recording_find_profiled(recording, err);
	else if (recording->filter && recording->filter->has_steps)
		status = recording_find_windows(recording, err);
	else
		recording_find_captures(recording);
	if (status != STATUS_OK)
		return status;
	second_pass(recording);
	finish_recording(recording);
	return STATUS_OK;
}

enum status recording_load_memory(const struct recording_bytes *segments, uint32_t count,
                                  const struct model_filter *filter, struct model *model, struct error *err)
{
	struct recording recording = {.model = model, .filter = filter};
	for (uint32_t i = 0; i < count; i++) {
		struct recorded_file *file = recording_add_file(&recording, segments[i].name);
		file->data = segments[i].data;
		file->bytes = segments[i].bytes;
	}
	enum status status = load_recorded_files(&recording, err);
	release_recording(&recording);
	return status;
}

static enum status recording_load(const char *path, const struct model_filter *filter, struct model *model,
                                  struct error *err)
{
	struct recording recording = {.model = model, .filter = filter};
	struct stat info;
	if (stat(path, &info) != 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", path);
	enum status status = recording_find_files(path, S_ISDIR(info.st_mode), &recording, err);
	if (status == STATUS_OK)
		status = load_recorded_files(&recording, err);
	release_recording(&recording);
	return status;
}

/* Accepts every directory: for an empty one, the error message lists the formats that were tried. */
static bool recording_recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	return is_directory || text_ends_with(path, ".ssr") ||
	       (length >= 8 && memcmp(head, STEPSCOPE_SEGMENT_MAGIC, 8) == 0);
}

const struct importer importer_recording = {
	.name = "recording",
	.looked_for = "a run directory with *.ssr files, one of these files",
	.has_steps = true,
	.selects_steps = true,
	.has_windows = true,
	.has_telemetry_beside = true,
	.recognises = recording_recognises,
	.load = recording_load,
};
