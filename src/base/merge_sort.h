/* SPDX-License-Identifier: Apache-2.0
 *
 * merge_sort.h: a stable sort that is linear on input that consists of few sorted runs, as events of several threads are.
 */
#ifndef BASE_MERGE_SORT_H
#define BASE_MERGE_SORT_H

#include <stddef.h>

struct storage;

/* compare: less than, equal to or greater than 0, as for qsort(). Takes as much memory again while it runs. */
void merge_sort(void *elements, size_t count, size_t element_bytes, int (*compare)(const void *a, const void *b));
/* The same, with that memory of a model's storage: for what grows with the trace. */
void merge_sort_in(struct storage *storage, void *elements, size_t count, size_t element_bytes,
                   int (*compare)(const void *a, const void *b));

#endif
