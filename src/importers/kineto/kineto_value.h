/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_value.h: JSON values as they are written in the text, and their meanings: exact times, numbers, strings. A
 * value is a slice of memory that it does not own, and is valid as long as that memory.
 */
#ifndef IMPORTERS_KINETO_KINETO_VALUE_H
#define IMPORTERS_KINETO_KINETO_VALUE_H

#include "base/buffer.h"

#include <string.h>

enum kineto_type {
	VALUE_NONE, /* the key is absent */
	VALUE_STRING,
	VALUE_NUMBER,
	VALUE_TRUE,
	VALUE_FALSE,
	VALUE_NULL,
	VALUE_BARE, /* NaN, inf, N/A: a word that JSON does not have */
	VALUE_OBJECT,
	VALUE_ARRAY,
};

enum kineto_text_flag { /* work that a string needs before it can be used */
	TEXT_HAS_ESCAPE = 1,
	TEXT_HAS_CONTROL = 2,  /* unescaped bytes below 0x20 */
	TEXT_IS_NOT_ASCII = 4, /* maybe not even UTF-8 */
};

struct kineto_value {
	/* For a string, after the quote; for a container, at its bracket. KINETO_PADDING bytes after it are
	 * readable. */
	const char *at;
	uint32_t length;
	uint8_t type;  /* enum kineto_type */
	uint8_t flags; /* enum kineto_text_flag */
};

/* Converts microseconds, also written as a string, to nanoseconds: exact, halves rounded away from 0. Returns false if
 * the value is not a number or exceeds 64 bits. */
bool kineto_nanoseconds(const struct kineto_value *value, int64_t *ns);
/* Reads a whole number, also from a string, with "0x", or with zeros after the decimal point. Returns false if the
 * value is not a whole number or does not fit. */
bool kineto_integer(const struct kineto_value *value, int64_t *number);
bool kineto_unsigned(const struct kineto_value *value, uint64_t *number);
/* Returns false if the value is not a finite number. */
bool kineto_double(const struct kineto_value *value, double *number);
/* Returns true if the value is this text. The text needs no escapes. */
static inline bool kineto_is_text(const struct kineto_value *value, const char *text)
{
	size_t length = strlen(text); /* the compiler knows the length of a literal */
	return value->length == length && value->type == VALUE_STRING && memcmp(value->at, text, length) == 0;
}

/* Appends a string with its escapes resolved, as valid UTF-8 without NUL; a number or word is appended as written.
 * Returns true if bytes that are not UTF-8 were replaced. A backslash before a character that is not an escape stays a
 * backslash. */
bool kineto_append_text(struct buffer *out, const struct kineto_value *value);

#endif
