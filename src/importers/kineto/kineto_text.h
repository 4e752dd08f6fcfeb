/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_text.h: the text of a trace through a window that moves over the file: what is read stays where it is until the next
 * kineto_text_more(). Memory does not depend on the size of the file.
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
	struct read_ahead *ahead; /* of compressed files; NULL: it is read as it is wanted */
	char *window;             /* NULs follow what was read */
	size_t capacity;
	size_t begin, end; /* unread */
	uint64_t offset;   /* of window[0] in the text */
	bool is_at_end;    /* no more comes */
	enum kineto_encoding encoding;
	char *raw; /* UTF-16 that is not decoded yet */
	size_t raw_length;
	struct error error; /* why, when it is not the end of the file: what was read before is good */
};

void kineto_text_init(struct kineto_text *text, struct input_stream *input);
void kineto_text_release(struct kineto_text *text);
/* Of the file, so far. */
uint64_t kineto_text_file_bytes(const struct kineto_text *text);
/* Adds to the unread part, which moves. False: nothing more comes, or it is as large as the window may get. */
bool kineto_text_more(struct kineto_text *text);
/* When nothing more comes since the compressed data is damaged: to what the next member holds, with nothing unread. What was read before
 * and what follows do not belong together. False: nothing follows. */
bool kineto_text_go_on(struct kineto_text *text);
/* The next byte that is not blank, which stays unread; -1: the text ends. */
int kineto_text_peek(struct kineto_text *text);

#endif
