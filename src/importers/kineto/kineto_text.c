/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_text.c: see kineto_text.h.
 */
#include "importers/kineto/kineto_text.h"

#include "base/memory.h"
#include "importers/kineto/kineto_bytes.h"
#include "importers/kineto/kineto_utf16.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((size_t)1 << 20)
#define RAW_BYTES ((size_t)64 << 10)

void kineto_text_init(struct kineto_text *text, struct input_stream *input)
{
	*text = (struct kineto_text){.input = input, .capacity = WINDOW_BYTES};
	text->window = memory_resize(NULL, text->capacity + KINETO_PADDING, 1);
	memset(text->window, 0, KINETO_PADDING);
	const char *head;
	size_t length;
	struct error ignored; /* the first read reports it again */
	if (input_peek(input, &head, &length, &ignored) == STATUS_OK)
		text->encoding = kineto_encoding_of(head, length);
	if (strcmp(input_compression(input), "none") != 0 &&
	    read_ahead_open(input, &text->ahead, &ignored) != STATUS_OK)
		text->ahead = NULL; /* then this thread decompresses */
	if (text->encoding != KINETO_UTF8)
		text->raw = memory_resize(NULL, RAW_BYTES, 1);
}

void kineto_text_release(struct kineto_text *text)
{
	read_ahead_close(text->ahead);
	free(text->window);
	free(text->raw);
	*text = (struct kineto_text){0};
}

static void kineto_text_make_room(struct kineto_text *text)
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

uint64_t kineto_text_file_bytes(const struct kineto_text *text)
{
	return text->ahead ? read_ahead_file_bytes(text->ahead) : input_file_bytes(text->input);
}

static enum status kineto_text_read_input(struct kineto_text *text, char *out, size_t capacity, size_t *length)
{
	return text->ahead ? read_ahead_read(text->ahead, out, capacity, length, &text->error)
	                   : input_read(text->input, out, capacity, length, &text->error);
}

/* Like kineto_text_read_input(), but decoded. */
static enum status read_decoded(struct kineto_text *text, char *out, size_t capacity, size_t *length)
{
	if (text->encoding == KINETO_UTF8)
		return kineto_text_read_input(text, out, capacity, length);
	size_t wanted = capacity / 2 < RAW_BYTES ? capacity / 2 : RAW_BYTES, n = 1;
	for (*length = 0; *length == 0 && n > 0 && wanted > text->raw_length;) {
		enum status status = kineto_text_read_input(text, text->raw + text->raw_length,
		                                            wanted - text->raw_length, &n);
		if (status != STATUS_OK)
			return status;
		text->raw_length += n;
		size_t used = text->raw_length;
		*length = kineto_decode_utf16(out, text->raw, &used, text->encoding);
		text->raw_length -= used;
		memmove(text->raw, text->raw + used, text->raw_length);
	}
	return STATUS_OK;
}

bool kineto_text_more(struct kineto_text *text)
{
	size_t length = 0;
	if (text->is_at_end)
		return false;
	kineto_text_make_room(text);
	if (text->end == text->capacity)
		return false;
	if (read_decoded(text, text->window + text->end, text->capacity - text->end, &length) != STATUS_OK)
		length = 0;
	text->end += length;
	memset(text->window + text->end, 0, KINETO_PADDING);
	text->is_at_end = length == 0;
	return length > 0;
}

bool kineto_text_go_on(struct kineto_text *text)
{
	if (text->error.status == STATUS_OK)
		return false;
	read_ahead_close(text->ahead); /* from here on this thread decompresses: damaged files are few */
	text->ahead = NULL;
	if (!input_go_on(text->input))
		return false;
	text->error = (struct error){0};
	text->begin = text->end;
	text->raw_length = 0;
	text->is_at_end = false;
	return true;
}

int kineto_text_peek(struct kineto_text *text)
{
	for (;;) {
		text->begin = (size_t)(kineto_past_blanks(text->window + text->begin) - text->window);
		if (text->begin < text->end) /* a NUL is at its end */
			return (unsigned char)text->window[text->begin];
		if (!kineto_text_more(text))
			return -1;
	}
}
