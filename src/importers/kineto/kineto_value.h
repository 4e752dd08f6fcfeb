/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_value.h: values of JSON as they stand in the text, and what they mean: exact times, numbers, strings. A value is a slice of
 * somebody else's memory and as short-lived.
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

enum kineto_text_flag { /* of a string: what it needs before it can be used */
	TEXT_HAS_ESCAPE = 1,
	TEXT_HAS_CONTROL = 2,  /* bytes below 0x20 as they are */
	TEXT_IS_NOT_ASCII = 4, /* maybe not even UTF-8 */
};

struct kineto_value {
	/* A string: behind the quote; a container: at its bracket. KINETO_PADDING bytes behind it are readable. */
	const char *at;
	uint32_t length;
	uint8_t type;  /* enum kineto_type */
	uint8_t flags; /* enum kineto_text_flag */
};

/* A number of microseconds, also written as a string, in nanoseconds: exact, the half rounded away from 0. False: it is none, or
 * beyond what 64 bits hold. */
bool kineto_nanoseconds(const struct kineto_value *value, int64_t *ns);
/* A whole number, also as a string, with "0x" or with zeros behind the point. False: it is none, or does not fit. */
bool kineto_integer(const struct kineto_value *value, int64_t *number);
bool kineto_unsigned(const struct kineto_value *value, uint64_t *number);
/* False: it is no finite number. */
bool kineto_double(const struct kineto_value *value, double *number);
/* Equal to a plain text? */
static inline bool kineto_is_text(const struct kineto_value *value, const char *text)
{
	size_t length = strlen(text); /* of a literal the compiler knows it */
	return value->length == length && value->type == VALUE_STRING && memcmp(value->at, text, length) == 0;
}

/* Appends a string with its escapes resolved, as valid UTF-8 without NUL; a number or word as it is written. True when bytes that are no
 * UTF-8 were replaced. A backslash before anything that is no escape is a backslash. */
bool kineto_append_text(struct buffer *out, const struct kineto_value *value);

#endif
