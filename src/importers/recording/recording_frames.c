/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_frames.c: stacks of Python. A symbol of kind FRAME is a frame and names its caller's symbol; BEGIN events
 * name the innermost frame. Symbols may come in any order, so a stack is built when it is first used.
 */
#include "importers/recording/recording_frames.h"

#include "base/memory.h"
#include "importers/recording/recording.h"

#include <string.h>

#define DEEPEST 4096u         /* frames of a stack */
#define MOST_AROUND 64u       /* nested spans to search */
#define IS_IN_PATH UINT32_MAX /* as a depth: if it is met again, the file is broken and its callers form a circle */

/* Takes the field up to the next NUL or the end. */
static const char *take_field(const char **text, uint32_t *length, uint32_t *field_length)
{
	const char *field = *text, *end = memchr(*text, 0, *length);
	*field_length = end ? (uint32_t)(end - field) : *length;
	uint32_t taken = *field_length + (end != NULL);
	*text += taken;
	*length -= taken;
	return field;
}

static uint32_t take_number(const char **text, uint32_t *length)
{
	uint32_t digits, number = 0;
	const char *field = take_field(text, length, &digits);
	for (uint32_t i = 0; i < digits && i < 10 && field[i] >= '0' && field[i] <= '9'; i++)
		number = number * 10 + (uint32_t)(field[i] - '0');
	return number;
}

static uint32_t take_string(struct recording *recording, const char **text, uint32_t *length)
{
	uint32_t bytes;
	const char *field = take_field(text, length, &bytes);
	return intern_add_n(&recording->model->strings, field, bytes);
}

uint32_t recording_add_frame(struct recording *recording, const char *text, uint32_t length, uint32_t *name)
{
	struct recorded_session *session = recording->session;
	MEMORY_GROW(session->frames, session->frame_count, session->frame_capacity, 256);
	struct recorded_frame *frame = &session->frames[session->frame_count];
	*frame = (struct recorded_frame){0};
	if (memchr(text, 0, length)) { /* otherwise a plain name, of a STACKS block */
		frame->caller = take_number(&text, &length);
		frame->place.line = take_number(&text, &length);
	}
	*name = frame->place.frame = take_string(recording, &text, &length);
	frame->place.file = take_string(recording, &text, &length);
	return session->frame_count++;
}

static struct recorded_frame *find_frame(struct recorded_session *session, uint32_t id)
{
	struct recorded_symbol symbol = id && id < 1u << 24 ? recording_symbol(session, id)
	                                                    : (struct recorded_symbol){0};
	return symbol.kind == STEPSCOPE_SYMBOL_FRAME ? &session->frames[symbol.shape] : NULL;
}

/* Returns the stack of the frame and all its callers, outermost first. */
static uint32_t stack_of(struct recording *recording, uint32_t id)
{
	struct recorded_frame *path[DEEPEST];
	unsigned count = 0;
	uint32_t parent = 0, depth = 0;
	for (struct recorded_frame *frame; (frame = find_frame(recording->session, id)); id = frame->caller) {
		if (frame->stack || frame->depth == IS_IN_PATH || count == DEEPEST) {
			parent = frame->stack;
			depth = frame->stack ? frame->depth : 0;
			break;
		}
		frame->depth = IS_IN_PATH;
		path[count++] = frame;
	}
	while (count--) {
		struct recorded_frame *frame = path[count];
		frame->place.parent = parent;
		frame->depth = ++depth;
		parent = frame->stack = model_add_frame(recording->model, &frame->place);
	}
	return parent;
}

/* Returns the stack of the operator around the span, whose frame stood still while the recorder read this stack; 0 if
 * there is none. */
static uint32_t stack_around(const struct model *model, uint32_t track, uint32_t row)
{
	const struct track *columns = model->tracks[track];
	uint32_t index, parent = track_chunk(columns, row, &index)->parent[index];
	for (unsigned i = 0; i < MOST_AROUND && parent != MODEL_NONE; i++) {
		const struct span_chunk *chunk = track_chunk(columns, parent, &index);
		if (chunk->kind[index] == SPAN_OP)
			return span_stack(chunk, index);
		if (chunk->kind[index] == SPAN_ANNOTATION)
			return 0;
		parent = chunk->parent[index];
	}
	return 0;
}

/* Returns the number of frames that the recorder read for the stack: those not in the stack around it, otherwise
 * all. */
static uint32_t frames_read(const struct model *model, uint32_t stack, uint32_t depth, uint32_t around)
{
	uint32_t count = 0;
	for (uint32_t node = stack; around && node && count < depth; node = model->stacks[node].parent, count++)
		if (node == around)
			return count;
	return depth;
}

void recording_set_stack(struct recording *recording, uint32_t track, uint32_t row, uint32_t frame)
{
	struct model *model = recording->model;
	uint32_t index, stack = 0;
	if (frame) {
		stack = stack_of(recording, frame);
		const struct recorded_frame *innermost = find_frame(recording->session, frame);
		recording->process->stack_frames += innermost ? frames_read(model, stack, innermost->depth,
		                                                            stack_around(model, track, row))
		                                              : 0;
	} else {
		uint32_t parent = track_chunk(model->tracks[track], row, &index)->parent[index];
		const struct span_chunk *chunk = parent == MODEL_NONE
		                                         ? NULL
		                                         : track_chunk(model->tracks[track], parent, &index);
		stack = chunk ? span_stack(chunk, index) : 0;
	}
	if (stack || frame) /* an unknown stack is not that of the span around it */
		model_span_set_stack(model, track, row, stack);
}
