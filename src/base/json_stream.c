/* SPDX-License-Identifier: Apache-2.0
 *
 * json_stream.c: see the header.
 */
#include "base/json_stream.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((size_t)1 << 20)

enum status json_stream_init(struct json_stream *stream, struct input_stream *input, struct error *err)
{
	memset(stream, 0, sizeof(*stream));
	stream->input = input;
	stream->next = NEXT_VALUE;
	stream->window = malloc(WINDOW_BYTES);
	return stream->window ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "out of memory");
}

void json_stream_release(struct json_stream *stream)
{
	free(stream->window);
	stream->window = NULL;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static uint64_t here(const struct json_stream *stream)
{
	return stream->window_offset + stream->begin;
}

/* Makes at least one byte available. Returns false at the end, or on error (with error.status set). */
static bool refill(struct json_stream *stream)
{
	size_t length;

	if (stream->is_at_end)
		return false;
	stream->window_offset += stream->end;
	stream->begin = stream->end = 0;
	if (input_read(stream->input, stream->window, WINDOW_BYTES, &length, &stream->error) != STATUS_OK)
		length = 0;
	stream->end = length;
	stream->is_at_end = length == 0;
	return length > 0;
}

/* Returns the next byte, -1 at the end. */
static int json_stream_peek(struct json_stream *stream)
{
	if (stream->begin == stream->end && !refill(stream))
		return -1;
	return (unsigned char)stream->window[stream->begin];
}

static int peek_beyond_blanks(struct json_stream *stream)
{
	for (;;) {
		int c = json_stream_peek(stream);

		if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
			return c;
		stream->begin++;
	}
}

static enum json_stream_token json_stream_fail(struct json_stream *stream, const char *problem)
{
	if (stream->error.status == STATUS_OK) {
		stream->is_unterminated = json_stream_peek(stream) < 0;
		error_set(&stream->error, STATUS_INPUT, "%s at byte %llu",
		          stream->is_unterminated ? "the text ends" : problem, (unsigned long long)here(stream));
	}
	return STREAM_ERROR;
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static void json_stream_add_text(struct json_stream *stream, const char *bytes, size_t length)
{
	size_t room = JSON_STREAM_TEXT - stream->length;

	if (length > room) {
		stream->is_cut = true;
		length = room;
	}
	memcpy(stream->text + stream->length, bytes, length);
	stream->length += length;
}

/* Returns the number of plain bytes from begin on. */
static size_t plain_run(const struct json_stream *stream)
{
	const char *at = stream->window + stream->begin;
	const char *end = stream->window + stream->end;

	while (at < end && (unsigned char)*at >= 0x20 && *at != '"' && *at != '\\')
		at++;
	return (size_t)(at - stream->window) - stream->begin;
}

static bool json_stream_read_string(struct json_stream *stream)
{
	stream->begin++; /* skip the quote */
	for (;;) {
		size_t run = plain_run(stream);
		char pair[2];
		int c;

		json_stream_add_text(stream, stream->window + stream->begin, run);
		stream->begin += run;
		c = json_stream_peek(stream);
		if (c < 0)
			return false;
		if (c >= 0x20 && c != '"' && c != '\\')
			continue; /* the run continued in the next window */
		stream->begin++;
		if (c == '"')
			return true;
		pair[0] = (char)c;
		if (c != '\\') {
			stream->has_control = true;
			json_stream_add_text(stream, pair, 1);
			continue;
		}
		c = json_stream_peek(stream);
		if (c < 0)
			return false;
		stream->begin++;
		stream->has_unicode_escape |= c == 'u';
		pair[1] = (char)c;
		json_stream_add_text(stream, pair, 2);
	}
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word_byte(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.' ||
	       c == '/' || c == '_';
}

/* Returns the number of bytes in the window that belong to a number or a bare word. */
static size_t word_run(const struct json_stream *stream)
{
	size_t at = stream->begin;

	while (at < stream->end && is_word_byte(stream->window[at]))
		at++;
	return at - stream->begin;
}

static bool skip_digits(const char **at)
{
	const char *first = *at;

	while (is_digit(**at))
		++*at;
	return *at > first;
}

static bool json_stream_is_number(const char *at)
{
	at += *at == '-';
	if (!skip_digits(&at))
		return false;
	if (*at == '.' && (at++, !skip_digits(&at)))
		return false;
	if (*at == 'e' || *at == 'E') {
		at++;
		at += *at == '+' || *at == '-';
		if (!skip_digits(&at))
			return false;
	}
	return *at == '\0';
}

static enum json_stream_token json_stream_read_word(struct json_stream *stream)
{
	static const struct {
		const char *text;
		enum json_stream_token token;
	} words[] = {
		{"true", STREAM_TRUE},      {"false", STREAM_FALSE}, {"null", STREAM_NULL}, {"NaN", STREAM_BARE},
		{"-NaN", STREAM_BARE},      {"nan", STREAM_BARE},    {"-nan", STREAM_BARE}, {"Infinity", STREAM_BARE},
		{"-Infinity", STREAM_BARE}, {"inf", STREAM_BARE},    {"-inf", STREAM_BARE}, {"N/A", STREAM_BARE},
	};
	while (json_stream_peek(stream) >= 0) {
		size_t run = word_run(stream);

		json_stream_add_text(stream, stream->window + stream->begin, run);
		stream->begin += run;
		if (stream->begin < stream->end)
			break;
	}
	stream->text[stream->length] = '\0';
	if (json_stream_is_number(stream->text) && !stream->is_cut)
		return STREAM_NUMBER;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(stream->text, words[i].text) == 0)
			return words[i].token;
	return json_stream_fail(stream, "a value was expected");
}

static enum json_stream_token json_stream_read_key(struct json_stream *stream)
{
	if (!json_stream_read_string(stream))
		return json_stream_fail(stream, "a key was expected");
	stream->text[stream->length] = '\0';
	if (peek_beyond_blanks(stream) != ':')
		return json_stream_fail(stream, "':' was expected");
	stream->colon_offset = here(stream);
	stream->begin++;
	stream->next = NEXT_VALUE;
	return STREAM_KEY;
}

static enum json_stream_token open_container(struct json_stream *stream, bool is_object)
{
	if (stream->depth == JSON_STREAM_DEPTH)
		return json_stream_fail(stream, "nested more than 512 deep");
	stream->begin++;
	stream->is_object[stream->depth++] = is_object;
	stream->next = NEXT_FIRST;
	return is_object ? STREAM_OBJECT_BEGIN : STREAM_ARRAY_BEGIN;
}

static enum json_stream_token close_container(struct json_stream *stream)
{
	bool is_object = stream->is_object[--stream->depth];

	stream->begin++;
	stream->next = NEXT_COMMA;
	return is_object ? STREAM_OBJECT_END : STREAM_ARRAY_END;
}

static enum json_stream_token json_stream_read_value(struct json_stream *stream, int c)
{
	enum json_stream_token token;

	if (c == '{' || c == '[')
		return open_container(stream, c == '{');
	if (c == '"')
		token = json_stream_read_string(stream) ? STREAM_STRING
		                                        : json_stream_fail(stream, "the string does not end");
	else
		token = json_stream_read_word(stream);
	stream->text[stream->length] = '\0';
	stream->next = NEXT_COMMA;
	return token;
}

enum json_stream_token json_stream_next(struct json_stream *stream)
{
	int c;

	if (stream->error.status != STATUS_OK)
		return STREAM_ERROR;
	stream->length = 0;
	stream->text[0] = '\0';
	stream->is_cut = stream->has_control = stream->has_unicode_escape = false;
	c = peek_beyond_blanks(stream);
	bool is_in_object = stream->depth && stream->is_object[stream->depth - 1];
	if (stream->depth == 0 && stream->next == NEXT_COMMA)
		return c < 0 && stream->error.status == STATUS_OK ? STREAM_END
		                                                  : json_stream_fail(stream, "the end was expected");
	if (stream->next == NEXT_COMMA && c == ',') {
		stream->begin++;
		stream->next = NEXT_ITEM;
		c = peek_beyond_blanks(stream);
	} else if ((stream->next == NEXT_COMMA || stream->next == NEXT_FIRST) && c == (is_in_object ? '}' : ']')) {
		stream->offset = here(stream);
		return close_container(stream);
	} else if (stream->next == NEXT_COMMA) {
		return json_stream_fail(stream, "',' or the end of the list was expected");
	}
	stream->offset = here(stream);
	if (c < 0)
		return json_stream_fail(stream, "a value was expected");
	if (is_in_object && (stream->next == NEXT_FIRST || stream->next == NEXT_ITEM))
		return c == '"' ? json_stream_read_key(stream) : json_stream_fail(stream, "a key was expected");
	return json_stream_read_value(stream, c);
}

bool json_stream_skip(struct json_stream *stream, enum json_stream_token token)
{
	int depth = stream->depth - 1;

	if (token == STREAM_ERROR)
		return false;
	if (token != STREAM_OBJECT_BEGIN && token != STREAM_ARRAY_BEGIN)
		return true;
	while (stream->depth > depth)
		if (json_stream_next(stream) == STREAM_ERROR)
			return false;
	return true;
}
