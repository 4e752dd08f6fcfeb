/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_text.c: see kineto_text.h.
 */
#include "importers/kineto_text.h"

#include "base/memory.h"
#include "importers/kineto_bytes.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((size_t)1 << 20)

void kineto_text_init(struct kineto_text *text, struct input_stream *input)
{
	*text = (struct kineto_text){.input = input, .capacity = WINDOW_BYTES};
	text->window = memory_resize(NULL, text->capacity + KINETO_PADDING, 1);
	text->window[0] = '\0';
}

void kineto_text_release(struct kineto_text *text)
{
	free(text->window);
	*text = (struct kineto_text){0};
}

static void make_room(struct kineto_text *text)
{
	if (text->begin) {
		memmove(text->window, text->window + text->begin, text->end - text->begin);
		text->offset += text->begin;
		text->end -= text->begin;
		text->begin = 0;
	}
	if (text->end < text->capacity / 2 || text->capacity >= KINETO_WINDOW_MAX)
		return;
	text->capacity *= 2;
	text->window = memory_resize(text->window, text->capacity + KINETO_PADDING, 1);
}

bool kineto_text_more(struct kineto_text *text)
{
	size_t length = 0;
	if (text->is_at_end)
		return false;
	make_room(text);
	if (text->end == text->capacity)
		return false;
	if (input_read(text->input, text->window + text->end, text->capacity - text->end, &length, &text->error) !=
	    STATUS_OK)
		length = 0;
	text->end += length;
	text->window[text->end] = '\0';
	text->is_at_end = length == 0;
	return length > 0;
}

int kineto_text_peek(struct kineto_text *text)
{
	for (;;) {
		while (text->begin < text->end) {
			char c = text->window[text->begin];
			if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
				return (unsigned char)c;
			text->begin++;
		}
		if (!kineto_text_more(text))
			return -1;
	}
}
