/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_births.c: see the header.
 */
#include "model/memory_births.h"

#include "base/memory.h"
#include "pytorch/names.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

enum name_class {
	CLASS_UNSEEN,
	CLASS_PLAIN,
	CLASS_ALLOCATOR,
	CLASS_FACTORY,
	CLASS_NODE,
	CLASS_OPTIMIZER,
	CLASS_GATHER,
	CLASS_DATA,
};

#define SCAN_ROWS 4096u /* maximum distance to the next sequence number */
#define SEQUENCE_MASK 0xffffffffffffu

static bool is_factory(const char *text)
{
	static const char *const names[] = {"aten::zeros",    "aten::ones",      "aten::full",          "aten::rand",
	                                    "aten::randn",    "aten::randint",   "aten::randperm",      "aten::arange",
	                                    "aten::linspace", "aten::logspace",  "aten::eye",           "aten::normal",
	                                    "aten::tensor",   "aten::from_file", "aten::scalar_tensor", NULL};
	return pytorch_is_one_of(text, strlen(text), names);
}

static enum name_class class_of_text(const char *text)
{
	if (pytorch_is_allocator(text))
		return CLASS_ALLOCATOR;
	if (is_factory(text))
		return CLASS_FACTORY;
	if (pytorch_begins(text, PYTORCH_ENGINE))
		return CLASS_NODE;
	if (pytorch_begins(text, PYTORCH_OPTIMIZER_STEP) || pytorch_begins(text, PYTORCH_OPTIMIZER_ZERO_GRAD))
		return CLASS_OPTIMIZER;
	if (pytorch_begins(text, PYTORCH_GATHER) || pytorch_begins(text, PYTORCH_GATHER_FORWARD) ||
	    pytorch_begins(text, PYTORCH_GATHER_BACKWARD))
		return CLASS_GATHER;
	return pytorch_begins(text, PYTORCH_LOADER) ? CLASS_DATA : CLASS_PLAIN;
}

static enum name_class memory_births_class_of(struct births *births, uint32_t string)
{
	if (string >= births->class_count) {
		uint32_t count = births->model->strings.count > string ? births->model->strings.count : string + 1;
		births->classes = memory_resize(births->classes, count, 1);
		memset(births->classes + births->class_count, CLASS_UNSEEN, count - births->class_count);
		births->class_count = count;
	}
	if (births->classes[string] == CLASS_UNSEEN)
		births->classes[string] = (uint8_t)class_of_text(model_text(births->model, string));
	return births->classes[string];
}

/* Gets the sequence number of a forward's record. Returns false if it has none or belongs to a backward. */
static bool forward_sequence(const struct span_chunk *chunk, uint32_t index, uint64_t *sequence)
{
	uint64_t word = span_sequence(chunk, index);
	*sequence = word & SEQUENCE_MASK;
	return word != STEPSCOPE_NO_SEQUENCE && word >> 48 == 0 && *sequence != SEQUENCE_MASK;
}

/* ---- autograd nodes ---------------------------------------------------------------------------------------------- */

/* Returns the first row after the span and its children. A row that starts before the span's end is nested in it. For a
 * row that starts at the end, the depth decides. */
static uint32_t row_behind(struct births *births, const struct track *track, uint32_t row)
{
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(track, row, &index);
	uint16_t depth = chunk->depth[index];
	uint32_t first = track_row_at(track, row + 1, chunk->start_ns[index] + chunk->dur_ns[index]), at = first;
	for (; at < track->span_count && at - first < SCAN_ROWS; at++, births->looked_at++) {
		chunk = track_chunk(track, at, &index);
		if (chunk->depth[index] <= depth)
			break;
	}
	return at;
}

/* Returns the first row from `row` on with a forward sequence number; MODEL_NONE: none within reach. Neighbouring
 * allocations ask for almost the same rows, so the newest stretch of rows without a number is cached. */
static uint32_t row_with_sequence(struct births *births, uint32_t number, uint32_t row)
{
	const struct track *track = births->model->tracks[number];
	uint32_t at = row, first = row;
	uint64_t sequence;
	while (at < track->span_count && at - row < SCAN_ROWS) {
		uint32_t index;
		if (births->bare_track == number && at >= births->bare_first && at < births->bare_end) {
			at = births->bare_end;
			first = row < births->bare_first ? row : births->bare_first;
			continue;
		}
		births->looked_at++;
		const struct span_chunk *chunk = track_chunk(track, at, &index);
		if (forward_sequence(chunk, index, &sequence))
			break;
		at++;
	}
	births->bare_track = number;
	births->bare_first = first;
	births->bare_end = at;
	return at < track->span_count && at - row < SCAN_ROWS ? at : MODEL_NONE;
}

/* Each record of a graph holds the next free sequence number. The record after this row holds a larger one if this row
 * took its number. The first node of a backward is the newest node. */
static bool makes_node(struct births *births, uint32_t number, uint32_t row)
{
	const struct track *track = births->model->tracks[number];
	uint64_t own, next;
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(track, row, &index);
	if (!forward_sequence(chunk, index, &own))
		return false;
	uint32_t found = row_with_sequence(births, number, row_behind(births, track, row));
	if (found == MODEL_NONE)
		return false;
	chunk = track_chunk(track, found, &index);
	(void)forward_sequence(chunk, index, &next);
	bool is_engine = chunk->kind[index] == SPAN_OP &&
	                 memory_births_class_of(births, chunk->name[index]) == CLASS_NODE;
	return is_engine ? next >= own : next > own;
}

/* ---- from the outermost span inwards ----------------------------------------------------------------------------- */

static void set_region(struct birth *birth, enum birth_region region, const struct span_chunk *chunk, uint32_t index)
{
	birth->region = (uint8_t)region;
	birth->region_end_ns = chunk->start_ns[index] + chunk->dur_ns[index];
}

static enum birth_region region_of_phase(uint8_t phase)
{
	switch (phase) {
	case STEPSCOPE_PHASE_DATA:
		return REGION_DATA;
	case STEPSCOPE_PHASE_FORWARD:
		return REGION_FORWARD;
	case STEPSCOPE_PHASE_BACKWARD:
		return REGION_BACKWARD;
	case STEPSCOPE_PHASE_OPTIMIZER:
		return REGION_OPTIMIZER;
	case STEPSCOPE_PHASE_EVALUATION:
		return REGION_EVALUATION;
	default:
		return REGION_OTHER;
	}
}

/* Sets the operator that needed the memory: the innermost one, except for operators that only get memory. */
static void set_op(struct birth *birth, enum name_class class, const struct span_chunk *chunk, uint32_t index)
{
	bool is_known = birth->op_end_ns != INT64_MIN;
	if (class == CLASS_ALLOCATOR && is_known)
		return;
	birth->is_factory = class != CLASS_PLAIN;
	birth->is_gathered &= birth->is_factory; /* other operators compute */
	birth->op = chunk->name[index];
	birth->op_end_ns = chunk->start_ns[index] + chunk->dur_ns[index];
}

/* Returns the birth for allocations in the span, from the birth of its parent. */
static struct birth birth_in(struct births *births, uint32_t number, uint32_t row, struct birth birth)
{
	uint32_t index;
	uint64_t sequence;
	const struct span_chunk *chunk = track_chunk(births->model->tracks[number], row, &index);
	enum name_class class = memory_births_class_of(births, chunk->name[index]);
	births->looked_at++;
	if (class == CLASS_NODE) {
		set_region(&birth, REGION_BACKWARD, chunk, index);
	} else if (chunk->kind[index] == SPAN_OP) {
		set_op(&birth, class, chunk, index);
		birth.has_sequence |= forward_sequence(chunk, index, &sequence);
		birth.has_node = birth.has_node || makes_node(births, number, row);
	} else if (class == CLASS_OPTIMIZER) {
		set_region(&birth, REGION_OPTIMIZER, chunk, index);
	} else if (class == CLASS_GATHER) {
		birth.is_gathered = true;
	} else if (class == CLASS_DATA) {
		set_region(&birth, REGION_DATA, chunk, index);
	} else if (chunk->kind[index] == SPAN_MODULE) {
		set_region(&birth, REGION_MODULE, chunk, index);
	} else if (chunk->kind[index] == SPAN_PHASE) {
		set_region(&birth, region_of_phase(chunk->phase[index]), chunk, index);
		birth.phase_end_ns = chunk->start_ns[index] + chunk->dur_ns[index];
	}
	return birth;
}

/* Returns the path of a track, with room for spans up to this depth. */
static struct birth_path *path_of(struct births *births, uint32_t number, uint16_t depth)
{
	if (!births->paths) {
		size_t count = births->model->tracks_count;
		births->paths = memory_resize(NULL, count, sizeof *births->paths);
		memset(births->paths, 0, count * sizeof *births->paths);
	}
	struct birth_path *path = &births->paths[number];
	if (depth >= path->capacity) {
		uint32_t capacity = depth + depth / 2 + 8;
		path->list = memory_resize(path->list, capacity, sizeof *path->list);
		for (uint32_t i = path->capacity; i < capacity; i++)
			path->list[i].row = MODEL_NONE;
		path->capacity = capacity;
	}
	return path;
}

/* Allocations of a track come in order of time. So most spans around an allocation were around the one before, and each
 * span is looked at once. */
struct birth birth_of(struct births *births, const struct memory_event *allocation)
{
	const struct model *model = births->model;
	const struct birth nothing = {
		.region = REGION_NONE, .op_end_ns = INT64_MIN, .region_end_ns = INT64_MAX, .phase_end_ns = INT64_MAX};
	uint32_t row = allocation->row, index, number = allocation->track;
	if (number >= model->tracks_count || row >= model->tracks[number]->span_count)
		return nothing;
	const struct track *track = model->tracks[number];
	uint16_t innermost = track_chunk(track, row, &index)->depth[index];
	struct birth_path *path = path_of(births, number, innermost);
	uint32_t depth = innermost + 1u;
	while (depth > 0 && path->list[depth - 1].row != row) {
		path->list[--depth].row = row;
		row = track_chunk(track, row, &index)->parent[index];
	}
	for (; depth <= innermost; depth++)
		path->list[depth].birth = birth_in(births, number, path->list[depth].row,
		                                   depth ? path->list[depth - 1].birth : nothing);
	return path->list[innermost].birth;
}

bool birth_is_optimizer(struct births *births, const struct span_chunk *chunk, uint32_t index)
{
	return chunk->kind[index] == SPAN_ANNOTATION &&
	       memory_births_class_of(births, chunk->name[index]) == CLASS_OPTIMIZER &&
	       pytorch_begins(model_text(births->model, chunk->name[index]), PYTORCH_OPTIMIZER_STEP);
}

void births_release(struct births *births)
{
	for (uint32_t i = 0; births->paths && i < births->model->tracks_count; i++)
		free(births->paths[i].list);
	free(births->paths);
	free(births->classes);
	*births = (struct births){.model = births->model};
}
