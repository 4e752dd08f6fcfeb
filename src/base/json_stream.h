/* SPDX-License-Identifier: Apache-2.0
 *
 * json_stream.h: a pull reader over JSON that comes in pieces, in constant memory. It forgives what real traces contain
 * (control characters in strings, NaN, N/A, a missing "]" at the end) and says that it did. base/json_read.h is the strict
 * reader for texts in memory.
 *
 * Strings are handed out as written between the quotes (escapes are not decoded), at most JSON_STREAM_TEXT bytes.
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

struct json_stream {
	struct input_stream *input;
	char *window;
	size_t begin, end;      /* unread part of window */
	uint64_t window_offset; /* of window[0] in the decompressed text */
	bool is_at_end;
	int depth;
	uint8_t is_object[JSON_STREAM_DEPTH];
	bool is_key_next;  /* in an object: a key, else a value */
	bool is_first;     /* nothing in this container yet */
	bool is_item_done; /* a value is complete: "," or the end must follow */
	/* of the last token */
	uint64_t offset;       /* of its first byte */
	uint64_t colon_offset; /* KEY: of the ":" behind it */
	size_t length;
	char text[JSON_STREAM_TEXT + 1];
	bool is_cut; /* longer than that */
	bool has_control, has_unicode_escape;
	/* after STREAM_ERROR */
	struct error error;
	bool is_unterminated; /* the text ended in the middle */
};

enum status json_stream_init(struct json_stream *stream, struct input_stream *input, struct error *err) MUST_CHECK;
void json_stream_release(struct json_stream *stream);
enum json_stream_token json_stream_next(struct json_stream *stream);
/* After a token that begins a value: reads to its end. False on error. */
bool json_stream_skip(struct json_stream *stream, enum json_stream_token token);

#endif
