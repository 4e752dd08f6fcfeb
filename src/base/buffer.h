/* SPDX-License-Identifier: Apache-2.0
 *
 * buffer.h: bytes that grow up to a maximum. The contents are always followed by a NUL that is not counted, so `data`
 * is a C string when no NUL was added. Appending beyond the maximum sets `is_overflown`, adds nothing and returns false;
 * later appends do the same, so one check at the end is enough. The buffer owns its memory.
 *
 * A buffer that flows keeps little of what is added: at each buffer_flow() of its writer what is in it may go to `flow`.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	char *data;
	size_t length;
	size_t capacity;
	size_t maximum;
	bool is_overflown;
	/* (optional) Set it behind buffer_init(). Takes the bytes; false: it cannot, and the buffer counts as overflown. */
	bool (*flow)(void *context, const char *bytes, size_t length);
	void *flow_context;
};

void buffer_init(struct buffer *buffer, size_t maximum);
void buffer_release(struct buffer *buffer);
void buffer_clear(struct buffer *buffer); /* keeps the memory */
/* What is in it now will not be looked at again by who writes into it: a buffer that flows lets go of it when it is much. */
void buffer_flow(struct buffer *buffer);
char *buffer_take(struct buffer *buffer); /* caller frees with free(); the buffer is empty afterwards */

bool buffer_add(struct buffer *buffer, const void *bytes, size_t length);
bool buffer_add_text(struct buffer *buffer, const char *text);
bool buffer_add_byte(struct buffer *buffer, uint8_t byte);
bool buffer_printf(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for `length` more bytes and returns where they go (set `length` yourself); NULL beyond the maximum. */
char *buffer_reserve(struct buffer *buffer, size_t length);

#endif
