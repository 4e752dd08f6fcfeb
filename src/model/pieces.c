/* SPDX-License-Identifier: Apache-2.0
 *
 * pieces.c: see pieces.h. First, all references to processes, tracks and stacks get their new numbers. Then each array
 * is copied piece by piece.
 */
#include "model/pieces.h"

#include "base/memory.h"
#include "model/model_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct model_place model_place_here(const struct model *model)
{
	return (struct model_place){
#define X(name) .name = model->name##_count,
		MODEL_PIECE_ARRAYS(X)
#undef X
	};
}

/* ---- new numbers ---- */

struct pieces_shift { /* added to the numbers of a piece; unsigned, so that it can also decrease them */
	uint32_t process, track, stack;
};

static void move(uint32_t *number, uint32_t by, uint32_t none)
{
	if (*number != none)
		*number += by;
}

static void move_track(struct track *track, const struct pieces_shift *by)
{
	track->process += by->process;
	for (uint32_t c = 0; c < track->chunk_count && by->stack; c++) {
		struct span_chunk *chunk = track->chunks[c];
		for (uint32_t i = 0; i < chunk->count && chunk->stack; i++)
			move(&chunk->stack[i], by->stack, 0);
	}
}

static void move_memory(struct model *model, const struct model_place *from, const struct model_place *to,
                        const struct pieces_shift *by)
{
	for (uint32_t i = from->memory; i < to->memory; i++) {
		model->memory[i].process += by->process;
		move(&model->memory[i].track, by->track, MODEL_NONE);
		move(&model->memory[i].stack, by->stack, 0);
	}
	for (uint32_t i = from->owners; i < to->owners; i++) {
		model->owners[i].process += by->process;
		move(&model->owners[i].track, by->track, MODEL_NONE);
	}
	for (uint32_t i = from->segments; i < to->segments; i++) {
		model->segments[i].process += by->process;
		move(&model->segments[i].stack, by->stack, 0);
	}
}

static void move_spans(struct model *model, const struct model_place *from, const struct model_place *to,
                       const struct pieces_shift *by)
{
	for (uint32_t i = from->tracks; i < to->tracks; i++)
		move_track(model->tracks[i], by);
	for (uint32_t i = from->steps; i < to->steps; i++) {
		model->steps[i].process += by->process;
		move(&model->steps[i].track, by->track, MODEL_NONE);
	}
	for (uint32_t i = from->readings; i < to->readings; i++)
		model->readings[i].track += by->track;
	for (uint32_t i = from->marks; i < to->marks; i++)
		model->marks[i].track += by->track;
	for (uint32_t i = from->args; i < to->args; i++)
		model->args[i].track += by->track;
	for (uint32_t i = from->links; i < to->links; i++) {
		move(&model->links[i].from_track, by->track, MODEL_NONE);
		move(&model->links[i].to_track, by->track, MODEL_NONE);
	}
}

static void move_rest(struct model *model, const struct model_place *from, const struct model_place *to,
                      const struct pieces_shift *by)
{
	for (uint32_t i = from->series; i < to->series; i++)
		move(&model->series[i]->process, by->process, MODEL_NONE);
	for (uint32_t i = from->stacks; i < to->stacks; i++)
		move(&model->stacks[i].parent, by->stack, 0);
	for (uint32_t i = from->samples; i < to->samples; i++) {
		move(&model->samples[i].track, by->track, MODEL_NONE);
		move(&model->samples[i].stack, by->stack, 0);
	}
	for (uint32_t i = from->meta; i < to->meta; i++)
		move(&model->meta[i].process, by->process, MODEL_NONE);
	for (uint32_t i = from->ledger; i < to->ledger; i++)
		move(&model->ledger[i].process, by->process, MODEL_NONE);
}

/* ---- new places ---- */

/* Returns the new start of each piece, by its old number. */
static struct model_place *find_places(const struct model_place *places, uint32_t count, const uint32_t *order)
{
	struct model_place *found = memory_resize(NULL, (size_t)count + 1, sizeof *found), next = places[0];
	for (uint32_t k = 0; k < count; k++) {
		assert(order[k] < count);
		const struct model_place *from = &places[order[k]], *to = from + 1;
		found[order[k]] = next;
#define X(name) next.name += to->name - from->name;
		MODEL_PIECE_ARRAYS(X)
#undef X
	}
	return found;
}

#define COPY_ARRAY(array)                                                                                              \
	do {                                                                                                           \
		size_t bytes_ = sizeof *model->array;                                                                  \
		char *copy_ = storage_resize(model->storage, NULL, (size_t)model->array##_count + 1, bytes_);          \
		if (places[0].array)                                                                                   \
			memcpy(copy_, model->array, places[0].array *bytes_);                                          \
		for (uint32_t i = 0; i < count; i++)                                                                   \
			if (places[i + 1].array > places[i].array)                                                     \
				memcpy(copy_ + found[i].array * bytes_, model->array + places[i].array,                \
				       (places[i + 1].array - places[i].array) * bytes_);                              \
		storage_release(model->storage, model->array);                                                         \
		model->array = (void *)copy_;                                                                          \
		model->array##_capacity = model->array##_count + 1;                                                    \
	} while (0)

static void copy_arrays(struct model *model, const struct model_place *places, uint32_t count,
                        const struct model_place *found)
{
#define X(name) COPY_ARRAY(name);
	MODEL_PIECE_ARRAYS(X)
#undef X
}

void model_index_again(struct model *model)
{
	struct model_index *index = model->index;
	number_map_release(&index->series);
	number_map_release(&index->meta);
	index->last_series = NUMBER_MAP_NONE;
	for (uint32_t i = 0; i < model->series_count; i++)
		if (!model->series[i]->subject)
			number_map_set(&index->series, model_series_key(model->series[i]), i);
	for (uint32_t i = 0; i < model->meta_count; i++)
		number_map_set(&index->meta, model_meta_key(model->meta[i].process, model->meta[i].key), i);
}

void model_forget(struct model *model, const struct model_place *since)
{
	for (uint32_t i = since->tracks; i < model->tracks_count; i++)
		model_release_track(model, i);
	for (uint32_t i = since->series; i < model->series_count; i++)
		model_release_series(model, i);
#define X(name) model->name##_count = since->name;
	MODEL_PIECE_ARRAYS(X)
#undef X
	model_index_again(model);
}

void model_reorder(struct model *model, struct model_place *places, uint32_t count, const uint32_t *order)
{
	struct model_place *found = find_places(places, count, order);
	for (uint32_t i = 0; i < count; i++) {
		const struct model_place *from = &places[i], *to = from + 1;
		const struct pieces_shift by = {found[i].processes - from->processes, found[i].tracks - from->tracks,
		                                found[i].stacks - from->stacks};
		move_spans(model, from, to, &by);
		move_memory(model, from, to, &by);
		move_rest(model, from, to, &by);
	}
	copy_arrays(model, places, count, found);
	model_index_again(model);
	for (uint32_t k = 0; k < count; k++)
		places[k] = found[order[k]];
	free(found);
}
