/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_steps.c: steps of the profiler's schedule, ProfilerStep#N, and those that were inferred, as steps of the model.
 */
#include "importers/kineto_import.h"

#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>

/* *next: the number of the next one that has none. */
static void add_step(struct kineto_import *import, uint32_t number, uint32_t row, int64_t *next)
{
	struct model *model = import->model;
	const struct track *track = model->tracks[number];
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(track, row, &i);
	const char *name = model_text(model, chunk->name[i]);
	struct model_step *step = model_add_step(model);
	step->process = track->process;
	step->track = number;
	step->row = row;
	step->is_inferred = chunk->flags[i] & SPAN_IS_INFERRED;
	step->number = strncmp(name, "ProfilerStep#", 13) == 0 ? strtoll(name + 13, NULL, 10) : (*next)++;
	step->start_ns = chunk->start_ns[i];
	step->end_ns = chunk->start_ns[i] + chunk->dur_ns[i];
	step->is_open = chunk->flags[i] & (SPAN_IS_OPEN | SPAN_END_IS_LOST);
	step->capture = STEPSCOPE_CAPTURE_RECORD;
	step->has_detail = true;
	step->has_shapes = import->has_shapes;
	step->has_memory = import->has_memory;
}

void kineto_add_steps(struct kineto_import *import, uint32_t first_track)
{
	const struct model *model = import->model;
	for (uint32_t t = first_track; t < model->tracks_count; t++) {
		const struct track *track = model->tracks[t];
		int64_t next = 0;
		for (uint32_t c = 0; c < track->chunk_count; c++) {
			const struct span_chunk *chunk = track->chunks[c];
			for (uint32_t i = 0; i < chunk->count; i++)
				if (chunk->kind[i] == SPAN_STEP)
					add_step(import, t, chunk->first_row + i, &next);
			model_chunk_done(model, chunk);
		}
	}
}
