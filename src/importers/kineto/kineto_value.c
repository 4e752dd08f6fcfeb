/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_value.c: see kineto_value.h.
 */
#include "importers/kineto/kineto_value.h"

#include "base/utf8.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 19 /* digits that fit in 64 bits */
#define EXPONENT_MAX 1000

/* ---- numbers ---- */

struct decimal { /* mantissa * 10^exponent */
	uint64_t mantissa;
	int exponent;
	bool is_negative;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Ignores digits after the nineteenth: they are at most thousandths of a nanosecond, or the number exceeds 64 bits. */
static const char *read_digits(const char *at, const char *end, struct decimal *decimal, int *digits, bool is_fraction)
{
	for (; at < end && is_digit(*at); at++) {
		if (*digits == 0 && *at == '0') {
			decimal->exponent -= is_fraction;
			continue;
		}
		if (*digits >= DIGITS_MAX) {
			decimal->exponent += !is_fraction;
			continue;
		}
		decimal->mantissa = decimal->mantissa * 10 + (uint64_t)(*at - '0');
		decimal->exponent -= is_fraction;
		++*digits;
	}
	return at;
}

/* Converts eight bytes of text, the first one lowest, to a number. Returns false if not all are digits. */
static bool read_eight(uint64_t text, uint64_t *number)
{
	uint64_t digits = text ^ 0x3030303030303030u;
	if ((digits | (digits + 0x0606060606060606u)) & 0xf0f0f0f0f0f0f0f0u)
		return false;
	digits = digits * 10 + (digits >> 8); /* pairs, in every other byte */
	*number = ((digits & 0xff000000ffu) * 0xf424000000064u + (digits >> 16 & 0xff000000ffu) * 0x271000000001u) >>
	          32;
	return true;
}

/* Appends n digits, at least one, to the number. Returns false if other bytes are among them. */
static inline bool read_run(const char *at, size_t n, uint64_t *number)
{
	assert(n > 0);
	static const uint32_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
	size_t head = (n - 1) % 8 + 1;
	uint64_t text, eight;
	memcpy(&text, at, 8); /* the bytes after them are readable */
	text = le64toh(text) << 8 * (8 - head) | 0x3030303030303030u >> 4 * head >> 4 * head;
	if (!read_eight(text, &eight))
		return false;
	*number = *number * powers[head] + eight;
	for (at += head, n -= head; n; at += 8, n -= 8) {
		memcpy(&text, at, 8);
		if (!read_eight(le64toh(text), &eight))
			return false;
		*number = *number * 100000000 + eight;
	}
	return true;
}

static bool has_digits(const struct kineto_value *value)
{
	return (value->type == VALUE_NUMBER || value->type == VALUE_STRING) && value->length;
}

/* Reads nearly all whole numbers. Returns false if the value may be another number. */
static inline bool read_plain_whole(const struct kineto_value *value, uint64_t *number)
{
	*number = 0;
	return has_digits(value) && value->length < DIGITS_MAX && read_run(value->at, value->length, number);
}

/* Reads nearly all times: those with three digits after the point. */
static inline bool read_plain_time(const struct kineto_value *value, uint64_t *ns)
{
	uint32_t whole = value->length - 4;
	*ns = 0;
	return has_digits(value) && value->length > 4 && whole <= DIGITS_MAX - 3 && value->at[whole] == '.' &&
	       read_run(value->at, whole, ns) && read_run(value->at + whole + 1, 3, ns) && *ns <= INT64_MAX;
}

/* Reads nearly all numbers: at most nineteen digits, and at most one point between them. Returns false if the text may
 * be another number. The text must not be empty. */
static bool kineto_value_read_plain(const char *at, const char *end, struct decimal *decimal)
{
	assert(at < end);
	size_t length = (size_t)(end - at);
	if (length > DIGITS_MAX + 1)
		return false;
	*decimal = (struct decimal){0};
	if (length <= DIGITS_MAX && read_run(at, length, &decimal->mantissa))
		return true;
	const char *point = memchr(at, '.', length);
	size_t whole = point ? (size_t)(point - at) : length, fraction = point ? length - whole - 1 : 0;
	*decimal = (struct decimal){.exponent = -(int)fraction};
	if (!whole || (point && !fraction) || whole + fraction > DIGITS_MAX)
		return false;
	return read_run(at, whole, &decimal->mantissa) && (!point || read_run(point + 1, fraction, &decimal->mantissa));
}

static bool read_decimal(const struct kineto_value *value, struct decimal *decimal)
{
	int digits = 0, exponent = 0;
	if (!has_digits(value))
		return false;
	const char *at = value->at, *end = at + value->length, *first;
	if (kineto_value_read_plain(at, end, decimal))
		return true;
	*decimal = (struct decimal){.is_negative = at < end && *at == '-'};
	at += at < end && (*at == '-' || *at == '+');
	first = at;
	at = read_digits(at, end, decimal, &digits, false);
	if (at < end && *at == '.')
		at = read_digits(at + 1, end, decimal, &digits, true);
	if (at == first || (at == first + 1 && *first == '.'))
		return false;
	if (at < end && (*at == 'e' || *at == 'E')) {
		bool is_negative = ++at < end && *at == '-';
		at += at < end && (*at == '-' || *at == '+');
		first = at;
		for (; at < end && is_digit(*at); at++)
			exponent = exponent > EXPONENT_MAX ? exponent : exponent * 10 + (*at - '0');
		if (at == first)
			return false;
		decimal->exponent += is_negative ? -exponent : exponent;
	}
	return at == end;
}

/* Multiplies by 10^exponent; negative exponents round. */
static bool scale(uint64_t mantissa, int exponent, uint64_t *result)
{
	uint64_t divisor = 1;
	for (; exponent > 0 && mantissa; exponent--)
		if (__builtin_mul_overflow(mantissa, 10, &mantissa))
			return false;
	for (; exponent < 0; exponent++) {
		if (divisor > UINT64_MAX / 10) { /* the result is less than a tenth */
			*result = 0;
			return true;
		}
		divisor *= 10;
	}
	uint64_t rest = mantissa % divisor;
	*result = mantissa / divisor + (divisor > 1 && rest >= divisor - rest);
	return true;
}

static bool with_sign(uint64_t number, bool is_negative, int64_t *result)
{
	if (number > INT64_MAX)
		return false;
	*result = is_negative ? -(int64_t)number : (int64_t)number;
	return true;
}

bool kineto_nanoseconds(const struct kineto_value *value, int64_t *ns)
{
	struct decimal decimal;
	uint64_t number;
	if (read_plain_time(value, &number)) {
		*ns = (int64_t)number;
		return true;
	}
	return read_decimal(value, &decimal) && scale(decimal.mantissa, decimal.exponent + 3, &number) &&
	       with_sign(number, decimal.is_negative, ns);
}

static bool read_hexadecimal(const struct kineto_value *value, uint64_t *number)
{
	if (value->type != VALUE_STRING || value->length < 3 || value->length > 18 || value->at[0] != '0' ||
	    (value->at[1] | 0x20) != 'x')
		return false;
	*number = 0;
	for (uint32_t i = 2; i < value->length; i++) {
		char c = value->at[i], letter = (char)(c | 0x20);
		if (!is_digit(c) && (letter < 'a' || letter > 'f'))
			return false;
		*number = *number << 4 | (uint64_t)(is_digit(c) ? c - '0' : letter - 'a' + 10);
	}
	return true;
}

static bool read_whole(const struct kineto_value *value, uint64_t *number, bool *is_negative)
{
	struct decimal decimal;
	*is_negative = false;
	if (read_hexadecimal(value, number))
		return true;
	if (!read_decimal(value, &decimal))
		return false;
	for (; decimal.exponent < 0 && decimal.mantissa % 10 == 0 && decimal.mantissa; decimal.exponent++)
		decimal.mantissa /= 10;
	*is_negative = decimal.is_negative;
	return (decimal.exponent >= 0 || !decimal.mantissa) && scale(decimal.mantissa, decimal.exponent, number);
}

bool kineto_integer(const struct kineto_value *value, int64_t *number)
{
	uint64_t magnitude;
	bool is_negative;
	if (read_plain_whole(value, &magnitude)) {
		*number = (int64_t)magnitude;
		return true;
	}
	return read_whole(value, &magnitude, &is_negative) && with_sign(magnitude, is_negative, number);
}

bool kineto_unsigned(const struct kineto_value *value, uint64_t *number)
{
	uint64_t plain;
	bool is_negative;
	if (read_plain_whole(value, &plain)) {
		*number = plain;
		return true;
	}
	return read_whole(value, number, &is_negative) && (!is_negative || !*number);
}

bool kineto_double(const struct kineto_value *value, double *number)
{
	char text[64], *end;
	if ((value->type != VALUE_NUMBER && value->type != VALUE_STRING) || !value->length ||
	    value->length >= sizeof text)
		return false;
	memcpy(text, value->at, value->length);
	text[value->length] = '\0';
	*number = strtod(text, &end);
	return !*end && isfinite(*number);
}

/* ---- texts ---- */

/* Reads four hexadecimal digits; -1: they are not. */
static int32_t read_unit(const char *at, const char *end)
{
	int32_t unit = 0;
	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = at[i], letter = (char)(c | 0x20);
		if (!is_digit(c) && (letter < 'a' || letter > 'f'))
			return -1;
		unit = unit << 4 | (is_digit(c) ? c - '0' : letter - 'a' + 10);
	}
	return unit;
}

/* Decodes the escape after "\u". Returns the first byte after it, or NULL if it is not an escape. */
static const char *append_unicode(struct buffer *out, const char *at, const char *end, bool *is_replaced)
{
	char bytes[4];
	int32_t unit = read_unit(at, end), low = -1;
	if (unit < 0)
		return NULL;
	at += 4;
	if (unit >= 0xd800 && unit < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u')
		low = read_unit(at + 2, end);
	if (low >= 0xdc00 && low < 0xe000) {
		unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
		at += 6;
	}
	if (unit == 0)
		unit = 0xfffd; /* a name cannot hold a NUL */
	*is_replaced |= unit >= 0xd800 && unit < 0xe000;
	buffer_add(out, bytes, utf8_encode(bytes, (uint32_t)unit));
	return at;
}

static const char *append_escape(struct buffer *out, const char *at, const char *end, bool *is_replaced)
{
	static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	if (at + 1 < end && at[1] == 'u') {
		const char *next = append_unicode(out, at + 2, end, is_replaced);
		if (next)
			return next;
	} else if (at + 1 < end && at[1] && strchr(letters, at[1])) {
		buffer_add_byte(out, (uint8_t)meanings[strchr(letters, at[1]) - letters]);
		return at + 2;
	}
	*is_replaced = true;
	buffer_add_byte(out, '\\');
	return at + 1;
}

bool kineto_append_text(struct buffer *out, const struct kineto_value *value)
{
	bool is_replaced = false;
	if (!value->length)
		return false;
	const char *at = value->at, *end = at + value->length;
	if (!value->flags) {
		buffer_add(out, at, value->length);
		return false;
	}
	while (at < end) {
		size_t bytes;
		if (*at == '\\' && value->type == VALUE_STRING) {
			at = append_escape(out, at, end, &is_replaced);
			continue;
		}
		bytes = *at ? utf8_length(at, (size_t)(end - at)) : 0;
		is_replaced |= !bytes && *at;
		if (bytes)
			buffer_add(out, at, bytes);
		else
			buffer_add_text(out, UTF8_REPLACEMENT);
		at += bytes ? bytes : 1;
	}
	return is_replaced;
}
