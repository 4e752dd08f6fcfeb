/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: growing arrays, and the one place that aborts if memory runs out.
 */
#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *memory_resize(void *old, size_t n, size_t element_bytes)
{
	size_t bytes;
	void *resized;

	if (__builtin_mul_overflow(n, element_bytes, &bytes))
		memory_exhausted(SIZE_MAX);
	resized = realloc(old, bytes ? bytes : 1);
	if (!resized)
		memory_exhausted(bytes);
	return resized;
}

void memory_exhausted(size_t bytes)
{
	fprintf(stderr, "stepscope: out of memory (%zu bytes wanted)\n", bytes);
	abort();
}
