/* SPDX-License-Identifier: Apache-2.0
 *
 * say.c: see the header.
 */
#include "commands/say.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_BYTES ((size_t)1 << 20)

void say(const char *format, ...)
{
	struct buffer clean;
	char *text;
	va_list values;

	va_start(values, format);
	int length = vasprintf(&text, format, values);
	va_end(values);
	if (length < 0)
		return;
	bool is_end = length && text[length - 1] == '\n';
	buffer_init(&clean, MOST_BYTES);
	text_clean(&clean, text, (size_t)length - is_end);
	if (is_end)
		buffer_add_byte(&clean, '\n');
	fwrite(clean.data, 1, clean.length, stderr);
	buffer_release(&clean);
	free(text);
}
