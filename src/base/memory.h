/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.h: arrays that grow. Running out of memory ends in abort() with one line on stderr, so callers need no check;
 * code inside somebody's training must not use it.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* realloc() of n elements (n > 0); checks the multiplication. New elements are not zeroed. */
void *memory_resize(void *old, size_t n, size_t element_bytes);

/* Says how much was wanted and aborts. */
_Noreturn void memory_exhausted(size_t bytes);

/* Room for one more element behind the `count` that an array has: a full one becomes twice as large, an empty one gets `first`.
 *
 *     MEMORY_GROW(list->items, list->count, list->capacity, 16);
 *     list->items[list->count++] = item;
 */
#define MEMORY_GROW(items, count, capacity, first)                                                                     \
	MEMORY_GROW_BY(items, count, capacity, first, memory_resize((items), grown_, sizeof((items)[0])))

/* The same, by a call that resizes to `grown_` elements. A capacity that its type cannot double is more than any machine has
 * memory for. */
#define MEMORY_GROW_BY(items, count, capacity, first, resized)                                                         \
	do {                                                                                                           \
		if ((count) == (capacity)) {                                                                           \
			__typeof__(capacity) grown_ = (capacity) ? 2 * (capacity) : (first);                           \
			if (grown_ < (capacity))                                                                       \
				memory_exhausted(SIZE_MAX);                                                            \
			(items) = (resized);                                                                           \
			(capacity) = grown_;                                                                           \
		}                                                                                                      \
	} while (0)

#endif
