/* SPDX-License-Identifier: Apache-2.0
 *
 * json_write.h: writes one JSON document into a buffer. The writer adds commas, quotes and nesting:
 *
 *     struct json_writer json;
 *     json_writer_init(&json, &out, JSON_PRETTY);
 *     json_object_begin(&json);
 *     json_key(&json, "schema"), json_string(&json, "stepscope.summary/1");
 *     json_key(&json, "steps"), json_int(&json, 20);
 *     json_object_end(&json);
 *
 * The writer makes strings valid UTF-8 (bad bytes become U+FFFD) and writes control characters as \u00XX. It writes
 * doubles with the fewest digits that read back the same, NaN and infinities as null. Misuse (a key in an array) is an
 * assert. Nesting is at most 64 deep.
 */
#ifndef BASE_JSON_WRITE_H
#define BASE_JSON_WRITE_H

#include "base/buffer.h"

enum json_style {
	JSON_COMPACT,
	JSON_PRETTY
};

struct json_writer {
	struct buffer *out;
	enum json_style style;
	int depth;
	bool is_key_pending;
	uint8_t has_items[64];
	uint8_t is_object[64];
};

void json_writer_init(struct json_writer *json, struct buffer *out, enum json_style style);
void json_object_begin(struct json_writer *json);
void json_object_end(struct json_writer *json);
void json_array_begin(struct json_writer *json);
void json_array_end(struct json_writer *json);
void json_key(struct json_writer *json, const char *key);
void json_string(struct json_writer *json, const char *text);
void json_string_n(struct json_writer *json, const char *text, size_t length);
void json_int(struct json_writer *json, int64_t value);
void json_uint(struct json_writer *json, uint64_t value);
void json_double(struct json_writer *json, double value);
void json_bool(struct json_writer *json, bool value);
void json_null(struct json_writer *json);

/* Appends text as a quoted JSON string. Exporters that format by hand use it, too. */
void json_quote(struct buffer *out, const char *text, size_t length);
/* Appends the shortest decimal form of value that reads back the same; "null" for NaN and infinities. */
void json_number(struct buffer *out, double value);

#endif
