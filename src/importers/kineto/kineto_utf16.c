/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_utf16.c: reads UTF-16 as UTF-8. Traces that went through a Windows shell are UTF-16.
 */
#include "importers/kineto/kineto_utf16.h"

#include "base/utf8.h"
#include "importers/kineto/kineto_text.h"

#include <string.h>

enum kineto_encoding kineto_encoding_of(const char *head, size_t length)
{
	if (length >= 2 &&
	    (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "{\0", 2) == 0 || memcmp(head, "[\0", 2) == 0))
		return KINETO_UTF16_LITTLE;
	if (length >= 2 &&
	    (memcmp(head, "\xfe\xff", 2) == 0 || memcmp(head, "\0{", 2) == 0 || memcmp(head, "\0[", 2) == 0))
		return KINETO_UTF16_BIG;
	return KINETO_UTF8;
}

static uint32_t unit_at(const char *at, enum kineto_encoding encoding)
{
	const uint8_t *bytes = (const uint8_t *)at;
	return encoding == KINETO_UTF16_LITTLE ? bytes[0] | (uint32_t)bytes[1] << 8
	                                       : bytes[1] | (uint32_t)bytes[0] << 8;
}

static bool is_high(uint32_t unit)
{
	return unit >= 0xd800 && unit < 0xdc00;
}

size_t kineto_decode_utf16(char *out, const char *in, size_t *length, enum kineto_encoding encoding)
{
	size_t at = 0, written = 0;
	while (at + 2 <= *length) {
		uint32_t character = unit_at(in + at, encoding);
		if (is_high(character) && at + 4 > *length)
			break;
		at += 2;
		if (is_high(character)) {
			uint32_t low = unit_at(in + at, encoding);
			bool is_pair = low >= 0xdc00 && low < 0xe000;
			character = is_pair ? 0x10000 + ((character - 0xd800) << 10) + (low - 0xdc00) : character;
			at += is_pair ? 2 : 0;
		}
		if (character != 0xfeff) /* the byte order mark */
			written += utf8_encode(out + written, character);
	}
	*length = at;
	return written;
}
