/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_ledger.c: describes the problems of a recording in sentences: drops, damage, cut tails, killed processes,
 * clocks.
 */
#include "importers/recording/recording_ledger.h"

#include "importers/recording/recording.h"
#include "model/cell_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const event_names[STEPSCOPE_EVENT_TYPES] = {
	"other", "begin", "end",  "switch", "mark",     "value", "alloc", "free",
	"step",  "span",  "link", "sample", "argument", "gap",   "time",  "other",
};

/* Totals of the stream can exceed the sum of its gaps: no gap follows the last dropped events. */
void recording_ledger_stream(struct recording *recording, const struct recorded_session *session,
                             const struct stream *stream)
{
	struct model *model = recording->model;
	uint32_t process = recording->processes[session->process]->process;
	const char *where = stream->name ? model_text(model, stream->name) : "a thread";
	uint64_t total = 0;
	for (int type = 0; type < STEPSCOPE_EVENT_TYPES && stream->has_drops; type++) {
		uint64_t count = stream->drops.by_type[type];
		if (count && !__builtin_add_overflow(total, count, &total))
			model_add_ledger(
				model, LEDGER_DROPPED, process, event_names[type], count,
				"events were dropped: the buffers or the table of names were full, or the events "
				"were nested too deep");
	}
	if (stream->gap_events > total)
		model_add_ledger(model, LEDGER_DROPPED, process, CELL_UNKNOWN_TYPE, stream->gap_events - total,
		                 "events were dropped: the buffers or the table of names were full, or the events were "
		                 "nested too deep");
	if (stream->unmatched)
		model_add_ledger(model, LEDGER_UNMATCHED_END, process, where, stream->unmatched,
		                 "ends had no start; they were ignored");
	if (stream->unmatched_steps)
		model_add_ledger(
			model, LEDGER_UNMATCHED_END, process, where, stream->unmatched_steps,
			"steps ended in another thread than they started in, or were open when another thread started "
			"a step: they are incomplete. A process has one step at a time, in one thread");
	if (stream->overlaps)
		model_add_ledger(
			model, LEDGER_OTHER, process, where, stream->overlaps,
			arena_printf(&model->arena,
		                     "ranges of one thread overlapped without being nested: the range that ended "
		                     "first was cut at the start of the other, by %" PRIu64 " ns in total",
		                     stream->overlap_ns));
}

static void ledger_damage(struct model *model, uint32_t process, const struct recorded_file *file)
{
	const struct segment_stats *stats = &file->stats;
	struct ledger_entry *entry = model_add_ledger(model, LEDGER_DAMAGED, process, file->name, stats->damaged_bytes,
	                                              "bytes could not be read and were skipped");
	if (!entry->has_first_offset) {
		entry->has_first_offset = true;
		entry->first_offset = stats->first_damage_offset;
	}
}

void recording_ledger_file(struct recording *recording, const struct recorded_file *file)
{
	struct model *model = recording->model;
	const struct segment_stats *stats = &file->stats;
	const struct recorded_process *owner = recording->processes[recording->sessions[file->session]->process];
	if (stats->damaged_bytes)
		ledger_damage(model, owner->process, file);
	if (stats->torn_bytes && owner->end != RECORDED_ALIVE) {
		struct ledger_entry *entry = model_add_ledger(model, LEDGER_TORN_TAIL, owner->process, file->name,
		                                              stats->torn_bytes,
		                                              "bytes of the last block, which is cut off, were not "
		                                              "read");
		entry->has_first_offset = true;
		entry->first_offset = stats->file_bytes - stats->torn_bytes;
	}
	if (stats->rescued_events)
		model_add_ledger(model, LEDGER_RESCUED, owner->process, file->name, stats->rescued_events,
		                 "events were recovered from the buffers after the process died");
	if (stats->unknown_blocks)
		model_add_ledger(model, LEDGER_OTHER, owner->process, file->name, stats->unknown_blocks,
		                 "blocks are of a kind unknown to this version");
}

/* Returns the reason why the buffers of a dead process are not in its recording; NULL if it is unknown. */
static const char *unfolded_problem(const struct recording *recording, const struct recorded_process *process)
{
	for (uint32_t i = 0; i < recording->unfolded_count; i++)
		if (recording->unfolded[i].pid == process->header.pid)
			return recording->unfolded[i].problem;
	return NULL;
}

static void ledger_missing_tail(struct recording *recording, const struct recorded_process *process)
{
	const char *problem = unfolded_problem(recording, process);
	char text[500];
	if (problem)
		snprintf(text, sizeof text,
		         "the last events of the process are still in /dev/shm and could not be added: %s; free some "
		         "space and repeat this command",
		         problem);
	else
		snprintf(text, sizeof text,
		         "the process ended without closing its recording, and its buffers are gone: events after "
		         "the last recorded one are missing (up to a second after a kill; more if its file could not "
		         "be written)");
	model_add_ledger(recording->model, LEDGER_MISSING_TAIL, process->process, process->host, 1, text);
}

void recording_ledger_process(struct recording *recording, const struct recorded_process *process)
{
	struct model *model = recording->model;
	const char *where = process->host;
	if (process->end == RECORDED_ALIVE)
		model_add_ledger(model, LEDGER_OTHER, process->process, where, 1,
		                 "the process is still running: the recording contains its events so far");
	else if (process->end == RECORDED_UNCLOSED && (!process->has_rescue || unfolded_problem(recording, process)))
		ledger_missing_tail(recording, process);
	if (process->line_count > 1)
		model_add_ledger(model, LEDGER_CLOCK, process->process, where, process->line_count - 1,
		                 "changes of the clock during the recording");
	for (uint32_t i = 0; i < process->line_count; i++)
		if (process->lines[i]->jumps)
			model_add_ledger(model, LEDGER_CLOCK, process->process, where, process->lines[i]->jumps,
			                 "times at which the clock's rate changed by more than 0.1 % or the clock "
			                 "went backwards");
}
