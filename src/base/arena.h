/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.h: memory that is freed all at once. Pointers into it are borrowed and stay valid until arena_release().
 * Allocation failure ends in abort() with one line on stderr unless a limit was set (then NULL). It is not thread-safe.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena {
	struct arena_block *newest;
	size_t used_bytes;  /* handed out */
	size_t limit_bytes; /* 0: no limit */
};

void arena_init(struct arena *arena, size_t limit_bytes);
void arena_release(struct arena *arena); /* accepts an empty arena; leaves it empty */

/* Returns zeroed memory, aligned to 16 bytes. NULL only beyond the limit. */
void *arena_alloc(struct arena *arena, size_t bytes);
/* Returns an array of n elements; checks the multiplication. */
void *arena_array(struct arena *arena, size_t n, size_t element_bytes);
/* Return NUL-terminated copies. */
char *arena_dup(struct arena *arena, const char *text);
char *arena_dup_n(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
