/* SPDX-License-Identifier: Apache-2.0
 *
 * export_common.c: lanes, links, numbers and words; export_selection.c selects steps.
 */
#include "output/export/export_common.h"

#include "base/buffer.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "stepscope/format.h"
#include "stepscope/stepscope.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

#define FIRST_FREE_PID ((int64_t)1 << 23) /* above Linux's largest pid, 2^22 */
#define FIRST_FREE_TID ((int64_t)1 << 24)

struct pid_owner {
	int64_t pid;
	uint32_t process;
	int32_t device; /* -1: the process itself */
};

struct pid_table {
	struct pid_owner *owners;
	uint32_t count;
	int64_t next_free;
};

/* Returns the number in the file of a process or of one of its devices: its own number unless another one has it. */
static int64_t pid_claim(struct pid_table *table, int64_t wanted, uint32_t process, int32_t device)
{
	bool is_taken = false;

	for (uint32_t i = 0; i < table->count; i++) {
		if (table->owners[i].process == process && table->owners[i].device == device)
			return table->owners[i].pid;
		is_taken |= table->owners[i].pid == wanted;
	}
	if (is_taken)
		wanted = table->next_free++;
	table->owners = memory_resize(table->owners, table->count + 1, sizeof(*table->owners));
	table->owners[table->count++] = (struct pid_owner){wanted, process, device};
	return wanted;
}

/* Kineto's readers assign no step to stream 0, and CUPTI calls the default stream 7. So stream 0 becomes 7 if that is
 * free. */
static int64_t stream_tid(const struct model *model, const struct track *track)
{
	if (track->tid > 0)
		return track->tid;
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *other = model->tracks[i];

		if (other->process == track->process && other->device == track->device && other->tid == 7)
			return 0;
	}
	return 7;
}

/* Returns true if an earlier track has the number: a thread and its signal stream, or a thread that reused the tid. */
static bool is_tid_taken(const struct id_map *ids, uint32_t before, struct track_ids wanted)
{
	for (uint32_t i = 0; i < before; i++)
		if (ids->tracks[i].pid == wanted.pid && ids->tracks[i].tid == wanted.tid)
			return true;
	return false;
}

void id_map_init(struct id_map *ids, const struct model *model)
{
	struct pid_table table = {.next_free = FIRST_FREE_PID};
	uint64_t next = 1;

	*ids = (struct id_map){.next_lane_tid = FIRST_FREE_TID};
	ids->process_pid = memory_resize(NULL, model->processes_count + 1, sizeof(*ids->process_pid));
	ids->tracks = memory_resize(NULL, model->tracks_count + 1, sizeof(*ids->tracks));
	ids->first_id = memory_resize(NULL, model->tracks_count + 1, sizeof(*ids->first_id));
	for (uint32_t i = 0; i < model->processes_count; i++)
		ids->process_pid[i] = pid_claim(&table, model->processes[i].pid, i, -1);
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *track = model->tracks[i];
		struct track_ids wanted = {ids->process_pid[track->process], track->tid};

		if (track->kind == TRACK_DEVICE && track->device >= 0) {
			wanted.pid = pid_claim(&table, track->device, track->process, track->device);
			wanted.tid = stream_tid(model, track);
		}
		if (is_tid_taken(ids, i, wanted))
			wanted.tid = ids->next_lane_tid++;
		ids->tracks[i] = wanted;
		ids->first_id[i] = next;
		next += track->span_count;
	}
	free(table.owners);
}

void id_map_release(struct id_map *ids)
{
	free(ids->process_pid);
	free(ids->tracks);
	free(ids->first_id);
	*ids = (struct id_map){0};
}

/* ---- lanes ---- */

void lane_release(struct export_lane *lane)
{
	free(lane->spans);
	free(lane->overflow);
	*lane = (struct export_lane){0};
}

void lane_grow(struct export_lane *lane)
{
	lane->capacity = lane->capacity ? lane->capacity * 2 : 64;
	lane->spans = memory_resize(lane->spans, lane->capacity, sizeof(*lane->spans));
}

void lane_overflow(struct export_lane *lane, uint32_t row)
{
	MEMORY_GROW(lane->overflow, lane->overflow_count, lane->overflow_capacity, 64);
	lane->overflow[lane->overflow_count++] = row;
}

/* ---- links and arguments ---- */

static int compare_ends(const void *left, const void *right)
{
	const struct link_end *a = left, *b = right;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return a->link < b->link ? -1 : a->link > b->link;
}

static bool is_end_written(const struct model *model, const struct selection *selection, uint32_t track, uint32_t row)
{
	const struct track *owner;
	const struct span_chunk *chunk;
	uint32_t index;

	if (track >= model->tracks_count || row >= model->tracks[track]->span_count)
		return false;
	owner = model->tracks[track];
	chunk = track_chunk(owner, row, &index);
	return selection_has_span(selection, model, owner->process, chunk, index);
}

void link_index_init(struct link_index *index, const struct model *model, const struct selection *selection)
{
	*index = (struct link_index){0};
	if (!model->links_count)
		return;
	index->ends = memory_resize(NULL, (size_t)model->links_count * 2, sizeof(*index->ends));
	for (uint32_t i = 0; i < model->links_count; i++) {
		const struct model_link *link = &model->links[i];

		if (!is_end_written(model, selection, link->from_track, link->from_row) ||
		    !is_end_written(model, selection, link->to_track, link->to_row))
			continue;
		index->ends[index->count++] = (struct link_end){link->from_track, link->from_row, i, false};
		index->ends[index->count++] = (struct link_end){link->to_track, link->to_row, i, true};
	}
	if (index->count)
		qsort(index->ends, index->count, sizeof(*index->ends), compare_ends);
}

void link_index_release(struct link_index *index)
{
	free(index->ends);
	*index = (struct link_index){0};
}

uint32_t link_index_find(const struct link_index *index, uint32_t track, uint32_t row)
{
	return LOWER_BOUND(index->ends, index->count, end,
	                   end->track < track || (end->track == track && end->row < row));
}

/* ---- memory ---- */

int64_t memory_totals_add(struct memory_totals *totals, const struct model *model, const struct memory_event *event)
{
	uint32_t gone = event->is_free ? event->partner : event->ends;
	uint32_t i = 0;

	while (i < totals->count &&
	       (totals->totals[i].process != event->process || totals->totals[i].device != event->device))
		i++;
	if (i == totals->count) {
		totals->totals = memory_resize(totals->totals, ++totals->count, sizeof(*totals->totals));
		totals->totals[i] = (struct memory_total){event->process, event->device, 0};
	}
	if (gone != MODEL_NONE)
		totals->totals[i].bytes -= (wide_bytes)model->memory[gone].bytes;
	if (!event->is_free)
		totals->totals[i].bytes += (wide_bytes)event->bytes;
	return bytes_that_fit(totals->totals[i].bytes);
}

void memory_totals_release(struct memory_totals *totals)
{
	free(totals->totals);
	*totals = (struct memory_totals){0};
}

bool export_note_memory_of(struct export_result *result, const struct model *model, uint32_t number)
{
	const struct process *process = &model->processes[number];
	bool is_never = process->lost_memory_ns < process->origin_ns;
	int64_t known_ns = is_never ? 0 : process->lost_memory_ns - process->origin_ns;

	if (process->has_lost_memory)
		export_note(result, "levels of memory of process %" PRId64 " end %.3f ms after its start: %s",
		            process->pid, (double)known_ns / 1e6, model_text(model, process->lost_memory));
	else if (process->removed_memory)
		export_note(result, "levels of memory of process %" PRId64 " lack older allocations: %s", process->pid,
		            model_text(model, process->removed_memory));
	return process->has_lost_memory || process->removed_memory;
}

void export_note_memory(struct export_result *result, const struct model *model, const bool *processes)
{
	for (uint32_t i = 0; i < model->processes_count; i++)
		if ((!processes || processes[i]) && export_note_memory_of(result, model, i))
			return; /* one note is enough */
}

/* ---- steps of a profiler in the program ---- */

bool export_has_steps(const struct track *track)
{
	for (uint32_t i = 0; i < track->chunk_count; i++)
		if (memchr(track->chunks[i]->kind, SPAN_STEP, track->chunks[i]->count))
			return true;
	return false;
}

bool export_is_step_again(const struct model *model, const struct span_chunk *chunk, uint32_t index)
{
	static const char profilers[] = "ProfilerStep#";

	return (chunk->kind[index] == SPAN_ANNOTATION || chunk->kind[index] == SPAN_RANGE) &&
	       strncmp(model_text(model, chunk->name[index]), profilers, sizeof(profilers) - 1) == 0;
}

/* ---- words ---- */

static const char *const host_categories[SPAN_KIND_COUNT] = {
	[SPAN_RANGE] = "user_annotation",
	[SPAN_PHASE] = "user_annotation",
	[SPAN_OP] = "cpu_op",
	[SPAN_MICRO_BATCH] = "user_annotation",
	[SPAN_ANNOTATION] = "user_annotation",
	[SPAN_PYTHON] = "python_function",
	[SPAN_RUNTIME] = "cuda_runtime",
	[SPAN_KERNEL] = "kernel",
	[SPAN_MEMCPY] = "gpu_memcpy",
	[SPAN_MEMSET] = "gpu_memset",
	[SPAN_SYNC] = "cuda_sync",
	[SPAN_COLLECTIVE] = "cpu_op",
	[SPAN_OVERHEAD] = "overhead",
	[SPAN_OTHER] = "other",
	[SPAN_MODULE] = "python_function",
	[SPAN_STEP] = "user_annotation",
};

bool export_is_device(const struct track *track)
{
	return track->kind == TRACK_DEVICE && track->device >= 0;
}

const char *export_category(enum span_kind kind, bool is_device)
{
	const char *category = (unsigned)kind < SPAN_KIND_COUNT ? host_categories[kind] : NULL;

	if (!category)
		return "other";
	if (is_device && strcmp(category, "user_annotation") == 0)
		return "gpu_user_annotation";
	if (is_device && (kind == SPAN_COLLECTIVE || kind == SPAN_OP))
		return "kernel";
	return category;
}

const char *export_phase_name(unsigned phase)
{
	static const char *const names[] = {
		[STEPSCOPE_PHASE_DATA] = "data",
		[STEPSCOPE_PHASE_FORWARD] = "forward",
		[STEPSCOPE_PHASE_BACKWARD] = "backward",
		[STEPSCOPE_PHASE_OPTIMIZER] = "optimizer",
		[STEPSCOPE_PHASE_COMMUNICATION] = "communication",
		[STEPSCOPE_PHASE_CHECKPOINT] = "checkpoint",
		[STEPSCOPE_PHASE_EVALUATION] = "evaluation",
	};

	return phase < sizeof(names) / sizeof(names[0]) ? names[phase] : NULL;
}

void export_escape(struct buffer *out, const char *text, size_t length)
{
	size_t done = 0;

	while (done < length) {
		size_t bytes = utf8_length(text + done, length - done);
		unsigned char c = (unsigned char)text[done];

		if (!bytes) {
			buffer_add_text(out, UTF8_REPLACEMENT);
			bytes = 1;
		} else if (c == '"' || c == '\\') {
			buffer_add_byte(out, '\\');
			buffer_add_byte(out, c);
		} else if (c == '\n') {
			buffer_add_text(out, "\\n");
		} else if (c < 0x20 || c == 0x7f) {
			buffer_add_byte(out, ' ');
		} else {
			buffer_add(out, text + done, bytes);
		}
		done += bytes;
	}
}

void export_note(struct export_result *result, const char *format, ...)
{
	size_t used = strlen(result->note);
	va_list arguments;

	if (used && used + 2 < sizeof(result->note)) {
		memcpy(result->note + used, "; ", 3);
		used += 2;
	}
	va_start(arguments, format);
	vsnprintf(result->note + used, sizeof(result->note) - used, format, arguments);
	va_end(arguments);
}

void export_note_left_out(struct export_result *result, const struct model *model)
{
	uint32_t of_subjects = 0;

	for (uint32_t i = 0; i < model->series_count; i++)
		of_subjects += model->series[i]->subject != 0;
	if (model->samples_count)
		export_note(result, "%u samples were left out: this format cannot hold them", model->samples_count);
	if (of_subjects)
		export_note(result, "telemetry is written as counters (%u), which are not read back as telemetry",
		            of_subjects);
}

/* ---- progress ---- */

void export_progress(const struct export_options *options, uint64_t done, uint64_t total)
{
	if (options->progress)
		options->progress(options->context, done, total);
}

uint64_t export_span_total(const struct model *model)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < model->tracks_count; i++)
		total += model->tracks[i]->span_count;
	return total;
}

void export_note_stacks(struct export_result *result, const struct model *model)
{
	if (!result->slices)
		export_note(result, "the selection has no operators and no samples: there are no stacks");
	else if (model->stacks_count <= 1 && model_meta(model, MODEL_NONE, "trace.format"))
		export_note(result, "the input has no Python stacks: each stack is a single operator");
	else if (model->stacks_count <= 1)
		export_note(
			result,
			"no Python lines were recorded (stepscope run --with lines): each stack is a single operator");
}
