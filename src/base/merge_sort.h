/* SPDX-License-Identifier: Apache-2.0
 *
 * merge_sort.h: a stable sort. It is linear on input that consists of a few sorted runs, such as events of several
 * threads.
 */
#ifndef BASE_MERGE_SORT_H
#define BASE_MERGE_SORT_H

#include <stddef.h>

struct storage;

/* compare: less than, equal to or greater than 0, as for qsort(). While it runs, it needs the size of the array as
 * extra memory. */
void merge_sort(void *elements, size_t count, size_t element_bytes, int (*compare)(const void *a, const void *b));
/* Does the same, with extra memory from a model's storage: for arrays that grow with the trace. */
void merge_sort_in(struct storage *storage, void *elements, size_t count, size_t element_bytes,
                   int (*compare)(const void *a, const void *b));

#endif
