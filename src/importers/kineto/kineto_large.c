/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_large.c: see kineto_large.h. Both functions go byte by byte with a stack of brackets: few events are so large.
 */
#include "importers/kineto/kineto_large.h"

#include "importers/kineto/kineto_bytes.h"

#include <string.h>

#define DEPTH_MAX 4096u

struct nesting {
	char open[DEPTH_MAX]; /* brackets */
	uint32_t depth;
	char last; /* last byte that is neither blank nor in a string */
	bool is_string, is_escaped;
};

/* Advances by one byte. Returns false if JSON does not allow it at this place. */
static bool kineto_large_follow(struct nesting *nesting, char c)
{
	if (nesting->is_string) {
		nesting->is_string = nesting->is_escaped || c != '"';
		nesting->is_escaped = !nesting->is_escaped && c == '\\';
		return true;
	}
	char around = nesting->depth ? nesting->open[nesting->depth - 1] : '\0';
	if (kineto_is_blank(c))
		return true;
	if (nesting->last == ',' && around == '{' && c != '"')
		return false;
	nesting->last = c;
	switch (c) {
	case '"':
		nesting->is_string = true;
		return true;
	case '{':
	case '[':
		if (nesting->depth == DEPTH_MAX)
			return false;
		nesting->open[nesting->depth++] = c;
		return true;
	case '}':
	case ']':
		if (around != (c == '}' ? '{' : '['))
			return false;
		nesting->depth--;
		return true;
	case ':':
		return around == '{';
	default:
		return c != '\0';
	}
}

bool kineto_is_element(const char *begin, const char *at)
{
	struct nesting nesting;
	nesting.depth = 0;
	nesting.last = '\0';
	nesting.is_string = nesting.is_escaped = false;
	for (; begin < at; begin++)
		if (!kineto_large_follow(&nesting, *begin))
			return false;
	return !nesting.is_string && nesting.depth > 1 && nesting.open[nesting.depth - 1] == '[' &&
	       (nesting.last == ',' || nesting.last == '[');
}

/* ---- larger than the window ---- */

struct large {
	struct nesting nesting;
	struct buffer *out;
	/* depth of a member of the event, or of an object in it, whose value comes or has begun; 0: none */
	uint32_t member_depth;
	char first;       /* first byte of the value; '\0': it has not begun */
	size_t value;     /* where it starts in out */
	bool is_left_out; /* the rest of the value is skipped */
};

/* Cuts a text so that it does not end in half a character or half an escape. */
static void cut_text(struct buffer *out, size_t first)
{
	size_t length = out->length;
	while (length > first && (unsigned char)out->data[length - 1] >= 0x80)
		length--;
	for (size_t i = length; i > first && i + 12 > length; i--)
		if (out->data[i - 1] == '\\')
			length = i - 1;
	out->length = length;
}

static void kineto_large_leave_out(struct large *large)
{
	large->is_left_out = true;
	if (large->first == '"') {
		cut_text(large->out, large->value + 1);
		return;
	}
	large->out->length = large->value;
	buffer_add_text(large->out, "null");
}

static void kineto_large_begin_value(struct large *large, char c)
{
	if (kineto_is_blank(c))
		return;
	if (c == '{' && large->member_depth == 1) { /* args: each member is limited on its own */
		large->member_depth = 0;
		return;
	}
	large->first = c;
	large->value = large->out->length;
}

static bool ends_value(const struct large *large, char c, bool was_string)
{
	const struct nesting *nesting = &large->nesting;
	switch (large->first) {
	case '"':
		return was_string && !nesting->is_string;
	case '{':
	case '[':
		return !nesting->is_string && nesting->depth == large->member_depth;
	default:
		return c == ',' || nesting->depth < large->member_depth;
	}
}

/* Returns true if the byte is kept. */
static bool is_kept(struct large *large, char c, bool was_string)
{
	if (!large->member_depth) {
		if (c == ':' && !was_string && large->nesting.depth <= 2)
			large->member_depth = large->nesting.depth;
		return true;
	}
	if (!large->first) {
		kineto_large_begin_value(large, c);
		return true;
	}
	if (!ends_value(large, c, was_string))
		return !large->is_left_out;
	bool is_list = large->first == '{' || large->first == '[', was_left_out = large->is_left_out;
	large->member_depth = 0;
	large->first = '\0';
	large->is_left_out = false;
	return !was_left_out || !is_list;
}

/* Returns false if the event is malformed or has too many members. */
static bool kineto_large_take(struct large *large, char c)
{
	bool was_string = large->nesting.is_string;
	struct buffer *out = large->out;
	if (!kineto_large_follow(&large->nesting, c))
		return false;
	if (!is_kept(large, c, was_string))
		return true;
	buffer_add_byte(out, (uint8_t)c);
	size_t most = out->length > KINETO_LARGE_MAX / 2 ? KINETO_VALUE_MAX / 1024 : KINETO_VALUE_MAX;
	if (large->first && out->length - large->value > most)
		kineto_large_leave_out(large);
	return out->length < KINETO_LARGE_MAX;
}

bool kineto_large_read(struct kineto_text *text, struct buffer *out)
{
	struct large large = {.out = out};
	buffer_clear(out);
	for (;;) {
		if (text->begin == text->end && !kineto_text_more(text))
			return false;
		if (!kineto_large_take(&large, text->window[text->begin++]))
			return false;
		if (!large.nesting.depth)
			return true;
	}
}
