/* SPDX-License-Identifier: Apache-2.0
 *
 * shell.h: quotes a text as one shell word, for commands that users copy. The word is bare if it needs no quotes,
 * otherwise 'in quotes'. If it has control characters, which a terminal would obey, it is written as $'...' with
 * escapes. There is no .c file and no allocation, because the recorder uses it too.
 */
#ifndef BASE_SHELL_H
#define BASE_SHELL_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHELL_PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%"

/* Returns true if text[i] is an ASCII control character, or a byte of a character from U+0080 to U+009F. */
static inline bool shell_is_control(const char *text, size_t i)
{
	unsigned char here = (unsigned char)text[i], next = here ? (unsigned char)text[i + 1] : 0;
	unsigned char before = i ? (unsigned char)text[i - 1] : 0;

	return here < 0x20 || here == 0x7f || (here == 0xc2 && next >= 0x80 && next < 0xa0) ||
	       (before == 0xc2 && here >= 0x80 && here < 0xa0);
}

/* Cuts the word if `out` (at least 4 bytes) is full. 4 bytes per byte of the text plus 4 are always enough. */
static inline void shell_quote(char *out, size_t bytes, const char *text)
{
	size_t at = 0;
	bool has_control = false;

	if (text[0] && !text[strspn(text, SHELL_PLAIN)]) {
		snprintf(out, bytes, "%s", text);
		return;
	}
	for (size_t i = 0; text[i]; i++)
		has_control |= shell_is_control(text, i);
	at += (size_t)snprintf(out, bytes, has_control ? "$'" : "'");
	for (size_t i = 0; text[i] && at + 6 < bytes; i++) {
		const char *form = "%c";

		if (text[i] == '\'')
			form = has_control ? "\\%c" : "'\\%c'";
		else if (has_control && text[i] == '\\')
			form = "\\%c";
		else if (has_control && shell_is_control(text, i))
			form = "\\%03o";
		at += (size_t)snprintf(out + at, bytes - at, form, (unsigned char)text[i]);
	}
	snprintf(out + at, bytes - at, "'");
}

#endif
