/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_steps.c: the capture state of each step, and under a filter the time windows to load.
 */
#include "importers/recording/recording_steps.h"

#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "importers/importer.h"
#include "importers/recording/recording_facts.h"
#include "importers/recording/recording_files.h"
#include "importers/recording/recording_stream.h"
#include "importers/recording/recording_torch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

void recording_note_capture(struct recorded_process *process, int64_t time_ns, const struct segment_event *event)
{
	if (event->payload_count < 2)
		return;
	MEMORY_GROW(process->captures, process->capture_count, process->capture_capacity, 16);
	struct capture_change *change = &process->captures[process->capture_count++];
	*change = (struct capture_change){.time_ns = time_ns,
	                                  .event_ns = time_ns,
	                                  .capture = (uint8_t)event->payload[0],
	                                  .mask = (uint8_t)event->payload[1]};
	change->is_counted = event->payload_count > 2;
	change->count = change->is_counted ? event->payload[2] : 0;
}

static int recording_steps_compare_changes(const void *left, const void *right)
{
	const struct capture_change *a = left, *b = right;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Applies the changes in force during the step: the one at its start, and those inside it. */
static void describe_step(struct model_step *step, const struct recorded_process *process)
{
	const struct capture_change *changes = process->captures;
	uint32_t low = LOWER_BOUND(changes, process->capture_count, item, item->time_ns <= step->start_ns);
	const uint8_t with_rare = STEPSCOPE_ACTIVE_DETAIL | STEPSCOPE_ACTIVE_RARE;
	uint8_t mask = STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL, any;
	step->capture = STEPSCOPE_CAPTURE_RECORD; /* without any CAPTURE event there was no schedule */
	if (process->capture_count) {
		const struct capture_change *at_begin = &changes[low ? low - 1 : 0];
		step->capture = at_begin->capture;
		mask = at_begin->mask;
	}
	any = mask;
	step->has_rare = mask & with_rare;
	for (uint32_t i = low; i < process->capture_count && !step->is_open && changes[i].time_ns < step->end_ns; i++) {
		step->has_rare &= (changes[i].mask & with_rare) != 0;
		mask &= changes[i].mask;
		any |= changes[i].mask;
	}
	step->has_calls_only = any & STEPSCOPE_ACTIVE_CALLS && process->infers_phases;
	step->has_detail = mask & STEPSCOPE_ACTIVE_DETAIL;
	step->has_any_detail = any & STEPSCOPE_ACTIVE_DETAIL;
	step->has_shapes = mask & STEPSCOPE_ACTIVE_SHAPES;
	step->has_memory = mask & STEPSCOPE_ACTIVE_MEMORY;
}

void recording_add_to_step(struct model_step *step, bool is_tokens, uint64_t count)
{
	uint64_t *sum = is_tokens ? &step->tokens : &step->samples;
	if (__builtin_add_overflow(*sum, count, sum))
		*sum = UINT64_MAX;
	*(is_tokens ? &step->has_tokens : &step->has_samples) = true;
}

static int compare_late_counts(const void *left, const void *right)
{
	const struct late_count *a = left, *b = right;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static int compare_step_starts(const void *left, const void *right)
{
	const struct model_step *a = left, *b = right;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Expects steps in order of process and start. */
static void add_late_counts(struct model *model, struct recorded_process *process)
{
	merge_sort(process->late_counts, process->late_count_count, sizeof *process->late_counts, compare_late_counts);
	uint32_t i = 0;
	while (i < model->steps_count && model->steps[i].process != process->process)
		i++;
	for (uint32_t c = 0; c < process->late_count_count && i < model->steps_count; c++) {
		const struct late_count *late = &process->late_counts[c];
		while (i + 1 < model->steps_count && model->steps[i + 1].process == process->process &&
		       model->steps[i + 1].start_ns <= late->time_ns)
			i++;
		struct model_step *step = &model->steps[i];
		if (late->time_ns >= step->start_ns && (step->is_open || late->time_ns <= step->end_ns))
			recording_add_to_step(step, late->is_tokens, late->count);
	}
}

static void note_removed(struct process *process, int64_t until_ns)
{
	if (!process->has_removed || process->removed_until_ns < until_ns)
		process->removed_until_ns = until_ns;
	process->has_removed = true;
}

void recording_finish_steps(struct recording *recording)
{
	struct model *model = recording->model;
	merge_sort(model->steps, model->steps_count, sizeof *model->steps, compare_step_starts);
	struct recorded_process **by_model = memory_resize(NULL, model->processes_count + 1,
	                                                   sizeof(struct recorded_process *));
	memset(by_model, 0, model->processes_count * sizeof(struct recorded_process *));
	for (uint32_t i = 0; i < recording->process_count; i++) {
		struct recorded_process *process = recording->processes[i];
		merge_sort(process->captures, process->capture_count, sizeof *process->captures,
		           recording_steps_compare_changes);
		by_model[process->process] = process;
		for (uint32_t c = 0; c < process->capture_count; c++)
			if (process->captures[c].mask & STEPSCOPE_ACTIVE_MEMORY)
				model->processes[process->process].records_memory = true;
		if (process->late_count_count)
			add_late_counts(model, process);
	}
	for (uint32_t i = 0; i < model->steps_count; i++)
		if (by_model[model->steps[i].process])
			describe_step(&model->steps[i], by_model[model->steps[i].process]);
	for (uint32_t s = 0; s < recording->session_count; s++) {
		const struct recorded_session *session = recording->sessions[s];
		if (!session->has_removed)
			continue;
		uint32_t process = recording->processes[session->process]->process;
		note_removed(&model->processes[process], session->detail_since_ns);
		for (uint32_t i = 0; i < model->steps_count; i++) {
			struct model_step *step = &model->steps[i];
			if (step->process != process || step->start_ns >= session->detail_since_ns)
				continue;
			step->has_detail = step->has_shapes = step->has_memory = step->has_rare = false;
			step->has_lost_phases = session->infers_phases;
		}
	}
	free(by_model);
}

/* ---- the filter ---- */

struct step_search {
	struct recording *recording;
	bool is_wanted_open; /* a wanted step is open in `stream` */
	bool is_wanted_next; /* the thread's last step was wanted: a wanted step after it continues its window */
	uint32_t stream;
	bool has_any;
	int64_t lowest, highest;           /* step numbers seen */
	uint32_t windows;                  /* highest window number of the profilers in the program */
	struct recorded_process *profiler; /* the process that has the wanted window */
	struct time_window *profiled;      /* indexed by window; a window's end may be found first, in another thread */
};

static void open_window(struct recorded_process *process, int64_t time_ns)
{
	MEMORY_GROW(process->windows, process->window_count, process->window_capacity, 8);
	process->windows[process->window_count++] = (struct time_window){time_ns, INT64_MAX / 2};
}

static void search_step(struct step_search *search, const struct segment_event *event, uint32_t stream, int64_t time_ns)
{
	struct recorded_process *process = search->recording->process;
	const struct model_filter *filter = search->recording->filter;
	int64_t number = event->payload_count ? (int64_t)event->payload[0] : 0;
	bool is_begin = event->id == STEPSCOPE_STEP_BEGIN;
	if (!is_begin && event->id != STEPSCOPE_STEP_END)
		return;
	if (search->is_wanted_open && stream == search->stream &&
	    time_ns >= process->windows[process->window_count - 1].start_ns) {
		process->windows[process->window_count - 1].end_ns = time_ns;
		search->is_wanted_open = false;
		search->is_wanted_next = true;
	}
	if (!is_begin)
		return;
	if (!search->has_any || number < search->lowest)
		search->lowest = number;
	if (!search->has_any || number > search->highest)
		search->highest = number;
	search->has_any = true;
	if (number < filter->first_step || number > filter->last_step) {
		search->is_wanted_next = search->is_wanted_next && stream != search->stream;
		return;
	}
	/* the time between two wanted steps is loaded, too */
	if (search->is_wanted_next && stream == search->stream &&
	    time_ns >= process->windows[process->window_count - 1].start_ns)
		process->windows[process->window_count - 1].end_ns = INT64_MAX / 2;
	else
		open_window(process, time_ns);
	search->is_wanted_open = true;
	search->stream = stream;
}

/* Notes a window of a profiler in the program. */
static void search_window(struct step_search *search, const struct segment_event *event, uint32_t stream,
                          int64_t time_ns)
{
	const struct model_filter *filter = search->recording->filter;
	struct recorded_process *process = search->recording->process;
	struct number_map *own = &search->recording->session->own_windows;
	if (event->payload_count < 2 || (filter->pid && filter->pid != process->header.pid))
		return;
	if (event->payload[0] > search->windows)
		search->windows = event->payload[0] < UINT32_MAX ? (uint32_t)event->payload[0] : UINT32_MAX;
	bool is_loaded = event->payload[0] >= filter->window && event->payload[0] <= filter->last_window;
	if (event->payload[1] && (is_loaded || number_map_find(own, stream) == NUMBER_MAP_NONE))
		number_map_set(own, stream, is_loaded ? 1 : 2);
	if (!is_loaded || (search->profiler && search->profiler != process))
		return;
	search->profiler = process;
	struct time_window *window = &search->profiled[event->payload[0] - filter->window];
	if (event->payload[1])
		window->start_ns = time_ns;
	else
		window->end_ns = time_ns;
}

static struct clock_cursor clock_of(const struct recorded_process *process, const struct stepscope_block *block)
{
	struct clock_cursor clock = {process->lines[0], 0};
	for (uint32_t i = 1; i < process->line_count; i++)
		if (block->first_tick >= process->lines[i]->pieces[0].tick)
			clock.line = process->lines[i];
	return clock;
}

static bool is_coarse(const struct recording *recording)
{
	return recording->file->header.flags & STEPSCOPE_SEGMENT_COARSE;
}

/* If a step was counted, the change belongs to the event before, which ended the step. */
static void recording_steps_note_capture(struct recording *recording, uint32_t stream, int64_t time_ns,
                                         const struct segment_event *event)
{
	bool is_counted = event->payload_count > 2 && !is_coarse(recording);
	struct recorded_process *process = recording->process;
	uint32_t count = process->capture_count;
	recording_note_capture(process, is_counted ? torch_scan_before(recording, stream, time_ns) : time_ns, event);
	if (process->capture_count > count)
		process->captures[count].event_ns = time_ns;
}

/* A thread states its number once, before the loaded steps. */
static void note_thread(struct recording *recording, uint32_t number, const struct segment_event *event)
{
	struct stream *stream = recording_stream(recording, number);
	if (stream && event->id == STEPSCOPE_EXTENDED_TORCH_THREAD && event->payload_count)
		stream->torch_thread = event->payload[0];
}

static bool search_events(void *context, const struct stepscope_block *block, const struct segment_event *events,
                          uint32_t count)
{
	struct step_search *search = context;
	struct recorded_process *process = search->recording->process;
	struct clock_cursor clock = clock_of(process, block);
	for (uint32_t i = 0; i < count; i++) {
		bool is_step = events[i].type == STEPSCOPE_EVENT_STEP;
		if (events[i].type == STEPSCOPE_EVENT_EXTENDED)
			note_thread(search->recording, block->stream, &events[i]);
		bool is_scanned = search->recording->session->torch && !is_coarse(search->recording);
		if (!is_step && !is_scanned)
			continue;
		int64_t time_ns = clock_ns(&clock, events[i].tick);
		bool is_capture = is_step && events[i].id == STEPSCOPE_STEP_CAPTURE;
		if (is_scanned && !is_capture)
			torch_scan_event(search->recording, block->stream, &events[i], time_ns, &clock);
		if (!is_step)
			continue;
		if (is_capture)
			recording_steps_note_capture(search->recording, block->stream, time_ns, &events[i]);
		else if (events[i].id == STEPSCOPE_STEP_WINDOW && search->recording->filter->window)
			search_window(search, &events[i], block->stream, time_ns);
		else if (!search->recording->filter->window)
			search_step(search, &events[i], block->stream, time_ns);
	}
	return true;
}

static bool search_symbol(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	struct step_search *search = context;
	torch_scan_symbol(search->recording, id, kind, text, length);
	return true;
}

/* Searches inferred steps like marked ones. */
static void search_inferred(struct step_search *search, const struct stream *stream)
{
	search->is_wanted_open = search->is_wanted_next = false;
	for (uint32_t i = 0; i < stream->inferred_count; i++) {
		const struct inferred *step = &stream->inferred[i];
		uint64_t number = (uint64_t)step->number;
		struct segment_event event = {.type = STEPSCOPE_EVENT_STEP, .payload_count = 1, .payload = &number};
		if (step->what != INFERRED_STEP)
			continue;
		event.id = STEPSCOPE_STEP_BEGIN;
		search_step(search, &event, stream->number, step->start_ns);
		event.id = STEPSCOPE_STEP_END;
		if (step->end_ns != INFERRED_IS_OPEN)
			search_step(search, &event, stream->number, step->end_ns);
	}
}

/* Keeps only steps and phases inside a window. Windows and steps are in order and do not overlap, except phases with
 * their steps. */
static void keep_inferred(const struct recorded_process *process, struct stream *stream)
{
	uint32_t kept = 0, window = 0;
	for (uint32_t i = 0; i < stream->inferred_count; i++) {
		const struct inferred *inferred = &stream->inferred[i];
		while (window < process->window_count && process->windows[window].end_ns <= inferred->start_ns)
			window++;
		if (window == process->window_count)
			break;
		bool is_open = inferred->end_ns == INFERRED_IS_OPEN;
		if (inferred->start_ns >= process->windows[window].start_ns &&
		    (is_open || inferred->end_ns <= process->windows[window].end_ns))
			stream->inferred[kept++] = *inferred;
	}
	stream->inferred_count = kept;
}

/* Visits the inferred steps of all sessions: searches them, or keeps those in windows. */
static void visit_inferred(struct step_search *search, bool is_search)
{
	struct recording *recording = search->recording;
	for (uint32_t s = 0; s < recording->session_count; s++) {
		struct recorded_session *session = recording->sessions[s];
		recording->process = recording->processes[session->process];
		for (uint32_t i = 0; i < session->stream_count; i++) {
			if (session->streams[i]->inferred_count && is_search)
				search_inferred(search, session->streams[i]);
			else if (session->streams[i]->inferred_count)
				keep_inferred(recording->process, session->streams[i]);
		}
	}
}

static bool search_meta(void *context, const char *key, const char *value)
{
	struct step_search *search = context;
	return recording_on_meta(search->recording, key, value);
}

static int compare_time_windows(const void *left, const void *right)
{
	const struct time_window *a = left, *b = right;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Sorts the windows and merges overlapping ones. */
static void join_windows(struct recorded_process *process)
{
	merge_sort(process->windows, process->window_count, sizeof *process->windows, compare_time_windows);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < process->window_count; i++) {
		struct time_window window = process->windows[i];
		if (kept && window.start_ns <= process->windows[kept - 1].end_ns) {
			if (window.end_ns > process->windows[kept - 1].end_ns)
				process->windows[kept - 1].end_ns = window.end_ns;
		} else {
			process->windows[kept++] = window;
		}
	}
	process->window_count = kept;
}

/* Extends the windows to all the time before them. */
static void add_past(struct recorded_process *process)
{
	if (!process->window_count)
		return;
	process->windows[0] = (struct time_window){INT64_MIN, process->windows[process->window_count - 1].end_ns};
	process->window_count = 1;
}

/* Processes without steps (workers, the host) are loaded where any other process has a wanted step. */
static void share_windows(struct recording *recording)
{
	struct recorded_process all = {0};
	for (uint32_t i = 0; i < recording->process_count; i++) {
		const struct recorded_process *process = recording->processes[i];
		for (uint32_t w = 0; w < process->window_count; w++) {
			open_window(&all, process->windows[w].start_ns);
			all.windows[all.window_count - 1] = process->windows[w];
		}
	}
	join_windows(&all);
	for (uint32_t i = 0; i < recording->process_count; i++) {
		struct recorded_process *process = recording->processes[i];
		if (process->window_count || process->header.role == STEPSCOPE_ROLE_TRAINER)
			continue;
		process->windows = memory_resize(NULL, all.window_count + 1, sizeof *process->windows);
		memcpy(process->windows, all.windows, all.window_count * sizeof *process->windows);
		process->window_count = all.window_count;
	}
	free(all.windows);
}

/* The coarse copy, if any, has all changes. Counted ones are known better from the files with operators. */
static bool tells_captures(const struct recording *recording)
{
	return is_coarse(recording) == recording->session->has_coarse || recording->session->torch;
}

static bool capture_wants(void *context, const struct stepscope_block *block)
{
	const struct recording *recording = context;
	return tells_captures(recording) || recording->session->torch;
}

static bool capture_events(void *context, const struct stepscope_block *block, const struct segment_event *events,
                           uint32_t count)
{
	struct recording *recording = context;
	struct recorded_process *process = recording->process;
	struct clock_cursor clock = clock_of(process, block);
	bool has_captures = tells_captures(recording);
	for (uint32_t i = 0; i < count; i++) {
		bool is_capture = events[i].type == STEPSCOPE_EVENT_STEP && events[i].id == STEPSCOPE_STEP_CAPTURE;
		if (is_capture && has_captures)
			recording_steps_note_capture(recording, block->stream, clock_ns(&clock, events[i].tick),
			                             &events[i]);
		else if (recording->session->torch && !is_coarse(recording))
			torch_scan_event(recording, block->stream, &events[i], clock_ns(&clock, events[i].tick),
			                 &clock);
	}
	return true;
}

static bool capture_symbol(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	torch_scan_symbol(context, id, kind, text, length);
	return true;
}

static void visit_file(struct recording *recording, const struct segment_visitor *visitor, struct recorded_file *file)
{
	struct segment_stats stats = file->stats; /* keeps those of the first pass */
	struct error ignored;
	recording->file = file;
	recording->session = recording->sessions[file->session];
	recording->process = recording->processes[recording->session->process];
	if (recording_read(file, visitor, &ignored) == STATUS_OK)
		file->stats = stats;
}

static int compare_change_events(const void *left, const void *right)
{
	const struct capture_change *a = left, *b = right;
	if (a->event_ns != b->event_ns)
		return a->event_ns < b->event_ns ? -1 : 1;
	return recording_steps_compare_changes(left, right);
}

/* The coarse copy and the segment may contain the same change; the segment knows the event before it. */
static void sort_captures(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->process_count; i++) {
		struct recorded_process *process = recording->processes[i];
		uint32_t kept = 0;
		merge_sort(process->captures, process->capture_count, sizeof *process->captures, compare_change_events);
		for (uint32_t c = 0; c < process->capture_count; c++) {
			const struct capture_change *change = &process->captures[c];
			const struct capture_change *last = kept ? &process->captures[kept - 1] : NULL;
			if (!last || last->event_ns != change->event_ns || last->mask != change->mask)
				process->captures[kept++] = *change;
		}
		process->capture_count = kept;
		merge_sort(process->captures, kept, sizeof *process->captures, recording_steps_compare_changes);
	}
}

/* Finds, before the first thread is read, when operations were recorded, since one thread notes it for all. Also scans
 * the operators of programs that mark no steps. */
void recording_find_captures(struct recording *recording)
{
	const struct segment_visitor visitor = {.context = recording,
	                                        .symbol = capture_symbol,
	                                        .wants_events = capture_wants,
	                                        .events = capture_events};
	for (uint32_t i = 0; i < recording->file_count; i++) {
		struct recorded_file *file = &recording->files[i];
		if (file->is_usable)
			visit_file(recording, &visitor, file);
	}
	sort_captures(recording);
	torch_scan_finish(recording);
}

enum status recording_find_windows(struct recording *recording, struct error *err)
{
	struct step_search search = {.recording = recording};
	const struct segment_visitor visitor = {
		.context = &search, .symbol = search_symbol, .events = search_events, .meta = search_meta};
	uint32_t previous = UINT32_MAX, found = 0;
	for (uint32_t i = 0; i < recording->file_count; i++) {
		struct recorded_file *file = &recording->files[i];
		if (!file->is_usable)
			continue;
		if (file->session != previous)
			search.is_wanted_open = search.is_wanted_next = false;
		previous = file->session;
		visit_file(recording, &visitor, file);
	}
	sort_captures(recording);
	torch_scan_finish(recording);
	visit_inferred(&search, true);
	for (uint32_t i = 0; i < recording->process_count; i++) {
		join_windows(recording->processes[i]);
		if (recording->filter->with_past)
			add_past(recording->processes[i]);
		found += recording->processes[i]->window_count;
	}
	if (!search.has_any)
		return error_set(err, STATUS_INPUT, "the recording has no steps to choose from");
	if (!found)
		return error_no_step(err, "recording", recording->filter, search.lowest, search.highest);
	share_windows(recording);
	visit_inferred(&search, false);
	recording->has_windows = true;
	return STATUS_OK;
}

/* If the start of a window was removed, the window starts with the remaining data. */
static void open_profiled(struct step_search *search, uint32_t count)
{
	for (uint32_t i = 0; search->profiler && i < count; i++) {
		const struct time_window *window = &search->profiled[i];
		if (window->start_ns == INT64_MIN && window->end_ns == INT64_MAX / 2)
			continue;
		open_window(search->profiler, window->start_ns);
		search->profiler->windows[search->profiler->window_count - 1].end_ns = window->end_ns;
	}
}

enum status recording_find_profiled(struct recording *recording, struct error *err)
{
	struct step_search search = {.recording = recording};
	const struct segment_visitor visitor = {
		.context = &search, .symbol = search_symbol, .events = search_events, .meta = search_meta};
	uint32_t count = recording->filter->last_window - recording->filter->window + 1;
	search.profiled = memory_resize(NULL, count, sizeof *search.profiled);
	for (uint32_t i = 0; i < count; i++)
		search.profiled[i] = (struct time_window){INT64_MIN, INT64_MAX / 2};
	for (uint32_t i = 0; i < recording->file_count; i++) {
		if (recording->files[i].is_usable)
			visit_file(recording, &visitor, &recording->files[i]);
	}
	open_profiled(&search, count);
	free(search.profiled);
	if (!search.windows)
		return error_set(err, STATUS_INPUT, "no profiler in the program recorded a window%s",
		                 recording->filter->pid ? " in that process" : "");
	if (!search.profiler)
		return error_set(
			err, STATUS_INPUT, "the recording has no window %" PRIu32 "%s; its last one is %" PRIu32,
			recording->filter->window, recording->filter->pid ? " of that process" : "", search.windows);
	torch_scan_finish(recording);
	visit_inferred(&search, false);
	sort_captures(recording);
	recording->has_windows = true;
	return STATUS_OK;
}
