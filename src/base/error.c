/* SPDX-License-Identifier: Apache-2.0
 *
 * error.c: fills struct error. It formats the text in a local buffer first, because a message may quote the error it
 * replaces.
 */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* Returns at most `length`, without a partial UTF-8 character at the end. */
static size_t utf8_cut(const char *text, size_t length)
{
	while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	return length;
}

static void error_copy_text(char *to, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size)
		length = utf8_cut(text, size - 1);
	memcpy(to, text, length);
	to[length] = '\0';
}

static void error_fill(struct error *err, enum status status, const char *format, va_list arguments, const char *reason)
{
	char text[sizeof(err->text) + 256];
	int written = vsnprintf(text, sizeof(text), format, arguments);
	size_t used = written < 0 ? 0 : (size_t)written;

	if (written < 0)
		text[0] = '\0';
	if (reason) {
		/* the reason is more useful than the end of a long subject */
		size_t room = sizeof(err->text) - 1 - strlen(reason) - 2;

		used = used < room ? used : utf8_cut(text, room);
		snprintf(text + used, sizeof(text) - used, ": %s", reason);
	}
	err->status = status;
	err->hint[0] = '\0';
	error_copy_text(err->text, sizeof(err->text), text);
}

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
	va_list arguments;

	if (!err)
		return status;
	va_start(arguments, format);
	error_fill(err, status, format, arguments, NULL);
	va_end(arguments);
	return status;
}

enum status error_errno(struct error *err, enum status status, int number, const char *format, ...)
{
	va_list arguments;

	if (!err)
		return status;
	va_start(arguments, format);
	error_fill(err, status, format, arguments, strerror(number));
	va_end(arguments);
	return status;
}

void error_hint(struct error *err, const char *format, ...)
{
	char hint[sizeof(err->hint) * 2];
	va_list arguments;

	if (!err)
		return;
	va_start(arguments, format);
	if (vsnprintf(hint, sizeof(hint), format, arguments) < 0)
		hint[0] = '\0';
	va_end(arguments);
	error_copy_text(err->hint, sizeof(err->hint), hint);
}

int status_exit(enum status status)
{
	static const int exits[] = {
#define X(code, exit_status, text) exit_status,
		STATUS_LIST(X)
#undef X
	};

	if ((size_t)status >= sizeof(exits) / sizeof(exits[0]))
		return exits[STATUS_ENVIRONMENT];
	return exits[status];
}
