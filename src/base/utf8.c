/* SPDX-License-Identifier: Apache-2.0
 *
 * utf8.c: well-formed byte sequences as in the Unicode standard, table 3-7: no overlong forms, no surrogates.
 */
#include "base/utf8.h"

#include "base/buffer.h"

#include <stdbool.h>

static bool is_within(char byte, unsigned low, unsigned high)
{
	unsigned char value = (unsigned char)byte;

	return value >= low && value <= high;
}

static bool is_continued(const char *text, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (!is_within(text[i], 0x80, 0xbf))
			return false;
	}
	return true;
}

size_t utf8_length(const char *text, size_t length)
{
	unsigned char first;
	size_t bytes;
	unsigned low = 0x80;
	unsigned high = 0xbf;

	if (!length)
		return 0;
	first = (unsigned char)text[0];
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (first == 0xe0)
		low = 0xa0; /* lower values are overlong */
	else if (first == 0xed)
		high = 0x9f; /* higher values are surrogates */
	else if (first == 0xf0)
		low = 0x90;
	else if (first == 0xf4)
		high = 0x8f; /* higher values are beyond U+10FFFF */
	if (length < bytes || !is_within(text[1], low, high) || !is_continued(text, 2, bytes))
		return 0;
	return bytes;
}

size_t utf8_encode(char *out, uint32_t character)
{
	if (character > 0x10ffff || (character >= 0xd800 && character <= 0xdfff))
		character = 0xfffd;
	if (character < 0x80) {
		out[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		out[0] = (char)(0xc0 | character >> 6);
		out[1] = (char)(0x80 | (character & 0x3f));
		return 2;
	}
	if (character < 0x10000) {
		out[0] = (char)(0xe0 | character >> 12);
		out[1] = (char)(0x80 | (character >> 6 & 0x3f));
		out[2] = (char)(0x80 | (character & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | character >> 18);
	out[1] = (char)(0x80 | (character >> 12 & 0x3f));
	out[2] = (char)(0x80 | (character >> 6 & 0x3f));
	out[3] = (char)(0x80 | (character & 0x3f));
	return 4;
}

bool utf8_append_valid(struct buffer *out, const char *text, size_t length)
{
	bool is_valid = true;
	for (size_t at = 0, end = 0; at < length; at = end) {
		size_t bytes = 0;
		while (end < length && (bytes = utf8_length(text + end, length - end)) != 0)
			end += bytes;
		buffer_add(out, text + at, end - at);
		if (end == length)
			break;
		is_valid = false;
		buffer_add_text(out, UTF8_REPLACEMENT);
		end++;
	}
	return is_valid;
}
