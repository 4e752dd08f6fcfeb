/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_losses.c: finds the time since which live allocations are unknown: an allocation whose free is missing
 * would live forever. The ledger states how much is missing. This file finds when the first loss happened, as far as
 * that is certain.
 */
#include "importers/recording/recording_losses.h"

#include "importers/recording/recording.h"

#include <stepscope/stepscope.h>

/* The drainer copies the events of a quiet thread out of the pool at least this often. */
#define LATE_NS 250000000

#define LOST_BY_DROPS                                                                                                  \
	"allocations or frees were dropped (use a larger buffer: --pool): live memory is unknown from then on"
#define LOST_WITH_TAIL "the recording has no end: its last allocations and frees are missing, so live memory is unknown"
#define REMOVED_MEMORY                                                                                                 \
	"older allocations and frees were removed (--keep-size 0 keeps all): their live memory is unknown"

void recording_lose(struct recorded_process *process, int64_t since_ns, const char *why)
{
	struct memory_loss *loss = &process->memory_loss;
	if (!loss->has_any || since_ns < loss->since_ns)
		*loss = (struct memory_loss){true, since_ns, why};
}

/* Notes a loss if events of memory, or events of unknown type that only gaps count, were dropped. A gap has the time of
 * dropped events, but no gap follows the last drop, and threads without a stream have none. */
void recording_lose_stream(struct recording *recording, const struct stream *stream)
{
	const uint64_t *dropped = stream->drops.by_type;
	uint64_t total = 0;
	for (int type = 0; type < STEPSCOPE_EVENT_TYPES; type++)
		if (__builtin_add_overflow(total, dropped[type], &total))
			total = UINT64_MAX;
	if (dropped[STEPSCOPE_EVENT_ALLOC] || dropped[STEPSCOPE_EVENT_FREE] || dropped[STEPSCOPE_EVENT_EXTENDED] ||
	    stream->gap_events > total)
		recording_lose(recording->process,
		               stream->has_gap      ? stream->gap_ns
		               : stream->has_events ? stream->last_ns
		                                    : INT64_MIN,
		               LOST_BY_DROPS);
}

bool recording_has_removed(const struct recorded_session *session)
{
	return session->has_coarse || session->first_segment > 0;
}

/* Events lost in a damaged block are not older than the segment before. */
static void lose_damaged(struct recording *recording, uint32_t number)
{
	const struct recorded_file *file = &recording->files[number], *before = number ? file - 1 : NULL;
	struct recorded_process *process = recording->processes[recording->sessions[file->session]->process];
	struct clock_cursor clock = {process->lines[0], 0};
	bool has_before = before && before->session == file->session &&
	                  !(before->header.flags & STEPSCOPE_SEGMENT_COARSE);
	bool is_damaged = file->stats.damaged_bytes || (file->stats.torn_bytes && process->end == RECORDED_CLOSED);
	if (is_damaged && !(file->header.flags & STEPSCOPE_SEGMENT_COARSE))
		recording_lose(process,
		               has_before && process->line_count == 1 ? clock_ns(&clock, before->header.first_tick)
		                                                      : INT64_MIN,
		               LOST_BY_DAMAGE);
}

static bool has_missing_tail(const struct recording *recording, const struct recorded_process *process)
{
	for (uint32_t i = 0; i < recording->unfolded_count; i++)
		if (recording->unfolded[i].pid == process->header.pid)
			return process->end == RECORDED_UNCLOSED;
	return process->end == RECORDED_UNCLOSED && !process->has_rescue;
}

/* Returns true if memory was recorded at that time or later. Without any CAPTURE event, the whole recording counts. */
static bool is_recorded_behind(const struct recorded_process *process, int64_t since_ns)
{
	bool is_recorded = !process->capture_count && process->has_memory;
	for (uint32_t i = 0; i < process->capture_count; i++) {
		const struct capture_change *change = &process->captures[i];
		bool is_over = i + 1 < process->capture_count && process->captures[i + 1].time_ns <= since_ns;
		is_recorded |= !is_over && change->mask & STEPSCOPE_ACTIVE_MEMORY;
	}
	return is_recorded;
}

static bool was_recorded_before(const struct recorded_process *process, int64_t time_ns)
{
	for (uint32_t i = 0; i < process->capture_count && process->captures[i].time_ns < time_ns; i++)
		if (process->captures[i].mask & STEPSCOPE_ACTIVE_MEMORY)
			return true;
	return false;
}

static void note_removed(struct recording *recording, const struct recorded_session *session)
{
	const struct recorded_process *process = recording->processes[session->process];
	struct process *told = &recording->model->processes[process->process];
	if (session->has_removed && recording_has_removed(session) &&
	    was_recorded_before(process, session->detail_since_ns))
		told->removed_memory = intern_add(&recording->model->strings, REMOVED_MEMORY);
}

void recording_finish_losses(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->file_count && recording->files[i].is_usable; i++)
		lose_damaged(recording, i);
	for (uint32_t i = 0; i < recording->session_count; i++)
		note_removed(recording, recording->sessions[i]);
	for (uint32_t i = 0; i < recording->process_count; i++) {
		struct recorded_process *process = recording->processes[i];
		bool has_only_lost_end = !process->memory_loss.has_any;
		if (has_missing_tail(recording, process))
			recording_lose(process, process->times.is_known ? process->times.last_ns - LATE_NS : INT64_MIN,
			               LOST_WITH_TAIL);
		const struct memory_loss *loss = &process->memory_loss;
		if (!loss->has_any || !is_recorded_behind(process, loss->since_ns))
			continue;
		model_lose_memory(recording->model, process->process, loss->since_ns, loss->why);
		recording->model->processes[process->process].has_lost_end = has_only_lost_end;
	}
}
