/* SPDX-License-Identifier: Apache-2.0
 *
 * json_read.c: the state says which tokens may come next; an array of bytes holds the open brackets. Bytes that are not
 * UTF-8 and halves of surrogate pairs are read as U+FFFD, not refused. Traces with such names exist, and the rest of
 * them is good.
 */
#include "base/json_read.h"

#include "base/utf8.h"

#include <string.h>

#define MAXIMUM_DEPTH ((int)sizeof(((struct json_reader *)0)->is_object))
#define MAXIMUM_TEXT ((size_t)64 * 1024 * 1024)

enum state {
	EXPECT_VALUE,
	EXPECT_ITEM_OR_END, /* after [ */
	EXPECT_KEY,
	EXPECT_KEY_OR_END, /* after { */
	EXPECT_COLON,
	EXPECT_COMMA_OR_END,
	EXPECT_NOTHING,
	FAILED,
};

void json_reader_init(struct json_reader *reader, const char *data, size_t length)
{
	memset(reader, 0, sizeof(*reader));
	reader->data = data;
	reader->length = length;
	reader->state = EXPECT_VALUE;
	buffer_init(&reader->text, MAXIMUM_TEXT);
}

void json_reader_release(struct json_reader *reader)
{
	buffer_release(&reader->text);
}

static enum json_token json_read_fail(struct json_reader *reader, const char *problem)
{
	reader->problem = problem;
	reader->state = FAILED;
	return JSON_ERROR;
}

static bool is_at_end(const struct json_reader *reader)
{
	return reader->offset >= reader->length;
}

/* Returns the next byte, NUL at the end. A NUL in the text is not valid anywhere, either. */
static char json_read_peek(const struct json_reader *reader)
{
	return is_at_end(reader) ? '\0' : reader->data[reader->offset];
}

static void skip_blanks(struct json_reader *reader)
{
	while (!is_at_end(reader)) {
		char c = reader->data[reader->offset];

		if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
			return;
		reader->offset++;
	}
}

/* Sets the state after a value. */
static void end_value(struct json_reader *reader)
{
	reader->state = reader->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

/* Returns true if one of eight bytes is a quote, a backslash, a control character or not ASCII. It may return true by
 * mistake, but never false. */
static bool is_any_special(const char *text)
{
	const uint64_t ones = 0x0101010101010101u;
	const uint64_t highs = ones * 0x80;
	uint64_t word;
	uint64_t quote;
	uint64_t backslash;

	memcpy(&word, text, sizeof(word));
	quote = word ^ ones * '"';
	backslash = word ^ ones * '\\';
	return (word | (quote - ones) | (backslash - ones) | (word - ones * 0x20)) & highs;
}

/* Returns the offset of the first byte, from `offset` on, that is not plain. */
static size_t plain_end(const struct json_reader *reader, size_t offset)
{
	while (reader->length - offset >= 8 && !is_any_special(reader->data + offset))
		offset += 8;
	while (offset < reader->length) {
		unsigned char c = (unsigned char)reader->data[offset];

		if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\')
			break;
		offset++;
	}
	return offset;
}

/* Reads four hexadecimal digits at offset. Returns -1 if they are not. */
static int32_t read_hex(const struct json_reader *reader, size_t offset)
{
	int32_t value = 0;

	if (reader->length - offset < 4)
		return -1;
	for (size_t i = 0; i < 4; i++) {
		char c = reader->data[offset + i];
		int digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			digit = (c | 0x20) - 'a' + 10;
		else
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* Starts at the u of \uXXXX and moves after it, and after the second half of a pair. */
static bool read_unicode(struct json_reader *reader, uint32_t *character)
{
	int32_t first = read_hex(reader, reader->offset + 1);
	const char *next;

	if (first < 0)
		return false;
	reader->offset += 5;
	*character = (uint32_t)first;
	if (first < 0xd800 || first > 0xdbff || reader->length - reader->offset < 6)
		return true;
	next = reader->data + reader->offset;
	if (next[0] == '\\' && next[1] == 'u') {
		int32_t second = read_hex(reader, reader->offset + 2);

		if (second >= 0xdc00 && second <= 0xdfff) {
			*character = 0x10000 + ((uint32_t)(first - 0xd800) << 10) + (uint32_t)(second - 0xdc00);
			reader->offset += 6;
		}
	}
	return true;
}

/* Starts at the backslash. */
static bool read_escape(struct json_reader *reader, bool keep)
{
	static const char names[] = "\"\\/bfnrt";
	static const char meanings[] = "\"\\/\b\f\n\r\t";
	char bytes[4];
	size_t length = 1;
	char name;

	reader->offset++;
	name = json_read_peek(reader);
	if (name == 'u') {
		uint32_t character;

		if (!read_unicode(reader, &character))
			return false;
		length = utf8_encode(bytes, character);
	} else {
		const char *found = name ? strchr(names, name) : NULL;

		if (!found)
			return false;
		bytes[0] = meanings[found - names];
		reader->offset++;
	}
	if (keep)
		buffer_add(&reader->text, bytes, length);
	return true;
}

/* Starts at a byte that is not ASCII. */
static void read_wide(struct json_reader *reader, bool keep)
{
	const char *text = reader->data + reader->offset;
	size_t bytes = utf8_length(text, reader->length - reader->offset);

	reader->offset += bytes ? bytes : 1;
	if (!keep)
		return;
	if (bytes)
		buffer_add(&reader->text, text, bytes);
	else
		buffer_add_text(&reader->text, UTF8_REPLACEMENT);
}

/* Starts at the opening quote. Keeps the text only if `keep`. */
static bool json_read_read_string(struct json_reader *reader, bool keep)
{
	buffer_clear(&reader->text);
	reader->offset++;
	for (;;) {
		size_t from = reader->offset;
		unsigned char c;

		reader->offset = plain_end(reader, from);
		if (keep)
			buffer_add(&reader->text, reader->data + from, reader->offset - from);
		if (is_at_end(reader))
			return json_read_fail(reader, "the text ends in a string"), false;
		c = (unsigned char)reader->data[reader->offset];
		if (c == '"')
			break;
		if (c < 0x20)
			return json_read_fail(reader, "a control character in a string"), false;
		if (c >= 0x80)
			read_wide(reader, keep);
		else if (!read_escape(reader, keep))
			return json_read_fail(reader, "an escape sequence that JSON does not have"), false;
	}
	if (reader->text.is_overflown)
		return json_read_fail(reader, "a string longer than 64 MiB"), false;
	reader->offset++;
	return true;
}

static bool skip_digits(struct json_reader *reader)
{
	size_t from = reader->offset;

	while (json_read_peek(reader) >= '0' && json_read_peek(reader) <= '9')
		reader->offset++;
	return reader->offset > from;
}

static bool skip_number(struct json_reader *reader)
{
	if (json_read_peek(reader) == '-')
		reader->offset++;
	if (json_read_peek(reader) == '0')
		reader->offset++;
	else if (!skip_digits(reader))
		return false;
	if (json_read_peek(reader) == '.') {
		reader->offset++;
		if (!skip_digits(reader))
			return false;
	}
	if (json_read_peek(reader) == 'e' || json_read_peek(reader) == 'E') {
		reader->offset++;
		if (json_read_peek(reader) == '+' || json_read_peek(reader) == '-')
			reader->offset++;
		return skip_digits(reader);
	}
	return true;
}

static enum json_token json_read_read_number(struct json_reader *reader)
{
	size_t from = reader->offset;

	if (!skip_number(reader))
		return json_read_fail(reader, "a malformed number");
	buffer_clear(&reader->text);
	if (!buffer_add(&reader->text, reader->data + from, reader->offset - from))
		return json_read_fail(reader, "a number longer than 64 MiB");
	end_value(reader);
	return JSON_NUMBER;
}

static enum json_token json_read_read_word(struct json_reader *reader, const char *word, enum json_token token)
{
	size_t length = strlen(word);

	if (reader->length - reader->offset < length || memcmp(reader->data + reader->offset, word, length) != 0)
		return json_read_fail(reader, "a word that JSON does not have");
	reader->offset += length;
	end_value(reader);
	return token;
}

/* Returns the length of NaN or an infinity, which JSON does not have; 0: it is another token. */
static size_t not_finite_length(const struct json_reader *reader)
{
	static const char *const words[] = {"NaN", "Infinity", "-Infinity"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t length = strlen(words[i]);

		if (reader->length - reader->offset >= length &&
		    !memcmp(reader->data + reader->offset, words[i], length))
			return length;
	}
	return 0;
}

static enum json_token read_not_finite(struct json_reader *reader)
{
	size_t length = not_finite_length(reader);

	buffer_clear(&reader->text);
	if (!buffer_add(&reader->text, reader->data + reader->offset, length))
		return json_read_fail(reader, "a number longer than 64 MiB");
	reader->offset += length;
	end_value(reader);
	return JSON_NUMBER;
}

static enum json_token open_bracket(struct json_reader *reader, bool is_object)
{
	if (reader->depth == MAXIMUM_DEPTH)
		return json_read_fail(reader, "nested more than 512 deep");
	reader->is_object[reader->depth++] = is_object;
	reader->offset++;
	reader->state = is_object ? EXPECT_KEY_OR_END : EXPECT_ITEM_OR_END;
	return is_object ? JSON_OBJECT_BEGIN : JSON_ARRAY_BEGIN;
}

static enum json_token close_bracket(struct json_reader *reader)
{
	bool is_object = reader->is_object[reader->depth - 1];

	if (json_read_peek(reader) != (is_object ? '}' : ']'))
		return json_read_fail(reader, is_object ? "',' or '}' is missing" : "',' or ']' is missing");
	reader->offset++;
	reader->depth--;
	end_value(reader);
	return is_object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

static enum json_token json_read_read_value(struct json_reader *reader, bool keep)
{
	switch (json_read_peek(reader)) {
	case '{':
		return open_bracket(reader, true);
	case '[':
		return open_bracket(reader, false);
	case '"':
		if (!json_read_read_string(reader, keep))
			return JSON_ERROR;
		end_value(reader);
		return JSON_STRING;
	case 't':
		return json_read_read_word(reader, "true", JSON_TRUE);
	case 'f':
		return json_read_read_word(reader, "false", JSON_FALSE);
	case 'n':
		return json_read_read_word(reader, "null", JSON_NULL);
	default:
		if (reader->takes_nan && not_finite_length(reader))
			return read_not_finite(reader);
		if (json_read_peek(reader) == '-' || (json_read_peek(reader) >= '0' && json_read_peek(reader) <= '9'))
			return json_read_read_number(reader);
		return json_read_fail(reader, "a value is expected");
	}
}

static enum json_token json_read_read_key(struct json_reader *reader, bool keep)
{
	if (json_read_peek(reader) != '"')
		return json_read_fail(reader, "a key is expected");
	if (!json_read_read_string(reader, keep))
		return JSON_ERROR;
	reader->state = EXPECT_COLON;
	return JSON_KEY;
}

/* Moves over a colon or comma. Returns false if there is none: then a bracket must close, or the reader has failed. */
static bool pass_separator(struct json_reader *reader)
{
	if (reader->state == EXPECT_COLON) {
		if (json_read_peek(reader) != ':')
			return json_read_fail(reader, "':' is missing"), false;
		reader->state = EXPECT_VALUE;
	} else {
		if (json_read_peek(reader) != ',')
			return false;
		reader->state = reader->is_object[reader->depth - 1] ? EXPECT_KEY : EXPECT_VALUE;
	}
	reader->offset++;
	skip_blanks(reader);
	return true;
}

static enum json_token advance(struct json_reader *reader, bool keep)
{
	skip_blanks(reader);
	if (reader->state == FAILED)
		return JSON_ERROR;
	if (reader->state == EXPECT_NOTHING)
		return is_at_end(reader) ? JSON_END : json_read_fail(reader, "text after the end of the document");
	if (is_at_end(reader))
		return json_read_fail(reader, "the text ends early");
	if ((reader->state == EXPECT_COLON || reader->state == EXPECT_COMMA_OR_END) && !pass_separator(reader))
		return reader->state == FAILED ? JSON_ERROR : close_bracket(reader);
	if (is_at_end(reader))
		return json_read_fail(reader, "the text ends early");
	switch (reader->state) {
	case EXPECT_KEY_OR_END:
		return json_read_peek(reader) == '}' ? close_bracket(reader) : json_read_read_key(reader, keep);
	case EXPECT_ITEM_OR_END:
		return json_read_peek(reader) == ']' ? close_bracket(reader) : json_read_read_value(reader, keep);
	case EXPECT_KEY:
		return json_read_read_key(reader, keep);
	default:
		return json_read_read_value(reader, keep);
	}
}

enum json_token json_next(struct json_reader *reader)
{
	return advance(reader, true);
}

bool json_skip(struct json_reader *reader, enum json_token token)
{
	int depth = reader->depth;

	if (token == JSON_KEY) /* skip the value of the key */
		token = advance(reader, false), depth = reader->depth;
	if (token == JSON_ERROR || token == JSON_END)
		return false;
	if (token != JSON_OBJECT_BEGIN && token != JSON_ARRAY_BEGIN)
		return true;
	while (reader->depth >= depth) {
		if (advance(reader, false) == JSON_ERROR)
			return false;
	}
	return true;
}
