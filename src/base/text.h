/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h: makes names from other programs fit for a terminal or a file. Widths come from utf8proc.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/buffer.h"

#include <stdbool.h>
#include <string.h>

/* Returns the columns that text takes on a terminal. A byte that is not UTF-8 counts as one, a control character as
 * zero. */
size_t text_width(const char *text);

/* Appends text as valid UTF-8 (a bad byte becomes U+FFFD) with control characters, NUL included, as blanks. */
void text_clean(struct buffer *out, const char *text, size_t length);

/* Shortens a long text (a name may be a megabyte long): if it is longer than head, tail and " ... " together, its
 * middle becomes " ... ". */
void text_shorten(struct buffer *text, size_t head_bytes, size_t tail_bytes);

/* Writes "a, b or c", cut off at `bytes`. */
void text_alternatives(char *text, size_t bytes, const char *const *words, size_t count);

static inline bool text_ends_with(const char *text, const char *ending)
{
	size_t length = strlen(text), tail = strlen(ending);
	return length >= tail && strcmp(text + length - tail, ending) == 0;
}

#endif
