/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_survey.c: see the header.
 */
#include "importers/recording/recording_survey.h"

#include "base/memory.h"
#include "format/own_facts.h"
#include "importers/recording/recording_files.h"
#include "importers/recording/recording_stream.h"

#include <string.h>

static uint32_t find_recorded_process(struct recording *recording, const struct recorded_file *file)
{
	const struct stepscope_segment_header *header = &file->header;
	for (uint32_t i = recording->process_count; i-- > 0;) {
		const struct recorded_process *known = recording->processes[i];
		if (known->header.pid == header->pid && known->header.start_time == header->start_time &&
		    known->header.pid_namespace == header->pid_namespace &&
		    memcmp(known->header.boot_id, header->boot_id, 16) == 0 && strcmp(known->host, file->host) == 0)
			return i;
	}
	recording->processes = memory_resize(recording->processes, recording->process_count + 1,
	                                     sizeof(struct recorded_process *));
	struct recorded_process *process = memory_resize(NULL, 1, sizeof *process);
	*process = (struct recorded_process){.header = *header};
	process->host = arena_dup(&recording->model->arena, file->host);
	recording->processes[recording->process_count] = process;
	return recording->process_count++;
}

static uint32_t find_session(struct recording *recording, uint32_t process,
                             const struct stepscope_segment_header *header)
{
	for (uint32_t i = recording->session_count; i-- > 0;)
		if (recording->sessions[i]->process == process && recording->sessions[i]->number == header->session)
			return i;
	recording->sessions = memory_resize(recording->sessions, recording->session_count + 1,
	                                    sizeof(struct recorded_session *));
	struct recorded_session *session = memory_resize(NULL, 1, sizeof *session);
	*session = (struct recorded_session){
		.number = header->session, .process = process, .first_segment = header->segment};
	session->oldest_segment = UINT32_MAX;
	recording->sessions[recording->session_count] = session;
	return recording->session_count++;
}

static struct clock_line *find_clock_line(struct recording *recording, uint32_t clock)
{
	struct recorded_process *process = recording->process;
	const struct stepscope_segment_header *header = &recording->file->header;
	struct clock_line *line = clock_set_line(&recording->clocks, header->boot_id, clock,
	                                         recording->session->process,
	                                         clock == header->clock ? header->tick_hz : 0);
	for (uint32_t i = 0; i < process->line_count; i++)
		if (process->lines[i] == line)
			return line;
	if (process->line_count == sizeof process->lines / sizeof(struct clock_line *))
		return process->lines[0];
	process->lines[process->line_count++] = line;
	return line;
}

static bool first_header(void *context, const struct stepscope_segment_header *header)
{
	struct recording *recording = context;
	struct recorded_file *file = recording->file;
	file->header = *header;
	uint32_t process = find_recorded_process(recording, file);
	file->session = find_session(recording, process, header);
	recording->process = recording->processes[process];
	struct recorded_session *session = recording->session = recording->sessions[file->session];
	if (header->segment < session->first_segment)
		session->first_segment = header->segment;
	if (header->flags & STEPSCOPE_SEGMENT_COARSE) {
		session->has_coarse = true;
	} else if (header->segment <= session->oldest_segment) {
		session->oldest_segment = header->segment;
		session->oldest_tick = header->first_tick;
	}
	find_clock_line(recording, header->clock);
	return true;
}

/* Applies facts that the process recorded after its header. */
static bool first_symbol(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	struct recorded_process *process = ((struct recording *)context)->process;
	struct own_facts facts = {0};
	(void)id;
	if (kind != STEPSCOPE_SYMBOL_META)
		return true;
	own_facts_add(&facts, process->header.pid, text, length);
	own_facts_apply(&facts, &process->header);
	return true;
}

static bool first_stream(void *context, uint32_t number, const struct stepscope_stream_info *info, const char *name)
{
	struct recording *recording = context;
	struct stream *stream = recording_stream(recording, number);
	if (!stream)
		return true;
	uint32_t flags = stream->info.flags | info->flags;
	stream->info = *info;
	stream->info.flags = flags;
	if (*name && recording->session->text_bytes < RECORDING_MAX_TEXT) {
		recording->session->text_bytes += strlen(name);
		stream->name = intern_add(&recording->model->strings, name);
	}
	return true;
}

static bool first_clock(void *context, const struct stepscope_anchor *anchor)
{
	struct recording *recording = context;
	struct recorded_process *process = recording->process;
	bool is_known = anchor->clock >= STEPSCOPE_CLOCK_TSC && anchor->clock <= STEPSCOPE_CLOCK_NANOSECONDS;
	clock_line_add(find_clock_line(recording, is_known ? anchor->clock : recording->file->header.clock), anchor);
	if (anchor->raw_ns < 0 || anchor->raw_ns > INT64_MAX / 4)
		return true;
	if (!process->anchors.is_known || anchor->raw_ns < process->anchors.first_ns)
		process->anchors.first_ns = anchor->raw_ns;
	if (!process->anchors.is_known || anchor->raw_ns > process->anchors.last_ns)
		process->anchors.last_ns = anchor->raw_ns;
	process->anchors.is_known = true;
	return true;
}

static bool first_drops(void *context, uint32_t number, const struct stepscope_drops *drops)
{
	struct recording *recording = context;
	struct stream *stream = recording_stream(recording, number);
	if (!stream)
		return true;
	/* totals only grow; files are not in order yet */
	for (int type = 0; type < STEPSCOPE_EVENT_TYPES; type++)
		if (drops->by_type[type] > stream->drops.by_type[type])
			stream->drops.by_type[type] = drops->by_type[type];
	stream->has_drops = true;
	return true;
}

static bool first_end(void *context, const char *reason)
{
	struct recording *recording = context;
	recording->file->end_reason = arena_dup(&recording->model->arena, reason);
	return true;
}

static bool first_events(void *context, const struct stepscope_block *block)
{
	struct recording *recording = context;
	struct stream *stream = recording_stream(recording, block->stream);
	if (!stream || recording->file->header.flags & STEPSCOPE_SEGMENT_COARSE)
		return false;
	if (!stream->is_in_segments || block->first_word < stream->first_word) {
		stream->first_word = block->first_word;
		stream->first_tick = block->first_tick;
	}
	stream->is_in_segments = true;
	recording->session->has_removed |= stream->first_word > 0;
	return false;
}

/* Leaves out files that are not recordings. If no file is usable, returns the first one's error. */
enum status recording_survey(struct recording *recording, struct error *err)
{
	const struct segment_visitor visitor = {
		.context = recording,
		.header = first_header,
		.symbol = first_symbol,
		.stream = first_stream,
		.clock = first_clock,
		.drops = first_drops,
		.end = first_end,
		.wants_events = first_events,
	};
	struct error first_error = {.status = STATUS_OK};
	uint32_t usable = 0;
	for (uint32_t i = 0; i < recording->file_count; i++) {
		struct recorded_file *file = &recording->files[i];
		struct error problem = {.status = STATUS_OK};
		recording->file = file;
		file->is_usable = recording_read(file, &visitor, &problem) == STATUS_OK;
		usable += file->is_usable;
		if (file->is_usable)
			continue;
		if (first_error.status == STATUS_OK)
			first_error = problem;
		model_add_ledger(recording->model, LEDGER_DAMAGED, MODEL_NONE, file->name, file->stats.file_bytes,
		                 "bytes of a file that is not a readable recording were left out");
	}
	if (usable)
		return STATUS_OK;
	if (err)
		*err = first_error;
	return first_error.status == STATUS_OK ? error_set(err, STATUS_INPUT, "no recording can be read")
	                                       : first_error.status;
}
