/* SPDX-License-Identifier: Apache-2.0
 *
 * leave_out.c: see leave_out.h. First, processes and tracks get their new numbers. Then each array keeps the elements
 * of those that stay.
 */
#include "model/leave_out.h"

#include "base/memory.h"
#include "model/model_index.h"
#include "model/pieces.h"

#include <stdlib.h>

struct leaving {
	struct model *model;
	uint32_t *processes, *tracks; /* new numbers, or GONE */
};

#define GONE (MODEL_NONE - 1)

/* MODEL_NONE stays MODEL_NONE. */
static bool renumber(uint32_t *number, const uint32_t *numbers)
{
	if (*number == MODEL_NONE)
		return true;
	*number = numbers[*number];
	return *number != GONE;
}

static void leave_processes(struct leaving *leaving, const bool *is_left_out)
{
	struct model *model = leaving->model;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < model->processes_count; i++) {
		leaving->processes[i] = is_left_out[i] ? GONE : kept;
		if (!is_left_out[i])
			model->processes[kept++] = model->processes[i];
	}
	model->processes_count = kept;
}

static void leave_tracks(struct leaving *leaving)
{
	struct model *model = leaving->model;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		bool is_kept = renumber(&model->tracks[i]->process, leaving->processes);
		leaving->tracks[i] = is_kept ? kept : GONE;
		if (is_kept)
			model->tracks[kept++] = model->tracks[i];
		else
			model_release_track(model, i);
	}
	model->tracks_count = kept;
}

static void leave_series(struct leaving *leaving)
{
	struct model *model = leaving->model;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < model->series_count; i++) {
		if (renumber(&model->series[i]->process, leaving->processes))
			model->series[kept++] = model->series[i];
		else
			model_release_series(model, i);
	}
	model->series_count = kept;
}

/* Keeps the elements of an array for which `is_kept` is true. `is_kept` is an expression that renumbers *element. */
#define LEAVE(array, is_kept)                                                                                          \
	do {                                                                                                           \
		uint32_t kept_ = 0;                                                                                    \
		for (uint32_t i_ = 0; i_ < model->array##_count; i_++) {                                               \
			__typeof__(model->array) element = &model->array[i_];                                          \
			if (is_kept)                                                                                   \
				model->array[kept_++] = *element;                                                      \
		}                                                                                                      \
		model->array##_count = kept_;                                                                          \
	} while (0)

static void leave_rest(struct leaving *leaving)
{
	struct model *model = leaving->model;
	const uint32_t *processes = leaving->processes, *tracks = leaving->tracks;
	LEAVE(steps, renumber(&element->process, processes) && renumber(&element->track, tracks));
	LEAVE(memory, renumber(&element->process, processes) && renumber(&element->track, tracks));
	LEAVE(owners, renumber(&element->process, processes) && renumber(&element->track, tracks));
	LEAVE(segments, renumber(&element->process, processes));
	LEAVE(readings, renumber(&element->track, tracks));
	LEAVE(marks, renumber(&element->track, tracks));
	LEAVE(args, renumber(&element->track, tracks));
	LEAVE(links, renumber(&element->from_track, tracks) && renumber(&element->to_track, tracks));
	LEAVE(samples, renumber(&element->track, tracks));
	LEAVE(meta, renumber(&element->process, processes));
	LEAVE(ledger, renumber(&element->process, processes));
}

void model_leave_out(struct model *model, const bool *is_left_out)
{
	struct leaving leaving = {model, memory_resize(NULL, (size_t)model->processes_count + 1, sizeof(uint32_t)),
	                          memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof(uint32_t))};
	leave_processes(&leaving, is_left_out);
	leave_tracks(&leaving);
	leave_series(&leaving);
	leave_rest(&leaving);
	model_index_again(model);
	free(leaving.processes);
	free(leaving.tracks);
}
