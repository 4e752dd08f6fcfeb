/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_births.c: see the header.
 */
#include "model/memory_births.h"

#include "base/memory.h"

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
	CLASS_DATA,
};

#define SCAN_ROWS 4096u /* how far to look for the next sequence number */
#define SEQUENCE_MASK 0xffffffffffffu

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_one_of(const char *text, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(text, *names) == 0)
			return true;
	return false;
}

static enum name_class class_of_text(const char *text)
{
	static const char *const allocators[] = {"aten::empty",
	                                         "aten::empty_strided",
	                                         "aten::empty_like",
	                                         "aten::new_empty",
	                                         "aten::new_empty_strided",
	                                         "aten::resize_",
	                                         "aten::resize_as_",
	                                         NULL};
	static const char *const factories[] = {
		"aten::zeros",    "aten::ones",      "aten::full",          "aten::rand",
		"aten::randn",    "aten::randint",   "aten::randperm",      "aten::arange",
		"aten::linspace", "aten::logspace",  "aten::eye",           "aten::normal",
		"aten::tensor",   "aten::from_file", "aten::scalar_tensor", NULL};
	if (is_one_of(text, allocators))
		return CLASS_ALLOCATOR;
	if (is_one_of(text, factories))
		return CLASS_FACTORY;
	if (starts_with(text, "autograd::engine::evaluate_function: "))
		return CLASS_NODE;
	if (starts_with(text, "Optimizer.step#") || starts_with(text, "Optimizer.zero_grad#"))
		return CLASS_OPTIMIZER;
	return starts_with(text, "enumerate(DataLoader)#") ? CLASS_DATA : CLASS_PLAIN;
}

static enum name_class class_of(struct births *births, uint32_t string)
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

/* The sequence number in a record of the forward; false: it has none, or is of a backward. */
static bool forward_sequence(const struct span_chunk *chunk, uint32_t index, uint64_t *sequence)
{
	uint64_t word = span_sequence(chunk, index);
	*sequence = word & SEQUENCE_MASK;
	return word != STEPSCOPE_NO_SEQUENCE && word >> 48 == 0 && *sequence != SEQUENCE_MASK;
}

/* Records of a graph say which number comes next. The one behind this row says a larger one when this row took its own; the first
 * node of a backward is the newest one there is. */
static bool makes_node(struct births *births, const struct track *track, uint32_t row)
{
	uint64_t own, next;
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(track, row, &index);
	uint16_t depth = chunk->depth[index];
	bool is_behind = false;
	if (!forward_sequence(chunk, index, &own))
		return false;
	for (uint32_t r = row + 1, seen = 0; r < track->span_count && seen < SCAN_ROWS; r++) {
		chunk = track_chunk(track, r, &index);
		is_behind |= chunk->depth[index] <= depth;
		if (!is_behind)
			continue;
		seen++;
		if (!forward_sequence(chunk, index, &next))
			continue;
		if (chunk->kind[index] == SPAN_OP && class_of(births, chunk->name[index]) == CLASS_NODE)
			return next >= own;
		return next > own;
	}
	return false;
}

static void set_region(struct birth *birth, enum birth_region region, const struct span_chunk *chunk, uint32_t index)
{
	if (birth->region != REGION_NONE)
		return;
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

/* The operator that wanted the memory: the innermost one but for those that only get it. */
static void set_op(struct birth *birth, enum name_class class, const struct span_chunk *chunk, uint32_t index,
                   bool *is_final)
{
	if (*is_final)
		return;
	*is_final = class != CLASS_ALLOCATOR;
	birth->is_factory = class != CLASS_PLAIN;
	birth->op = chunk->name[index];
	birth->op_end_ns = chunk->start_ns[index] + chunk->dur_ns[index];
}

struct birth birth_of(struct births *births, const struct memory_event *allocation)
{
	struct birth birth = {
		.region = REGION_NONE, .op_end_ns = INT64_MIN, .region_end_ns = INT64_MAX, .phase_end_ns = INT64_MAX};
	bool has_op = false;
	if (allocation->track >= births->model->tracks_count)
		return birth;
	const struct track *track = births->model->tracks[allocation->track];
	for (uint32_t row = allocation->row < track->span_count ? allocation->row : MODEL_NONE; row != MODEL_NONE;) {
		uint32_t index;
		uint64_t sequence;
		const struct span_chunk *chunk = track_chunk(track, row, &index);
		enum name_class class = class_of(births, chunk->name[index]);
		if (class == CLASS_NODE) {
			set_region(&birth, REGION_BACKWARD, chunk, index);
		} else if (chunk->kind[index] == SPAN_OP) {
			set_op(&birth, class, chunk, index, &has_op);
			birth.has_sequence |= forward_sequence(chunk, index, &sequence);
			birth.has_node = birth.has_node || makes_node(births, track, row);
		} else if (class == CLASS_OPTIMIZER) {
			set_region(&birth, REGION_OPTIMIZER, chunk, index);
		} else if (class == CLASS_DATA) {
			set_region(&birth, REGION_DATA, chunk, index);
		} else if (chunk->kind[index] == SPAN_MODULE) {
			set_region(&birth, REGION_MODULE, chunk, index);
		} else if (chunk->kind[index] == SPAN_PHASE) {
			set_region(&birth, region_of_phase(chunk->phase[index]), chunk, index);
			if (birth.phase_end_ns == INT64_MAX)
				birth.phase_end_ns = chunk->start_ns[index] + chunk->dur_ns[index];
		}
		row = chunk->parent[index];
	}
	return birth;
}

bool birth_is_optimizer(struct births *births, const struct span_chunk *chunk, uint32_t index)
{
	return chunk->kind[index] == SPAN_ANNOTATION && class_of(births, chunk->name[index]) == CLASS_OPTIMIZER &&
	       starts_with(model_text(births->model, chunk->name[index]), "Optimizer.step#");
}

void births_release(struct births *births)
{
	free(births->classes);
	births->classes = NULL;
	births->class_count = 0;
}
