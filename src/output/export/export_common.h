/* SPDX-License-Identifier: Apache-2.0
 *
 * export_common.h: shared by the exporters of timelines: selection of parts of the model, process numbers that are
 * unique in one file, lanes in which spans nest, links by span.
 */
#ifndef OUTPUT_EXPORT_EXPORT_COMMON_H
#define OUTPUT_EXPORT_EXPORT_COMMON_H

#include "model/model.h"
#include "output/export/exporter.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- selection ---- */

struct step_interval {
	int64_t start_ns, end_ns; /* [start, end) */
};

struct selection { /* sorted intervals to write, per process; NULL: everything */
	struct step_interval **intervals;
	uint32_t *counts;
	uint32_t process_count;
	bool has_range; /* spans outside the steps first_step to last_step are left out */
	int64_t first_step, last_step;
};

/* Selects everything, or the steps that the options name. */
void selection_init(struct selection *selection, const struct model *model, const struct export_options *options);
void selection_release(struct selection *selection);
bool selection_has(const struct selection *selection, uint32_t process, int64_t time_ns);
/* Returns true if the span is selected: its step decides, or its start if it has no step. */
bool selection_has_span(const struct selection *selection, const struct model *model, uint32_t process,
                        const struct span_chunk *chunk, uint32_t index);

/* Bytes of output per step number, for --max-mb. A first pass adds them, then step_bytes_fit() finds the cut. */
struct step_bytes {
	const struct model *model;
	int64_t *numbers; /* distinct step numbers, sorted */
	uint64_t *bytes;
	uint32_t count;
	uint64_t base; /* before the first step of a process, and bytes without a time */
};
void step_bytes_init(struct step_bytes *steps, const struct model *model);
void step_bytes_release(struct step_bytes *steps);
void step_bytes_add(struct step_bytes *steps, uint32_t process, int64_t time_ns, uint64_t bytes);
/* Returns true if everything fits. Otherwise sets *first_dropped, the first step to leave out, and *kept, the steps
 * before. */
bool step_bytes_fit(const struct step_bytes *steps, uint64_t max_bytes, int64_t *first_dropped, uint32_t *kept);

/* ---- numbers of processes and tracks ---- */

struct track_ids {
	int64_t pid, tid;
};

struct id_map {                   /* one per file */
	int64_t *process_pid;     /* per process */
	struct track_ids *tracks; /* per track: its numbers in the file */
	uint64_t *first_id;       /* per track: External id of its row 0; ids count from 1 over the whole model */
	int64_t next_lane_tid;    /* next number for a further lane, above all numbers in use */
};
void id_map_init(struct id_map *ids, const struct model *model);
void id_map_release(struct id_map *ids);

/* ---- lanes ---- */

struct lane_span {
	int64_t end_ns;
	uint16_t depth;
};

struct export_lane { /* the open spans of one lane, outermost first */
	struct lane_span *spans;
	uint32_t count, capacity;
	uint32_t *overflow; /* rows that cross an open span, for the next lane */
	uint32_t overflow_count, overflow_capacity;
};
void lane_release(struct export_lane *lane);
void lane_grow(struct export_lane *lane);
void lane_overflow(struct export_lane *lane, uint32_t row);

/* Removes the innermost span if it has ended when a span of this depth starts. Call it until it returns false. A span
 * that ends at that very instant stays if it is an ancestor of the new one. */
static inline bool lane_pop(struct export_lane *lane, int64_t start_ns, uint16_t depth, int64_t *ended_ns)
{
	const struct lane_span *top;

	if (!lane->count)
		return false;
	top = &lane->spans[lane->count - 1];
	if (top->end_ns > start_ns || (top->end_ns == start_ns && top->depth < depth))
		return false;
	*ended_ns = top->end_ns;
	lane->count--;
	return true;
}

/* After lane_pop(): puts the span on the lane. Returns false, with the span in `overflow`, if it crosses the innermost
 * one. */
static inline bool lane_push(struct export_lane *lane, uint32_t row, int64_t end_ns, uint16_t depth)
{
	if (lane->count && lane->spans[lane->count - 1].end_ns < end_ns) {
		lane_overflow(lane, row);
		return false;
	}
	if (lane->count == lane->capacity)
		lane_grow(lane);
	lane->spans[lane->count++] = (struct lane_span){end_ns, depth};
	return true;
}

/* ---- steps of a profiler in the program ---- */

/* Such a profiler writes the steps it counts. If a track has recorded steps as well, each would appear twice. */
bool export_has_steps(const struct track *track);
bool export_is_step_again(const struct model *model, const struct span_chunk *chunk, uint32_t index);

/* ---- links ---- */

struct link_end {
	uint32_t track, row;
	uint32_t link; /* index into model.links */
	bool is_to;
};

struct link_index { /* ends of complete links, sorted by track and row */
	struct link_end *ends;
	uint32_t count;
};
void link_index_init(struct link_index *index, const struct model *model, const struct selection *selection);
void link_index_release(struct link_index *index);
/* Returns the first end at or after (track, row). */
uint32_t link_index_find(const struct link_index *index, uint32_t track, uint32_t row);

/* ---- memory ---- */

struct memory_total {
	uint32_t process;
	int32_t device;
	wide_bytes bytes;
};

struct memory_totals { /* bytes allocated per process and device, as far as they were recorded */
	struct memory_total *totals;
	uint32_t count;
};
/* Adds an event (in order of time within a process) and returns the total after it. */
int64_t memory_totals_add(struct memory_totals *totals, const struct model *model, const struct memory_event *event);
/* Returns true if no earlier memory event of the process is missing. */
static inline bool export_knows_total(const struct model *model, const struct memory_event *event)
{
	const struct process *process = &model->processes[event->process];

	return !process->has_lost_memory || event->time_ns <= process->lost_memory_ns;
}
/* Note in the result from when on live memory is unknown, for the written processes. */
bool export_note_memory_of(struct export_result *result, const struct model *model, uint32_t process);
void export_note_memory(struct export_result *result, const struct model *model, const bool *processes);
void memory_totals_release(struct memory_totals *totals);

/* ---- words ---- */

/* Returns Kineto's category ("cpu_op") of a span; is_device: it is on a device's stream. */
const char *export_category(enum span_kind kind, bool is_device);
bool export_is_device(const struct track *track);
/* Returns "data", "forward", ..., or NULL for an unknown number. */
const char *export_phase_name(unsigned phase);

/* Appends text as the content of a JSON string for every reader: valid UTF-8, control characters as blanks, only " \
 * and line feeds escaped. */
struct buffer;
void export_escape(struct buffer *out, const char *text, size_t length);

/* Time line of the file: wall time of the model's zero, and the first and last instant of the selection. */
struct export_window {
	int64_t realtime_offset_ns;
	int64_t first_ns, last_ns;
};
void export_window_init(struct export_window *window, const struct model *model, const struct selection *selection);

/* Call it after a first pass that counted `written` bytes. Cuts the selection to options->max_bytes, and notes it. */
void export_limit(struct step_bytes *steps, uint64_t written, struct selection *selection,
                  const struct export_options *options, struct export_result *result);

/* Adds a sentence to result->note. */
void export_note(struct export_result *result, const char *format, ...) PRINTF_LIKE(2, 3);

/* Notes data of the model for which timelines have no place. */
void export_note_left_out(struct export_result *result, const struct model *model);

/* Notes that there are no stacks, for formats with nothing but stacks. */
void export_note_stacks(struct export_result *result, const struct model *model);

/* Calls options->progress if it is set. Exporters call this once per chunk, about every 64 Ki spans. */
void export_progress(const struct export_options *options, uint64_t done, uint64_t total);
uint64_t export_span_total(const struct model *model);

#endif
