/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c: display width and cleaning of UTF-8.
 */
#include "base/text.h"

#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

static size_t character_width(const char *text, size_t bytes)
{
	utf8proc_int32_t character;
	int width;

	if (bytes == 1)
		return (unsigned char)text[0] >= 0x20 && text[0] != 0x7f;
	if (utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)bytes, &character) < 0)
		return 1;
	width = utf8proc_charwidth(character);
	return width > 0 ? (size_t)width : 0;
}

size_t text_width(const char *text)
{
	size_t left = strlen(text);
	size_t width = 0;

	while (left) {
		size_t bytes = utf8_length(text, left);

		width += bytes ? character_width(text, bytes) : 1;
		bytes = bytes ? bytes : 1;
		text += bytes;
		left -= bytes;
	}
	return width;
}

/* Returns true for C0, DEL and C1 (U+0080 to U+009F, which some terminals obey). */
static int is_control(const char *text, size_t bytes)
{
	unsigned char first = (unsigned char)text[0];

	if (bytes == 1)
		return first < 0x20 || first == 0x7f;
	return bytes == 2 && first == 0xc2 && (unsigned char)text[1] < 0xa0;
}

void text_clean(struct buffer *out, const char *text, size_t length)
{
	const char *end = text + length;
	const char *run = text; /* start of good text not yet added */

	while (text < end) {
		size_t bytes = utf8_length(text, (size_t)(end - text));

		if (bytes && !is_control(text, bytes)) {
			text += bytes;
			continue;
		}
		buffer_add(out, run, (size_t)(text - run));
		buffer_add_text(out, bytes ? " " : UTF8_REPLACEMENT);
		text += bytes ? bytes : 1;
		run = text;
	}
	buffer_add(out, run, (size_t)(end - run));
}

void text_shorten(struct buffer *text, size_t head_bytes, size_t tail_bytes)
{
	static const char dots[] = " ... ";
	size_t head, tail;

	if (text->length <= head_bytes + strlen(dots) + tail_bytes)
		return;
	head = utf8_cut(text->data, text->length, head_bytes);
	tail = text->length - tail_bytes;
	while (((unsigned char)text->data[tail] & 0xc0) == 0x80 && tail < text->length)
		tail++;
	memcpy(text->data + head, dots, strlen(dots));
	memmove(text->data + head + strlen(dots), text->data + tail, text->length - tail + 1);
	text->length = head + strlen(dots) + text->length - tail;
}

void text_alternatives(char *text, size_t bytes, const char *const *words, size_t count)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count && length < bytes; i++)
		length += (size_t)snprintf(text + length, bytes - length, "%s%s",
		                           i == 0          ? ""
		                           : i + 1 < count ? ", "
		                                           : " or ",
		                           words[i]);
}
