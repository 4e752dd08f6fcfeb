/* SPDX-License-Identifier: Apache-2.0
 *
 * export_number.h: converts numbers to text without printf, for inner loops. Every function writes at `to`, which must
 * have room, and returns the end of the text.
 */
#ifndef OUTPUT_EXPORT_EXPORT_NUMBER_H
#define OUTPUT_EXPORT_EXPORT_NUMBER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NUMBER_BYTES 24 /* longest text of the functions below */

static const char number_pairs[201] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				      "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				      "8081828384858687888990919293949596979899";

static inline char *put_u64(char *to, uint64_t value)
{
	char digits[20];
	char *first = digits + sizeof(digits);
	size_t length;

	while (value >= 100) {
		first -= 2;
		memcpy(first, number_pairs + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10) {
		first -= 2;
		memcpy(first, number_pairs + value * 2, 2);
	} else {
		*--first = (char)('0' + value);
	}
	length = (size_t)(digits + sizeof(digits) - first);
	memcpy(to, first, length);
	return to + length;
}

static inline char *put_i64(char *to, int64_t value)
{
	if (value >= 0)
		return put_u64(to, (uint64_t)value);
	*to++ = '-';
	return put_u64(to, 0 - (uint64_t)value);
}

/* Writes nanoseconds as microseconds with exactly three decimals. */
static inline char *put_us(char *to, int64_t ns)
{
	uint64_t magnitude = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	unsigned rest = (unsigned)(magnitude % 1000);

	if (ns < 0)
		*to++ = '-';
	to = put_u64(to, magnitude / 1000);
	*to++ = '.';
	*to++ = (char)('0' + rest / 100);
	memcpy(to, number_pairs + (size_t)(rest % 100) * 2, 2);
	return to + 2;
}

/* Copies in pieces of 16 bytes: both buffers need up to 15 bytes after `length`. */
static inline char *put_padded(char *to, const char *from, size_t length)
{
	for (size_t i = 0; i < length; i += 16)
		memcpy(to + i, from + i, 16);
	return to + length;
}

#endif
