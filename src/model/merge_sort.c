/* SPDX-License-Identifier: Apache-2.0
 *
 * Natural merge sort: finds the runs that are in order already and merges neighbours until one is left.
 */
#include "model/merge_sort.h"

#include <string.h>

#include "model/storage.h"

typedef int (*comparison)(const void *a, const void *b);

/* Writes the first index of every run and, last, `count`; returns the number of runs. */
static size_t find_runs(struct storage *storage, const char *elements, size_t count, size_t bytes, comparison compare,
                        size_t **starts)
{
	size_t runs = 0, capacity = 0;
	*starts = NULL;
	for (size_t i = 0; i <= count; i++) {
		if (i > 0 && i < count && compare(elements + (i - 1) * bytes, elements + i * bytes) <= 0)
			continue;
		if (runs == capacity) {
			capacity = capacity ? 2 * capacity : 16;
			*starts = storage_resize(storage, *starts, capacity, sizeof **starts);
		}
		(*starts)[runs++] = i;
	}
	return runs - 1;
}

static void merge(char *to, const char *a, const char *a_end, const char *b, const char *b_end, size_t bytes,
                  comparison compare)
{
	while (a < a_end && b < b_end) {
		const char **smaller = compare(a, b) <= 0 ? &a : &b;
		memcpy(to, *smaller, bytes);
		*smaller += bytes;
		to += bytes;
	}
	memcpy(to, a, (size_t)(a_end - a));
	memcpy(to + (a_end - a), b, (size_t)(b_end - b));
}

void merge_sort_in(struct storage *storage, void *elements, size_t count, size_t element_bytes, comparison compare)
{
	if (count < 2)
		return;
	size_t *starts, bytes = element_bytes;
	size_t runs = find_runs(storage, elements, count, bytes, compare, &starts);
	char *from = elements, *spare = runs > 1 ? storage_resize(storage, NULL, count, bytes) : NULL, *to = spare;
	while (runs > 1) {
		size_t merged = 0;
		for (size_t run = 0; run < runs; run += 2) {
			size_t a = starts[run], b = starts[run + 1], end = run + 1 < runs ? starts[run + 2] : b;
			merge(to + a * bytes, from + a * bytes, from + b * bytes, from + b * bytes, from + end * bytes,
			      bytes, compare);
			starts[merged++] = a;
		}
		starts[merged] = count;
		runs = merged;
		char *swap = from;
		from = to;
		to = swap;
	}
	if (from != elements)
		memcpy(elements, from, count * bytes);
	storage_release(storage, spare);
	storage_release(storage, starts);
}

void merge_sort(void *elements, size_t count, size_t element_bytes, comparison compare)
{
	merge_sort_in(NULL, elements, count, element_bytes, compare);
}
