/* SPDX-License-Identifier: Apache-2.0
 *
 * export_common.h: what every exporter of a timeline needs: which part of the model to write, process numbers that are
 * unique in one file, spans spread over lanes so that those of one lane nest, links found by their spans.
 */
#ifndef OUTPUT_EXPORT_EXPORT_COMMON_H
#define OUTPUT_EXPORT_EXPORT_COMMON_H

#include "model/model.h"
#include "output/export/exporter.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- which part ---------------------------------------------------------------------------------------------------- */

struct step_interval {
	int64_t start_ns, end_ns; /* [start, end) */
};

struct selection { /* per process the intervals to write, sorted; NULL: everything */
	struct step_interval **intervals;
	uint32_t *counts;
	uint32_t process_count;
	bool has_range; /* spans outside steps are left out, and steps outside [first, last] */
	int64_t first_step, last_step;
};

/* Everything, or the steps that options names. */
void selection_init(struct selection *selection, const struct model *model, const struct export_options *options);
void selection_release(struct selection *selection);
bool selection_has(const struct selection *selection, uint32_t process, int64_t time_ns);
/* The same for a span: the step it belongs to decides, then its start. */
bool selection_has_span(const struct selection *selection, const struct model *model, uint32_t process,
                        const struct span_chunk *chunk, uint32_t index);

/* Bytes of output per step number, for --max-mb: a first pass adds, then step_bytes_fit() says where to cut. */
struct step_bytes {
	const struct model *model;
	int64_t *numbers; /* distinct step numbers, sorted */
	uint64_t *bytes;
	uint32_t count;
	uint64_t base; /* before the first step of a process, and what belongs to no time */
};
void step_bytes_init(struct step_bytes *steps, const struct model *model);
void step_bytes_release(struct step_bytes *steps);
void step_bytes_add(struct step_bytes *steps, uint32_t process, int64_t time_ns, uint64_t bytes);
/* True when all fits; else *first_dropped is the first step number to leave out and *kept how many steps stay. */
bool step_bytes_fit(const struct step_bytes *steps, uint64_t max_bytes, int64_t *first_dropped, uint32_t *kept);

/* ---- numbers of processes and tracks --------------------------------------------------------------------------------- */

struct track_ids {
	int64_t pid, tid;
};

struct id_map {                   /* one per file */
	int64_t *process_pid;     /* per process */
	struct track_ids *tracks; /* per track: what the file calls it */
	uint64_t *first_id;       /* per track: External id of its row 0; ids count from 1 over the whole model */
	int64_t next_lane_tid;    /* numbers for further lanes, above everything that is in use */
};
void id_map_init(struct id_map *ids, const struct model *model);
void id_map_release(struct id_map *ids);

/* ---- lanes -------------------------------------------------------------------------------------------------------------- */

struct lane_span {
	int64_t end_ns;
	uint16_t depth;
};

struct export_lane { /* the open spans of one lane, outermost first */
	struct lane_span *spans;
	uint32_t count, capacity;
	uint32_t *overflow; /* rows that cross an open span: for the next lane */
	uint32_t overflow_count, overflow_capacity;
};
void lane_release(struct export_lane *lane);
void lane_grow(struct export_lane *lane);
void lane_overflow(struct export_lane *lane, uint32_t row);

/* Takes the innermost span off if it has ended when a span of this depth starts; call until it returns false. A span
 * that ends at that very instant stays when it is an ancestor of the new one. */
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

/* After lane_pop(): puts the span on the lane; false (and it is in `overflow`) when it crosses the innermost one. */
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

/* ---- steps of a profiler in the program -------------------------------------------------------------------------------- */

/* It writes the steps that it counts, which a recording has as steps of its own: each would be there twice. */
bool export_has_steps(const struct track *track);
bool export_is_step_again(const struct model *model, const struct span_chunk *chunk, uint32_t index);

/* ---- links ---------------------------------------------------------------------------------------------------------------- */

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
/* First end at or behind (track, row). */
uint32_t link_index_find(const struct link_index *index, uint32_t track, uint32_t row);

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

struct memory_total {
	uint32_t process;
	int32_t device;
	wide_bytes bytes;
};

struct memory_totals { /* bytes allocated per process and device, as far as the recording saw them */
	struct memory_total *totals;
	uint32_t count;
};
/* Adds an event (in order of time within a process) and returns the total after it. */
int64_t memory_totals_add(struct memory_totals *totals, const struct model *model, const struct memory_event *event);
/* Nothing is missing before it. */
static inline bool export_knows_total(const struct model *model, const struct memory_event *event)
{
	const struct process *process = &model->processes[event->process];

	return !process->has_lost_memory || event->time_ns <= process->lost_memory_ns;
}
/* Says since when it is not known what is alive, of the processes that are written. */
bool export_note_memory_of(struct export_result *result, const struct model *model, uint32_t process);
void export_note_memory(struct export_result *result, const struct model *model, const bool *processes);
void memory_totals_release(struct memory_totals *totals);

/* ---- words --------------------------------------------------------------------------------------------------------------- */

/* Kineto's category ("cpu_op") of a span; is_device: on a device's stream. */
const char *export_category(enum span_kind kind, bool is_device);
bool export_is_device(const struct track *track);
/* "data", "forward", ...; NULL for numbers that are none. */
const char *export_phase_name(unsigned phase);

/* Appends text to out so that it can stand inside a JSON string in every reader: valid UTF-8, control characters as
 * blanks, only " \ and line feeds escaped. */
struct buffer;
void export_escape(struct buffer *out, const char *text, size_t length);

/* Time line as the file shows it: wall time of the model's zero, and the first and last instant of what is selected. */
struct export_window {
	int64_t realtime_offset_ns;
	int64_t first_ns, last_ns;
};
void export_window_init(struct export_window *window, const struct model *model, const struct selection *selection);

/* After a first pass that counted `written` bytes: cuts the selection to what options->max_bytes allows, and says so. */
void export_limit(struct step_bytes *steps, uint64_t written, struct selection *selection,
                  const struct export_options *options, struct export_result *result);

/* Adds a sentence to result->note. */
void export_note(struct export_result *result, const char *format, ...) PRINTF_LIKE(2, 3);

/* For timelines: says what the model has and they have no place for. */
void export_note_left_out(struct export_result *result, const struct model *model);

/* For formats that are nothing but stacks: says when none were recorded, and that --max-mb does not matter here. */
void export_note_stacks(struct export_result *result, const struct model *model);

/* Calls options->progress, if there is one, about every 64 Ki spans. */
void export_progress(const struct export_options *options, uint64_t done, uint64_t total);
uint64_t export_span_total(const struct model *model);

#endif
