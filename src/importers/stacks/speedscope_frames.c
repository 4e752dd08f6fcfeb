/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope_frames.c: the frames that profiles share, and the stacks built from their numbers. See speedscope.h.
 */
#include "base/memory.h"
#include "importers/stacks/speedscope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- frames ---- */

static void read_frame(struct speedscope *scope)
{
	struct model *model = scope->profile.model;
	struct speedscope_frame frame = {0};
	enum json_stream_token value;
	char key[16];
	while (speedscope_next_key(scope, key, sizeof key, &value)) {
		long double line;
		if (strcmp(key, "name") == 0)
			frame.name = speedscope_text(scope, value);
		else if (strcmp(key, "file") == 0)
			frame.file = speedscope_text(scope, value);
		else if (strcmp(key, "line") == 0)
			frame.line = speedscope_number(scope, value, &line) && line > 0 && line < UINT32_MAX
			                     ? (uint32_t)line
			                     : 0;
		else
			json_stream_skip(&scope->json, value);
	}
	if (frame.file)
		frame.file = stack_frame_file(model, model_text(model, frame.file),
		                              intern_length(&model->strings, frame.file));
	if (scope->frame_count == SPEEDSCOPE_FRAMES_MAX)
		return;
	MEMORY_GROW(scope->frames, scope->frame_count, scope->frame_capacity, 256);
	scope->frames[scope->frame_count++] = frame;
}

void speedscope_read_frames(struct speedscope *scope)
{
	enum json_stream_token value;
	char key[16];
	while (speedscope_next_key(scope, key, sizeof key, &value)) {
		if (strcmp(key, "frames") != 0)
			json_stream_skip(&scope->json, value);
		else if (speedscope_is_begin(scope, value, STREAM_ARRAY_BEGIN))
			while (speedscope_next_element(scope, &value))
				if (speedscope_is_begin(scope, value, STREAM_OBJECT_BEGIN))
					read_frame(scope);
	}
}

/* ---- stacks ---- */

static uint32_t depth_of(const struct speedscope *scope, uint32_t stack)
{
	return stack >= scope->first_stack && stack ? scope->depths[stack - scope->first_stack] : 0;
}

uint32_t speedscope_stack(struct speedscope *scope, uint32_t parent, uint32_t frame)
{
	struct model *model = scope->profile.model;
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t found = number_map_find(&scope->stacks, key);
	if (found != NUMBER_MAP_NONE)
		return found;
	found = model_add_frame(model, &(struct stack_node){.parent = parent, .frame = frame});
	number_map_set(&scope->stacks, key, found);
	uint32_t place = found - scope->first_stack;
	if (place >= scope->depth_capacity) {
		scope->depth_capacity = scope->depth_capacity ? 2 * scope->depth_capacity : 1024;
		scope->depths = memory_resize(scope->depths, scope->depth_capacity, sizeof *scope->depths);
	}
	scope->depths[place] = (uint16_t)(depth_of(scope, parent) + 1);
	return found;
}

bool speedscope_has_room(const struct speedscope *scope, uint32_t stack)
{
	return stack_profile_has_room(&scope->profile, depth_of(scope, stack));
}

/* Returns true for py-spy's frame "thread (12): loader" if the name of a profile has the same thread. */
static bool is_known_thread(const struct speedscope *scope, uint32_t frame)
{
	const struct model *model = scope->profile.model;
	const char *name = frame && frame <= scope->frame_count ? model_text(model, scope->frames[frame - 1].name) : "";
	long long tid;
	int length = 0;
	return strncmp(name, "thread (", 8) == 0 && sscanf(name, "thread (%lld)%n", &tid, &length) == 1 && length &&
	       number_map_find(&scope->threads, (uint64_t)tid) != NUMBER_MAP_NONE;
}

void speedscope_drop_threads(struct speedscope *scope)
{
	struct model *model = scope->profile.model;
	uint32_t first = scope->first_stack, count = model->stacks_count - first;
	uint32_t *without = memory_resize(NULL, (size_t)count + 1, sizeof *without); /* without the thread */
	uint32_t dropped = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct stack_node *node = &model->stacks[first + i];
		bool is_outermost = node->parent < first || !node->parent;
		bool is_thread = is_outermost && is_known_thread(scope, node->frame);
		uint32_t parent = is_outermost ? 0 : without[node->parent - first], number = node->frame;
		dropped += is_thread;
		without[i] = is_thread                ? 0
		             : parent == node->parent ? first + i
		                                      : speedscope_stack(scope, parent, number);
	}
	for (uint32_t i = scope->first_sample; i < model->samples_count && dropped; i++)
		if (model->samples[i].stack >= first)
			model->samples[i].stack = without[model->samples[i].stack - first];
	free(without);
}

void speedscope_name_frames(struct speedscope *scope)
{
	struct model *model = scope->profile.model;
	for (uint32_t i = scope->first_stack; i < model->stacks_count; i++) {
		struct stack_node *node = &model->stacks[i];
		uint32_t number = node->frame - 1;
		char text[32];
		if (!node->frame)
			continue;
		if (number < scope->frame_count) {
			const struct speedscope_frame *frame = &scope->frames[number];
			node->file = frame->file;
			node->line = frame->line;
			node->frame = frame->name;
		} else {
			node->frame = 0;
		}
		if (node->frame)
			continue;
		repair_note(&scope->repairs[SPEEDSCOPE_FRAME], 0);
		snprintf(text, sizeof text, "(frame %u)", number);
		node->frame = intern_add(&model->strings, text);
	}
}
