/* SPDX-License-Identifier: Apache-2.0
 *
 * buffer.h: bytes that grow up to a maximum. The contents are always followed by a NUL that is not counted, so `data`
 * is a C string if no NUL was added. Appending beyond the maximum sets `is_overflown`, adds nothing and returns false;
 * later appends do the same, so one check at the end is enough. The buffer owns its memory.
 *
 * A buffer with a `flow` function stays small: at each buffer_flow() of the writer, its contents may be passed to
 * `flow`.
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
	/* (optional) Set it after buffer_init(). Takes the bytes. Returns false if it cannot; the buffer then counts as
	 * overflown. */
	bool (*flow)(void *context, const char *bytes, size_t length);
	void *flow_context;
};

void buffer_init(struct buffer *buffer, size_t maximum);
void buffer_release(struct buffer *buffer);
void buffer_clear(struct buffer *buffer); /* keeps the memory */
/* Tells that the writer does not need the current contents any more. A buffer with `flow` passes them on if they are
 * large. */
void buffer_flow(struct buffer *buffer);
char *buffer_take(struct buffer *buffer); /* caller frees with free(); the buffer is empty afterwards */

bool buffer_add(struct buffer *buffer, const void *bytes, size_t length);
bool buffer_add_text(struct buffer *buffer, const char *text);
bool buffer_add_byte(struct buffer *buffer, uint8_t byte);
bool buffer_printf(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for `length` more bytes and returns their address (set `length` yourself). NULL beyond the maximum. */
char *buffer_reserve(struct buffer *buffer, size_t length);

#endif
