/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.h: arrays that grow. If memory runs out, it aborts with one line on stderr, so callers need no check. Code
 * that runs inside a training must not use it.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Calls realloc() for n elements (n > 0) and checks the multiplication. New elements are not zeroed. */
void *memory_resize(void *old, size_t n, size_t element_bytes);

/* Prints the number of bytes wanted and aborts. */
_Noreturn void memory_exhausted(size_t bytes);

/* Makes room for one more element after `count` elements. A full array doubles; an empty array gets `first` elements.
 *
 *     MEMORY_GROW(list->items, list->count, list->capacity, 16);
 *     list->items[list->count++] = item;
 */
#define MEMORY_GROW(items, count, capacity, first)                                                                     \
	MEMORY_GROW_BY(items, count, capacity, first, memory_resize((items), grown_, sizeof((items)[0])))

/* Does the same with a call that resizes to `grown_` elements. If the type cannot hold the doubled capacity, the size
 * is beyond any machine's memory. */
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
