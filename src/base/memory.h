/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.h: arrays that grow. Running out of memory ends in abort() with one line on stderr, so callers need no check;
 * code inside somebody's training must not use it.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* realloc() of n elements (n > 0); checks the multiplication. New elements are not zeroed. */
void *memory_resize(void *old, size_t n, size_t element_bytes);

/* Says how much was wanted and aborts. */
_Noreturn void memory_exhausted(size_t bytes);

#endif
