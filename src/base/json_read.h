/* SPDX-License-Identifier: Apache-2.0
 *
 * json_read.h: a pull reader over JSON text in memory, in constant memory. It is strict (RFC 8259); errors carry the
 * byte offset. Returned text is unescaped into the reader's buffer and valid until the next call.
 *
 *     while ((token = json_next(&reader)) != JSON_END && token != JSON_ERROR) ...
 */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include "base/buffer.h"

enum json_token {
	JSON_ERROR,
	JSON_END, /* the document is complete and only blanks follow */
	JSON_OBJECT_BEGIN,
	JSON_OBJECT_END,
	JSON_ARRAY_BEGIN,
	JSON_ARRAY_END,
	JSON_KEY,
	JSON_STRING,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL,
};

struct json_reader {
	const char *data;
	size_t length;
	size_t offset;
	struct buffer text;     /* of KEY, STRING (unescaped) and NUMBER (as written) */
	const char *problem;    /* constant text, after JSON_ERROR */
	uint8_t is_object[512]; /* nesting is at most 512 deep */
	int depth;
	int state;
	bool takes_nan; /* set after init: NaN, Infinity and -Infinity are NUMBERs, as Python's json writes them */
};

void json_reader_init(struct json_reader *reader, const char *data, size_t length);
void json_reader_release(struct json_reader *reader);
enum json_token json_next(struct json_reader *reader);
/* After a token that begins a value (also a scalar): skips to the value's end. Returns false on error. */
bool json_skip(struct json_reader *reader, enum json_token token);

#endif
