/* SPDX-License-Identifier: Apache-2.0
 *
 * utf8.h: checks UTF-8 byte by byte. It has no tables of characters; text.h computes widths.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for a byte that is not valid */

/* Returns the bytes of the character at text (1 to 4), or 0 if it is not valid UTF-8 or is cut off at text + length. */
size_t utf8_length(const char *text, size_t length);

/* Returns the length of the text cut to at most `most` bytes, without a partial character at its end. Text that is not
 * UTF-8 is cut anywhere. */
static inline size_t utf8_cut(const char *text, size_t length, size_t most)
{
	size_t kept = length < most ? length : most;
	for (int i = 0; i < 3 && kept < length && kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80; i++)
		kept--;
	return kept;
}

/* Writes the character into out (4 bytes large) and returns its length. Surrogates and numbers beyond U+10FFFF are
 * written as U+FFFD. */
size_t utf8_encode(char *out, uint32_t character);

struct buffer;

/* Appends the text, with UTF8_REPLACEMENT for every byte that is not valid. Returns true if all bytes were valid. */
bool utf8_append_valid(struct buffer *out, const char *text, size_t length);

#endif
