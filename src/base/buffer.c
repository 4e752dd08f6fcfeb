/* SPDX-License-Identifier: Apache-2.0
 *
 * buffer.c: capacity includes the byte for the NUL. Capacity 0 means that data is a constant "" or NULL. A failed
 * allocation counts as the maximum reached.
 */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY ((size_t)64)
#define FLOW_BYTES ((size_t)1 << 20)

static const char no_bytes[1] = "";

void buffer_init(struct buffer *buffer, size_t maximum)
{
	buffer->data = (char *)no_bytes;
	buffer->length = 0;
	buffer->capacity = 0;
	buffer->maximum = maximum < PTRDIFF_MAX ? maximum : PTRDIFF_MAX - 1;
	buffer->is_overflown = false;
	buffer->flow = NULL;
}

void buffer_release(struct buffer *buffer)
{
	if (buffer->capacity)
		free(buffer->data);
	buffer_init(buffer, buffer->maximum);
}

void buffer_clear(struct buffer *buffer)
{
	buffer->length = 0;
	buffer->is_overflown = false;
	if (buffer->capacity)
		buffer->data[0] = '\0';
}

void buffer_flow(struct buffer *buffer)
{
	bool is_taken;

	if (!buffer->flow || buffer->length < FLOW_BYTES || buffer->is_overflown)
		return;
	is_taken = buffer->flow(buffer->flow_context, buffer->data, buffer->length);
	buffer_clear(buffer);
	buffer->is_overflown = !is_taken;
}

char *buffer_take(struct buffer *buffer)
{
	char *taken = buffer->capacity ? buffer->data : calloc(1, 1);

	buffer_init(buffer, buffer->maximum);
	return taken;
}

static bool buffer_grow(struct buffer *buffer, size_t capacity)
{
	size_t doubled = buffer->capacity * 2;
	char *data;

	if (doubled < FIRST_CAPACITY)
		doubled = FIRST_CAPACITY;
	if (doubled > buffer->maximum + 1)
		doubled = buffer->maximum + 1;
	if (capacity < doubled)
		capacity = doubled;
	data = realloc(buffer->capacity ? buffer->data : NULL, capacity);
	if (!data)
		return false;
	buffer->data = data;
	buffer->capacity = capacity;
	return true;
}

char *buffer_reserve(struct buffer *buffer, size_t length)
{
	size_t needed;

	if (buffer->is_overflown)
		return NULL;
	if (length > buffer->maximum - buffer->length) {
		buffer->is_overflown = true;
		return NULL;
	}
	needed = buffer->length + length + 1;
	if (needed > buffer->capacity && !buffer_grow(buffer, needed)) {
		buffer->is_overflown = true;
		return NULL;
	}
	buffer->data[needed - 1] = '\0';
	return buffer->data + buffer->length;
}

bool buffer_add(struct buffer *buffer, const void *bytes, size_t length)
{
	char *to = buffer_reserve(buffer, length);

	if (!to)
		return false;
	if (length)
		memcpy(to, bytes, length);
	buffer->length += length;
	return true;
}

bool buffer_add_text(struct buffer *buffer, const char *text)
{
	return buffer_add(buffer, text, strlen(text));
}

bool buffer_add_byte(struct buffer *buffer, uint8_t byte)
{
	return buffer_add(buffer, &byte, 1);
}

bool buffer_printf(struct buffer *buffer, const char *format, ...)
{
	char first_try[256];
	va_list arguments;
	int length;
	char *to;

	va_start(arguments, format);
	length = vsnprintf(first_try, sizeof(first_try), format, arguments);
	va_end(arguments);
	if (length < 0) {
		buffer->is_overflown = true;
		return false;
	}
	if ((size_t)length < sizeof(first_try))
		return buffer_add(buffer, first_try, (size_t)length);
	to = buffer_reserve(buffer, (size_t)length);
	if (!to)
		return false;
	va_start(arguments, format);
	vsnprintf(to, (size_t)length + 1, format, arguments);
	va_end(arguments);
	buffer->length += (size_t)length;
	return true;
}
