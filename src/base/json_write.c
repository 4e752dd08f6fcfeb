/* SPDX-License-Identifier: Apache-2.0
 *
 * json_write.c: the writer knows, per level, if it is an object and if it has an item. The caller must check for a full
 * buffer (buffer.is_overflown).
 */
#include "base/json_write.h"

#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAXIMUM_DEPTH ((int)(sizeof(((struct json_writer *)0)->is_object)))

void json_writer_init(struct json_writer *json, struct buffer *out, enum json_style style)
{
	*json = (struct json_writer){.out = out, .style = style};
}

static void new_line(struct json_writer *json)
{
	if (json->style != JSON_PRETTY)
		return;
	buffer_add_byte(json->out, '\n');
	for (int i = 0; i < json->depth; i++)
		buffer_add(json->out, "  ", 2);
}

static void begin_item(struct json_writer *json)
{
	if (json->has_items[json->depth - 1])
		buffer_add_byte(json->out, ',');
	json->has_items[json->depth - 1] = 1;
	new_line(json);
}

static void json_write_begin_value(struct json_writer *json)
{
	if (json->is_key_pending) {
		json->is_key_pending = false;
		return;
	}
	if (json->depth == 0)
		return;
	assert(!json->is_object[json->depth - 1] && "a value in an object needs its key first");
	begin_item(json);
}

static void json_write_begin(struct json_writer *json, bool is_object)
{
	json_write_begin_value(json);
	assert(json->depth < MAXIMUM_DEPTH);
	json->is_object[json->depth] = is_object;
	json->has_items[json->depth] = 0;
	json->depth++;
	buffer_add_byte(json->out, is_object ? '{' : '[');
}

static void json_write_end(struct json_writer *json, bool is_object)
{
	assert(json->depth > 0 && json->is_object[json->depth - 1] == is_object && !json->is_key_pending);
	json->depth--;
	if (json->has_items[json->depth])
		new_line(json);
	buffer_add_byte(json->out, is_object ? '}' : ']');
}

void json_object_begin(struct json_writer *json)
{
	json_write_begin(json, true);
}

void json_object_end(struct json_writer *json)
{
	json_write_end(json, true);
}

void json_array_begin(struct json_writer *json)
{
	json_write_begin(json, false);
}

void json_array_end(struct json_writer *json)
{
	json_write_end(json, false);
}

void json_key(struct json_writer *json, const char *key)
{
	assert(json->depth > 0 && json->is_object[json->depth - 1] && !json->is_key_pending);
	begin_item(json);
	json_quote(json->out, key, strlen(key));
	buffer_add_byte(json->out, ':');
	if (json->style == JSON_PRETTY)
		buffer_add_byte(json->out, ' ');
	json->is_key_pending = true;
}

void json_string_n(struct json_writer *json, const char *text, size_t length)
{
	json_write_begin_value(json);
	json_quote(json->out, text, length);
}

void json_string(struct json_writer *json, const char *text)
{
	json_string_n(json, text, strlen(text));
}

void json_int(struct json_writer *json, int64_t value)
{
	json_write_begin_value(json);
	buffer_printf(json->out, "%" PRId64, value);
}

void json_uint(struct json_writer *json, uint64_t value)
{
	json_write_begin_value(json);
	buffer_printf(json->out, "%" PRIu64, value);
}

void json_double(struct json_writer *json, double value)
{
	json_write_begin_value(json);
	json_number(json->out, value);
}

void json_bool(struct json_writer *json, bool value)
{
	json_write_begin_value(json);
	buffer_add_text(json->out, value ? "true" : "false");
}

void json_null(struct json_writer *json)
{
	json_write_begin_value(json);
	buffer_add(json->out, "null", 4);
}

/* Writes the escape of a character that needs one. */
static void quote_special(struct buffer *out, char character, bool is_valid)
{
	if (!is_valid)
		buffer_add_text(out, UTF8_REPLACEMENT);
	else if (character == '"' || character == '\\')
		buffer_printf(out, "\\%c", character);
	else
		buffer_printf(out, "\\u%04x", (unsigned)(unsigned char)character);
}

static bool is_plain(char character)
{
	unsigned char byte = (unsigned char)character;

	return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

void json_quote(struct buffer *out, const char *text, size_t length)
{
	const char *end_of_text = text + length;
	const char *run = text; /* start of good text not yet added */

	buffer_add_byte(out, '"');
	while (text < end_of_text) {
		size_t bytes;

		if (is_plain(*text)) {
			text++;
			continue;
		}
		bytes = utf8_length(text, (size_t)(end_of_text - text));
		if (bytes > 1) {
			text += bytes;
			continue;
		}
		buffer_add(out, run, (size_t)(text - run));
		quote_special(out, *text, bytes > 0);
		run = ++text;
	}
	buffer_add(out, run, (size_t)(end_of_text - run));
	buffer_add_byte(out, '"');
}

/* Replaces the decimal point of the locale, which printf uses, by JSON's. */
static void make_point(char *text, const char *plain)
{
	char *point = text + strspn(text, plain);

	if (*point) {
		size_t width = strcspn(point, plain);

		*point = '.';
		memmove(point + 1, point + width, strlen(point + width) + 1);
	}
}

void json_number(struct buffer *out, double value)
{
	char text[40];

	if (!isfinite(value)) {
		buffer_add(out, "null", 4);
		return;
	}
	if (value == trunc(value) && fabs(value) < 1e15 && !(value == 0 && signbit(value))) {
		buffer_printf(out, "%" PRId64, (int64_t)value);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	make_point(text, "0123456789eE+-");
	buffer_add_text(out, text);
}
