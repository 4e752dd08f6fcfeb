/* SPDX-License-Identifier: Apache-2.0
 *
 * shell.h: a text as one word of a shell, for commands that are shown to be copied. Bare where it needs nothing, 'in quotes' where it
 * does, and as $'...' with escapes where it holds control characters, which a terminal would obey. A header alone, without memory of
 * its own: the recorder uses it too.
 */
#ifndef BASE_SHELL_H
#define BASE_SHELL_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHELL_PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%"

/* At text[i]: a control character of ASCII, or a byte of one of U+0080 to U+009F. */
static inline bool shell_is_control(const char *text, size_t i)
{
	unsigned char here = (unsigned char)text[i], next = here ? (unsigned char)text[i + 1] : 0;
	unsigned char before = i ? (unsigned char)text[i - 1] : 0;

	return here < 0x20 || here == 0x7f || (here == 0xc2 && next >= 0x80 && next < 0xa0) ||
	       (before == 0xc2 && here >= 0x80 && here < 0xa0);
}

/* Cut where `out` is full (at least 4 bytes); 4 bytes for each of the text and 4 more are always enough. */
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
