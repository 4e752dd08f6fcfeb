/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_json_read.c: reads any bytes as JSON. What the reader accepts is written again and must read the same; skipping
 * a document must accept exactly what reading it accepts.
 */
#include "base/json_read.h"
#include "base/json_write.h"
#include "base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_OF_WRITER 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

static void check_text(const struct buffer *text)
{
	size_t at = 0;

	check(text->data[text->length] == '\0');
	while (at < text->length) {
		size_t bytes = utf8_length(text->data + at, text->length - at);

		check(bytes > 0);
		at += bytes;
	}
}

/* Numbers go out as text: the writer's doubles are not what is tested. */
static void write_token(struct json_writer *json, const struct json_reader *reader, enum json_token token)
{
	switch (token) {
	case JSON_OBJECT_BEGIN:
		json_object_begin(json);
		break;
	case JSON_OBJECT_END:
		json_object_end(json);
		break;
	case JSON_ARRAY_BEGIN:
		json_array_begin(json);
		break;
	case JSON_ARRAY_END:
		json_array_end(json);
		break;
	case JSON_KEY:
		json_key(json, reader->text.data);
		break;
	case JSON_STRING:
	case JSON_NUMBER:
		json_string_n(json, reader->text.data, reader->text.length);
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		json_bool(json, token == JSON_TRUE);
		break;
	default:
		json_null(json);
	}
}

/* Reads all and writes what it read unless that is too deep. Returns whether the document was accepted. */
static bool read_all(const char *data, size_t size, struct buffer *out, enum json_style style, bool *is_written)
{
	struct json_reader reader;
	struct json_writer json;
	enum json_token token;

	json_reader_init(&reader, data, size);
	json_writer_init(&json, out, style);
	*is_written = true;
	while ((token = json_next(&reader)) != JSON_END && token != JSON_ERROR) {
		check(reader.offset <= size && reader.depth >= 0);
		if (token == JSON_KEY || token == JSON_STRING || token == JSON_NUMBER)
			check_text(&reader.text);
		*is_written = *is_written && reader.depth < DEPTH_OF_WRITER;
		if (*is_written)
			write_token(&json, &reader, token);
	}
	check(json_next(&reader) == token);
	check((token == JSON_ERROR) == (reader.problem != NULL));
	json_reader_release(&reader);
	return token == JSON_END;
}

static bool skip_all(const char *data, size_t size)
{
	struct json_reader reader;
	bool is_good;

	json_reader_init(&reader, data, size);
	is_good = json_skip(&reader, json_next(&reader)) && json_next(&reader) == JSON_END;
	json_reader_release(&reader);
	return is_good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	enum json_style style = size % 2 ? JSON_PRETTY : JSON_COMPACT;
	struct buffer first;
	struct buffer second;
	bool is_written;
	bool is_good;

	buffer_init(&first, 64 * size + 64);
	buffer_init(&second, 64 * size + 64);
	is_good = read_all(text, size, &first, style, &is_written);
	check(is_good == skip_all(text, size));
	if (is_good && is_written && !first.is_overflown) {
		check(read_all(first.data, first.length, &second, style, &is_written));
		check(first.length == second.length && !memcmp(first.data, second.data, first.length));
	}
	buffer_release(&first);
	buffer_release(&second);
	return 0;
}
