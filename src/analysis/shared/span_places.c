/* SPDX-License-Identifier: Apache-2.0
 *
 * span_places.c: see the header.
 */
#include "analysis/shared/span_places.h"

#include "analysis/shared/python_places.h"
#include "base/hash.h"
#include "base/memory.h"
#include "table/table.h"

#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>

static void find_links(struct span_places *places)
{
	const struct model *model = places->model;

	places->has_links = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof(*places->has_links));
	memset(places->has_links, 0, ((size_t)model->tracks_count + 1) * sizeof(*places->has_links));
	for (uint32_t i = 0; i < model->links_count; i++) {
		const struct model_link *link = &model->links[i];

		if (link->kind != STEPSCOPE_LINK_BACKWARD || link->from_row == MODEL_NONE || link->to_row == MODEL_NONE)
			continue;
		number_map_set(&places->links, (uint64_t)link->to_track << 32 | link->to_row, i);
		places->has_links[link->to_track] = true;
	}
}

typedef uint32_t (*use_span)(const struct span_chunk *chunk, uint32_t index); /* 0: continue outwards */

static uint32_t search_outwards(const struct model *model, uint32_t track, uint32_t row, use_span use)
{
	uint32_t place = 0;

	while (!place && track < model->tracks_count && row < model->tracks[track]->span_count) {
		uint32_t index;
		const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &index);

		place = use(chunk, index);
		row = chunk->parent[index];
	}
	return place;
}

/* Returns the link from the forward to the innermost backward node around the span. NULL: there is none, or a span for
 * which `nearer` returns nonzero is nested deeper. */
static const struct model_link *forward_of(const struct span_places *places, uint32_t track, uint32_t row,
                                           use_span nearer)
{
	const struct model *model = places->model;

	while (track < model->tracks_count && places->has_links[track] && row < model->tracks[track]->span_count) {
		uint32_t index, link = number_map_find(&places->links, (uint64_t)track << 32 | row);
		const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &index);

		if (link != NUMBER_MAP_NONE)
			return &model->links[link];
		if (nearer && nearer(chunk, index))
			return NULL;
		row = chunk->parent[index];
	}
	return NULL;
}

static uint32_t search_around(const struct span_places *places, uint32_t track, uint32_t row, use_span use,
                              use_span nearer)
{
	const struct model_link *forward = forward_of(places, track, row, nearer);
	uint32_t place = forward ? search_outwards(places->model, forward->from_track, forward->from_row, use) : 0;

	return place ? place : search_outwards(places->model, track, row, use);
}

static uint32_t use_module(const struct span_chunk *chunk, uint32_t index)
{
	return chunk->kind[index] == SPAN_MODULE ? chunk->name[index] : 0;
}

uint32_t span_module_of(const struct span_places *places, uint32_t track, uint32_t row)
{
	return search_around(places, track, row, use_module, use_module);
}

uint32_t span_stack_of(const struct span_places *places, uint32_t track, uint32_t row)
{
	return search_outwards(places->model, track, row, span_stack);
}

uint32_t span_line_of_stack(struct span_places *places, uint32_t stack)
{
	if (stack >= places->model->stacks_count)
		return 0;
	if (!places->user_frames)
		places->user_frames = python_user_frames(places->model);
	uint32_t frame = places->user_frames[stack];
	const struct stack_node *node = &places->model->stacks[frame];
	/* one line has several entries, one for each caller */
	uint64_t key = hash_two((uint64_t)node->frame << 32 | node->line, node->file);

	return frame ? number_map_add(&places->lines, key, frame) : 0;
}

uint32_t span_line_of(struct span_places *places, uint32_t track, uint32_t row)
{
	/* in a backward every operator has the stack of the call that started it, so such a stack does not count as
	 * nearer */
	return places->model->stacks_count
	               ? span_line_of_stack(places, search_around(places, track, row, span_stack, NULL))
	               : 0;
}

const char *span_line_text(struct span_places *places, uint32_t line, struct arena *arena)
{
	buffer_clear(&places->text);
	python_frame_text(places->model, &places->model->stacks[line], python_folder(places->model), &places->text);
	return arena_dup_n(arena, places->text.data, places->text.length);
}

void span_places_set(struct span_places *places, struct table *table, int row, int module_column, uint32_t module,
                     int line_column, uint32_t line)
{
	table_set_text_or(table, row, module_column, module ? model_text(places->model, module) : NULL,
	                  "it is outside every module");
	table_set_text_or(table, row, line_column, line ? span_line_text(places, line, &table->arena) : NULL,
	                  "no Python line was recorded for it");
}

void span_places_init(struct span_places *places, const struct model *model)
{
	*places = (struct span_places){.model = model};
	buffer_init(&places->text, 65536);
	find_links(places);
}

void span_places_release(struct span_places *places)
{
	free(places->user_frames);
	free(places->has_links);
	number_map_release(&places->links);
	number_map_release(&places->lines);
	buffer_release(&places->text);
}

/* Returns the last row of the track that starts at the instant or before; MODEL_NONE: there is none. */
static uint32_t last_begun(const struct track *track, int64_t time_ns)
{
	uint32_t low = 0, high = track->span_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2, i;
		const struct span_chunk *chunk = track_chunk(track, middle, &i);

		if (chunk->start_ns[i] <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : MODEL_NONE;
}

uint32_t span_open_at(const struct model *model, uint32_t track, int64_t time_ns)
{
	uint32_t row = last_begun(model->tracks[track], time_ns);

	while (row != MODEL_NONE) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &i);

		if (chunk->start_ns[i] + chunk->dur_ns[i] > time_ns)
			break;
		row = chunk->parent[i];
	}
	return row;
}
