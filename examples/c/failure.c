/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the first error sentence. Does not print it. */
#include "failure.h"

#include <stdarg.h>
#include <stdio.h>

int failure_set(struct failure *failure, const char *format, ...)
{
	if (failure->text[0] == '\0') {
		va_list arguments;
		va_start(arguments, format);
		vsnprintf(failure->text, sizeof(failure->text), format, arguments);
		va_end(arguments);
	}
	return -1;
}

int failure_memory(struct failure *failure, unsigned long long bytes)
{
	return failure_set(failure, "out of memory: cannot allocate %llu bytes", bytes);
}
