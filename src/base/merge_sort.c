/* SPDX-License-Identifier: Apache-2.0
 *
 * merge_sort.c: a natural merge sort. It finds the sorted runs, and merges neighbours until one run is left.
 */
#include "base/merge_sort.h"

#include "base/storage.h"

#include <string.h>

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
		STORAGE_GROW(storage, *starts, runs, capacity, 16);
		(*starts)[runs++] = i;
	}
	return runs - 1;
}

/* Returns the first element of a run for which the comparison with `other` gives at least `gives`. */
static char *first_that(char *run, char *end, const char *other, int gives, size_t bytes, comparison compare)
{
	size_t low = 0, high = (size_t)(end - run) / bytes;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare(run + middle * bytes, other) < gives)
			low = middle + 1;
		else
			high = middle;
	}
	return run + low * bytes;
}

/* Merges two adjacent runs in place. Only the part where they overlap moves, because most of a trace is in order. */
static void merge_sort_merge(char *a, char *b, char *end, char *spare, size_t bytes, comparison compare)
{
	a = first_that(a, b, b, 1, bytes, compare);
	if (a == b)
		return;
	end = first_that(b, end, b - bytes, 0, bytes, compare);
	const char *left = spare, *left_end = spare + (b - a), *right = b;
	memcpy(spare, a, (size_t)(b - a));
	while (left < left_end && right < end) { /* takes from each side in turn, as long a stretch as possible */
		const char *from = right;
		while (right < end && compare(left, right) > 0)
			right += bytes;
		memmove(a, from, (size_t)(right - from));
		a += right - from;
		for (from = left; left < left_end && (right == end || compare(left, right) <= 0);)
			left += bytes;
		memcpy(a, from, (size_t)(left - from));
		a += left - from;
	}
}

void merge_sort_in(struct storage *storage, void *elements, size_t count, size_t element_bytes, comparison compare)
{
	if (count < 2)
		return;
	size_t *starts, bytes = element_bytes;
	size_t runs = find_runs(storage, elements, count, bytes, compare, &starts);
	char *all = elements, *spare = runs > 1 ? storage_resize(storage, NULL, count, bytes) : NULL;
	while (runs > 1) {
		size_t merged = 0;
		for (size_t run = 0; run < runs; run += 2) {
			starts[merged++] = starts[run];
			if (run + 1 < runs)
				merge_sort_merge(all + starts[run] * bytes, all + starts[run + 1] * bytes,
				                 all + starts[run + 2] * bytes, spare, bytes, compare);
		}
		starts[merged] = count;
		runs = merged;
	}
	storage_release(storage, spare);
	storage_release(storage, starts);
}

void merge_sort(void *elements, size_t count, size_t element_bytes, comparison compare)
{
	merge_sort_in(NULL, elements, count, element_bytes, compare);
}
