/* SPDX-License-Identifier: Apache-2.0
 *
 * json_stream.h: a pull reader over JSON that comes in pieces, in constant memory. It accepts defects of real traces
 * (control characters in strings, NaN, N/A, a missing "]" at the end) and reports them. base/json_read.h is the strict
 * reader for texts in memory.
 *
 * Strings are returned as written between the quotes (escapes are not decoded), at most JSON_STREAM_TEXT bytes.
 */
#ifndef BASE_JSON_STREAM_H
#define BASE_JSON_STREAM_H

#include "base/input_stream.h"

#include <stdbool.h>

#define JSON_STREAM_TEXT 4096
#define JSON_STREAM_DEPTH 512

enum json_stream_token {
	STREAM_ERROR, /* status and error are in the stream */
	STREAM_END,
	STREAM_OBJECT_BEGIN,
	STREAM_OBJECT_END,
	STREAM_ARRAY_BEGIN,
	STREAM_ARRAY_END,
	STREAM_KEY,
	STREAM_STRING,
	STREAM_NUMBER,
	STREAM_TRUE,
	STREAM_FALSE,
	STREAM_NULL,
	STREAM_BARE, /* NaN, Infinity, N/A */
};

/* What may come next. An item is a key in an object, otherwise a value. */
enum json_stream_next {
	NEXT_VALUE, /* the text starts, or a key was read: a value */
	NEXT_FIRST, /* a container starts: an item, or its end */
	NEXT_ITEM,  /* a "," was read: an item */
	NEXT_COMMA, /* a value is complete: a ",", or the end of the container or of the text */
};

struct json_stream {
	struct input_stream *input;
	char *window;
	size_t begin, end;      /* unread part of window */
	uint64_t window_offset; /* of window[0] in the decompressed text */
	bool is_at_end;
	int depth;
	uint8_t is_object[JSON_STREAM_DEPTH];
	enum json_stream_next next;
	/* fields of the last token */
	uint64_t offset;       /* of the token's first byte */
	uint64_t colon_offset; /* KEY: of the ":" after it */
	size_t length;
	char text[JSON_STREAM_TEXT + 1];
	bool is_cut; /* the token is longer than JSON_STREAM_TEXT */
	bool has_control, has_unicode_escape;
	/* set after STREAM_ERROR */
	struct error error;
	bool is_unterminated; /* the text ended inside a value */
};

enum status json_stream_init(struct json_stream *stream, struct input_stream *input, struct error *err) MUST_CHECK;
void json_stream_release(struct json_stream *stream);
enum json_stream_token json_stream_next(struct json_stream *stream);
/* After a token that begins a value: reads to the value's end. Returns false on error. */
bool json_stream_skip(struct json_stream *stream, enum json_stream_token token);

#endif
