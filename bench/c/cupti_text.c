/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_text.c: see cupti_text.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cupti_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void text_init(struct text *text, const char *ending, uint64_t rows_limit)
{
	*text = (struct text){.ending = ending, .file = -1, .rows_limit = rows_limit};
}

void text_write(struct text *text)
{
	size_t done = 0;
	while (text->file >= 0 && done < text->used) {
		ssize_t got = write(text->file, text->data + done, text->used - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			text->error = errno;
			break;
		}
		done += (size_t)got;
	}
	text->used = 0;
}

void text_close(struct text *text, int is_dropped)
{
	if (!is_dropped)
		text_write(text);
	if (text->file >= 0)
		close(text->file);
	text->file = -1;
	text->used = 0;
}

int text_file(const char *prefix, const char *ending)
{
	char path[800];
	int length = snprintf(path, sizeof(path), "%s-%d.%s", prefix, (int)getpid(), ending);
	if (length < 0 || (size_t)length >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

int text_open(struct text *text, const char *prefix)
{
	text_close(text, 0);
	text->rows = text->rows_left_out = 0;
	text->file = prefix ? text_file(prefix, text->ending) : -1;
	return prefix && text->file < 0 ? errno : 0;
}

void text_add(struct text *text, const char *format, ...)
{
	if (text->file < 0)
		return;
	if (text->rows >= text->rows_limit) {
		text->rows_left_out++;
		return;
	}
	if (sizeof(text->data) - text->used < TEXT_NAME_BYTES * 2 + 300)
		text_write(text);
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(text->data + text->used, sizeof(text->data) - text->used, format, arguments);
	va_end(arguments);
	if (length > 0 && (size_t)length < sizeof(text->data) - text->used) {
		text->used += (size_t)length;
		text->rows++;
	}
}
