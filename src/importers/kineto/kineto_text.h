/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_text.h: the text of a trace through a window that moves over the file. Text that was read stays in place until
 * the next kineto_text_more(). Memory does not depend on the size of the file.
 */
#ifndef IMPORTERS_KINETO_KINETO_TEXT_H
#define IMPORTERS_KINETO_KINETO_TEXT_H

#include "base/error.h"
#include "base/input_stream.h"
#include "base/read_ahead.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KINETO_WINDOW_MAX ((size_t)32 << 20) /* no event is larger */

enum kineto_encoding {
	KINETO_UTF8,
	KINETO_UTF16_LITTLE,
	KINETO_UTF16_BIG,
};

struct kineto_text {
	struct input_stream *input;
	struct read_ahead *ahead; /* for compressed files; NULL: the file is read on demand */
	char *window;             /* NULs follow the text */
	size_t capacity;
	size_t begin, end; /* unread */
	uint64_t offset;   /* offset of window[0] in the text */
	bool is_at_end;    /* there is no more text */
	enum kineto_encoding encoding;
	char *raw; /* UTF-16 that is not decoded yet */
	size_t raw_length;
	struct error error; /* why, if it is not the end of the file; the text before it is valid */
};

void kineto_text_init(struct kineto_text *text, struct input_stream *input);
void kineto_text_release(struct kineto_text *text);
/* Returns the number of bytes of the file read so far. */
uint64_t kineto_text_file_bytes(const struct kineto_text *text);
/* Adds to the unread part, which moves. Returns false if there is no more text, or the window cannot grow further. */
bool kineto_text_more(struct kineto_text *text);
/* After damaged compressed data, continues with the next member, with nothing unread. The texts before and after the
 * damage do not belong together. Returns false if no member follows. */
bool kineto_text_go_on(struct kineto_text *text);
/* Returns the next byte that is not blank, which stays unread; -1: the text ends. */
int kineto_text_peek(struct kineto_text *text);

#endif
