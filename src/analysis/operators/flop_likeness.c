/* SPDX-License-Identifier: Apache-2.0
 *
 * flop_likeness.c: see the header. Two passes: the first counts the calls of each operator with a formula in each
 * step. The second collects the inputs of the steps that have them, by these numbers of calls.
 */
#include "analysis/operators/flop_likeness.h"

#include "analysis/operators/flops.h"
#include "base/memory.h"
#include "base/storage.h"

#include <stdlib.h>
#include <string.h>

struct flop_calls { /* of an operator on a thread in a step */
	uint32_t calls;
	uint32_t like; /* index of likes; NUMBER_MAP_NONE: no step with inputs has the same number of calls */
};

struct flop_like { /* an operator on a thread with N calls in a step */
	size_t first_input;
	uint32_t steps, first_step; /* with inputs: their number, and the first one */
	bool differs;
};

struct flop_likeness_pass {
	struct flop_likeness *likeness;
	struct flops flops;
	uint32_t *places; /* by index of counts; NULL: the pass counts calls */
};

static bool has_operators(const struct model *model, int32_t step)
{
	return step >= 0 && (uint32_t)step < model->steps_count && model->steps[step].has_detail &&
	       !model->steps[step].is_open;
}

bool flop_likeness_lacks(const struct flop_likeness *likeness, int32_t step)
{
	return likeness && likeness->is_mixed && has_operators(likeness->model, step) &&
	       !likeness->model->steps[step].has_shapes;
}

bool flop_likeness_varies(const struct flop_likeness *likeness)
{
	for (uint32_t i = 0; i < likeness->like_count; i++)
		if (likeness->likes[i].differs)
			return true;
	return false;
}

static bool is_mixed(const struct model *model)
{
	uint32_t with = 0, without = 0;

	for (uint32_t i = 0; i < model->steps_count; i++) {
		if (!has_operators(model, (int32_t)i))
			continue;
		with += model->steps[i].has_shapes;
		without += !model->steps[i].has_shapes;
	}
	return with && without;
}

/* ---- calls in steps ---- */

static bool has_formula(struct flop_likeness_pass *pass, uint32_t name)
{
	double count;

	for (int definition = 0; definition < FLOPS_DEFINITIONS; definition++)
		if (!flops_has_none(&pass->flops, definition, name) &&
		    flops_of(&pass->flops, definition, name, 0, &count) != FLOPS_NO_FORMULA)
			return true;
	return false;
}

static uint32_t add_calls(struct flop_likeness *likeness, uint32_t track, uint32_t name, int32_t step)
{
	uint32_t number = number_map_add(&likeness->operators, (uint64_t)track << 32 | name, likeness->operator_count);

	likeness->operator_count += number == likeness->operator_count;
	uint32_t found = number_map_add(&likeness->in_steps, (uint64_t)number << 32 | (uint32_t)step,
	                                likeness->count_count);
	if (found == likeness->count_count) {
		STORAGE_GROW(likeness->model->storage, likeness->counts, likeness->count_count,
		             likeness->count_capacity, 64);
		likeness->counts[likeness->count_count++] = (struct flop_calls){.like = NUMBER_MAP_NONE};
	}
	return found;
}

static uint32_t flop_likeness_find_calls(const struct flop_likeness *likeness, uint32_t track, uint32_t name,
                                         int32_t step, uint32_t *number)
{
	*number = number_map_find(&likeness->operators, (uint64_t)track << 32 | name);
	return *number == NUMBER_MAP_NONE
	               ? NUMBER_MAP_NONE
	               : number_map_find(&likeness->in_steps, (uint64_t)*number << 32 | (uint32_t)step);
}

/* ---- inputs of steps ---- */

static struct flop_like *like_of(struct flop_likeness *likeness, uint32_t number, struct flop_calls *calls,
                                 uint32_t step)
{
	uint32_t found = number_map_add(&likeness->by_calls, (uint64_t)number << 32 | calls->calls,
	                                likeness->like_count);

	if (found == likeness->like_count) {
		STORAGE_GROW(likeness->model->storage, likeness->likes, likeness->like_count, likeness->like_capacity,
		             64);
		likeness->likes[likeness->like_count++] = (struct flop_like){.first_input = likeness->input_count,
		                                                             .first_step = step};
		for (uint32_t i = 0; i < calls->calls; i++) {
			STORAGE_GROW(likeness->model->storage, likeness->inputs, likeness->input_count,
			             likeness->input_capacity, 256);
			likeness->inputs[likeness->input_count++] = 0;
		}
	}
	calls->like = found;
	return &likeness->likes[found];
}

/* Compares by both definitions. An unknown result is only the same as another unknown one. */
static bool computes_same(struct flop_likeness_pass *pass, uint32_t name, uint32_t inputs, uint32_t other)
{
	for (int definition = 0; definition < FLOPS_DEFINITIONS && inputs != other; definition++) {
		double count, other_count;
		enum flops_result result = flops_of(&pass->flops, definition, name, inputs, &count);
		enum flops_result other_result = flops_of(&pass->flops, definition, name, other, &other_count);

		if (result != other_result || count > other_count || count < other_count)
			return false;
	}
	return true;
}

static void compare_call(struct flop_likeness_pass *pass, uint32_t index, uint32_t number, uint32_t step, uint32_t name,
                         uint32_t inputs)
{
	struct flop_likeness *likeness = pass->likeness;
	struct flop_calls *calls = &likeness->counts[index];
	struct flop_like *like = like_of(likeness, number, calls, step);
	uint32_t place = pass->places[index]++, *known = &likeness->inputs[like->first_input + place];

	like->steps += !place;
	if (like->first_step == step)
		*known = inputs;
	else
		like->differs |= !computes_same(pass, name, inputs, *known);
}

static void pass_span(struct flop_likeness_pass *pass, uint32_t track, const struct span_chunk *chunk, uint32_t i)
{
	struct flop_likeness *likeness = pass->likeness;
	int32_t step = chunk->step[i];
	uint32_t name = chunk->name[i], index, number;

	if (!has_operators(likeness->model, step) || !has_formula(pass, name))
		return;
	if (!pass->places) {
		index = add_calls(likeness, track, name, step);
		likeness->counts[index].calls++;
		return;
	}
	index = flop_likeness_find_calls(likeness, track, name, step, &number);
	if (likeness->model->steps[step].has_shapes)
		compare_call(pass, index, number, (uint32_t)step, name,
		             span_inputs(chunk, i) ? span_inputs(chunk, i) : chunk->shape[i]);
}

static void pass_tracks(struct flop_likeness_pass *pass)
{
	const struct model *model = pass->likeness->model;

	for (uint32_t number = 0; number < model->tracks_count; number++) {
		const struct track *track = model->tracks[number];

		for (uint32_t c = 0; track->kind != TRACK_OTHER && c < track->chunk_count; c++) {
			const struct span_chunk *chunk = track->chunks[c];

			for (uint32_t i = 0; i < chunk->count; i++)
				if (chunk->kind[i] == SPAN_OP)
					pass_span(pass, number, chunk, i);
			model_chunk_done(model, chunk);
		}
	}
}

static uint32_t *no_places(const struct flop_likeness *likeness)
{
	size_t count = (size_t)likeness->count_count + 1;
	uint32_t *places = storage_resize(likeness->model->storage, NULL, count, sizeof(*places));

	return memset(places, 0, count * sizeof(*places));
}

/* Finds the likes of steps without inputs: those with the same number of calls. */
static void find_likes(struct flop_likeness *likeness)
{
	for (uint32_t i = 0; i < likeness->in_steps.capacity; i++) {
		const struct number_map_slot *slot = &likeness->in_steps.slots[i];

		if (slot->value == NUMBER_MAP_NONE)
			continue;
		struct flop_calls *calls = &likeness->counts[slot->value];
		if (calls->like == NUMBER_MAP_NONE)
			calls->like = number_map_find(&likeness->by_calls, (slot->key >> 32) << 32 | calls->calls);
	}
}

void flop_likeness_init(struct flop_likeness *likeness, const struct model *model)
{
	struct flop_likeness_pass pass = {.likeness = likeness, .flops = {.model = model}};

	*likeness = (struct flop_likeness){.model = model,
	                                   .is_mixed = is_mixed(model),
	                                   .operators = {.storage = model->storage},
	                                   .in_steps = {.storage = model->storage},
	                                   .by_calls = {.storage = model->storage}};
	if (!likeness->is_mixed)
		return;
	pass_tracks(&pass);
	pass.places = no_places(likeness);
	pass_tracks(&pass);
	find_likes(likeness);
	storage_release(model->storage, pass.places);
	flops_release(&pass.flops);
}

void flop_likeness_release(struct flop_likeness *likeness)
{
	if (likeness->model) {
		storage_release(likeness->model->storage, likeness->counts);
		storage_release(likeness->model->storage, likeness->likes);
		storage_release(likeness->model->storage, likeness->inputs);
	}
	number_map_release(&likeness->operators);
	number_map_release(&likeness->in_steps);
	number_map_release(&likeness->by_calls);
	*likeness = (struct flop_likeness){0};
}

/* ---- walks ---- */

uint32_t flop_walk_inputs(struct flop_walk *walk, const struct span_view *span)
{
	const struct flop_likeness *likeness = walk->likeness;
	uint32_t own = span->inputs ? span->inputs : span->shape, number, index;

	if (!flop_likeness_lacks(likeness, span->step))
		return own;
	index = flop_likeness_find_calls(likeness, span->track_index, span->name, span->step, &number);
	if (index == NUMBER_MAP_NONE)
		return own;
	walk->places = walk->places ? walk->places : no_places(likeness);
	uint32_t place = walk->places[index]++;
	const struct flop_calls *calls = &likeness->counts[index];
	if (own || calls->like == NUMBER_MAP_NONE || place >= calls->calls)
		return own;
	const struct flop_like *like = &likeness->likes[calls->like];
	return like->differs || like->steps < FLOP_LIKENESS_LEAST ? 0 : likeness->inputs[like->first_input + place];
}

void flop_walk_release(struct flop_walk *walk)
{
	if (walk->places)
		storage_release(walk->likeness->model->storage, walk->places);
	walk->places = NULL;
}
