/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot_notes.c: the program's annotations, if the snapshot has them (external_annotations: record_function(),
 * ProfilerStep#N, Optimizer.step). Starts and ends are by device, with all threads in one list, so an end belongs to
 * the newest start of its name.
 */
#include "base/memory.h"
#include "base/merge_sort.h"
#include "importers/snapshot/snapshot.h"

#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>

static bool read_note(struct snapshot *snapshot, const struct pickle_value *value, struct snapshot_note *note,
                      bool *is_end)
{
	const struct pickle *pickle = &snapshot->pickle;
	const struct pickle_object *row = pickle_object(pickle, value, PICKLE_DICTIONARY);
	const struct pickle_value *time = pickle_find(pickle, row, "time_us"),
				  *device = pickle_find(pickle, row, "device");
	const struct pickle_value *name = pickle_find(pickle, row, "name");
	const char *stage = pickle_text(pickle, pickle_find(pickle, row, "stage"));
	if (!pickle_text(pickle, name) || !stage || !time || time->type != PICKLE_INT || time->i64 < 0 ||
	    time->i64 > INT64_MAX / 4000 ||
	    (device && (device->type != PICKLE_INT || device->i64 < 0 || device->i64 >= SNAPSHOT_DEVICES)))
		return false;
	*is_end = strcmp(stage, "END") == 0;
	*note = (struct snapshot_note){.time_ns = 1000 * time->i64,
	                               .dur_ns = -1,
	                               .name = snapshot_string(snapshot, name),
	                               .device = device ? (uint32_t)device->i64 : 0};
	return *is_end || strcmp(stage, "START") == 0;
}

/* Open annotations by name and device: the newest start; older ones follow through `older`. */
struct open_notes {
	struct number_map newest;
	uint32_t *older;
};

static uint64_t snapshot_notes_key_of(const struct snapshot_note *note)
{
	return (uint64_t)note->device << 32 | note->name;
}

static bool end_note(struct open_notes *open, struct snapshot_notes *notes, const struct snapshot_note *end)
{
	uint32_t newest = number_map_find(&open->newest, snapshot_notes_key_of(end));
	if (newest == NUMBER_MAP_NONE || end->time_ns < notes->list[newest].time_ns)
		return false;
	notes->list[newest].dur_ns = end->time_ns - notes->list[newest].time_ns;
	if (open->older[newest] == NUMBER_MAP_NONE)
		number_map_remove(&open->newest, snapshot_notes_key_of(end));
	else
		number_map_set(&open->newest, snapshot_notes_key_of(end), open->older[newest]);
	return true;
}

static void snapshot_notes_widen(struct snapshot *snapshot, int64_t time_ns)
{
	snapshot->first_ns = snapshot->has_times && snapshot->first_ns < time_ns ? snapshot->first_ns : time_ns;
	snapshot->last_ns = snapshot->has_times && snapshot->last_ns > time_ns ? snapshot->last_ns : time_ns;
	snapshot->has_times = true;
}

/* Orders by device, then start, longer ones first; one without an end counts as the longest. */
static int compare_notes(const void *left, const void *right)
{
	const struct snapshot_note *a = left, *b = right;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return ((uint64_t)a->dur_ns < (uint64_t)b->dur_ns) - ((uint64_t)a->dur_ns > (uint64_t)b->dur_ns);
}

void snapshot_read_notes(struct snapshot *snapshot, const struct pickle_object *list, struct snapshot_notes *notes)
{
	struct open_notes open = {0};
	uint32_t count = list ? list->count : 0;
	notes->list = memory_resize(NULL, (size_t)count + 1, sizeof *notes->list);
	open.older = memory_resize(NULL, (size_t)count + 1, sizeof *open.older);
	for (uint32_t i = 0; i < count; i++) {
		struct snapshot_note note;
		bool is_end;
		if (!read_note(snapshot, &list->items[i], &note, &is_end) ||
		    (is_end && !end_note(&open, notes, &note))) {
			snapshot_repair(snapshot, SNAPSHOT_NOTES, 1);
			continue;
		}
		snapshot_notes_widen(snapshot, note.time_ns);
		if (is_end)
			continue;
		open.older[notes->count] = number_map_find(&open.newest, snapshot_notes_key_of(&note));
		number_map_set(&open.newest, snapshot_notes_key_of(&note), notes->count);
		notes->list[notes->count++] = note;
	}
	number_map_release(&open.newest);
	free(open.older);
	merge_sort(notes->list, notes->count, sizeof *notes->list, compare_notes);
}

static void snapshot_notes_add_step(struct snapshot *snapshot, const struct snapshot_note *note, bool is_open)
{
	struct model *model = snapshot->model;
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(model->tracks[note->track], note->row, &index);
	struct model_step *step = model_add_step(model);
	step->process = snapshot->process;
	step->track = note->track;
	step->row = note->row;
	step->number = strtoll(model_text(model, note->name) + strlen("ProfilerStep#"), NULL, 10);
	step->start_ns = chunk->start_ns[index];
	step->end_ns = chunk->start_ns[index] + chunk->dur_ns[index];
	step->is_open = is_open;
	step->capture = STEPSCOPE_CAPTURE_RECORD;
	step->has_memory = true;
}

void snapshot_deliver_notes(struct snapshot *snapshot, struct snapshot_notes *notes)
{
	struct model *model = snapshot->model;
	uint32_t step_device = SNAPSHOT_DEVICES; /* every device has the same steps: those of the first one are used */
	for (uint32_t i = 0; i < notes->count; i++) {
		struct snapshot_note *note = &notes->list[i];
		bool is_open = note->dur_ns < 0;
		bool is_step = strncmp(model_text(model, note->name), "ProfilerStep#", 13) == 0 &&
		               (step_device == SNAPSHOT_DEVICES || step_device == note->device);
		note->dur_ns = is_open ? snapshot->last_ns - note->time_ns : note->dur_ns;
		note->track = snapshot_track(snapshot, note->device);
		note->row = model_span_complete(model, note->track, note->time_ns, note->dur_ns,
		                                is_step ? SPAN_STEP : SPAN_ANNOTATION, note->name);
		if (note->row == MODEL_NONE)
			continue;
		if (is_open) {
			uint32_t index;
			track_chunk(model->tracks[note->track], note->row, &index)->flags[index] |= SPAN_IS_OPEN;
		}
		if (is_step) {
			step_device = note->device;
			snapshot_notes_add_step(snapshot, note, is_open);
		}
	}
}
