/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_numbers.h: compares numbers, for qsort(), bsearch() and merge_sort().
 *
 *     qsort(ends, count, sizeof(*ends), compare_int64);
 *     result = COMPARE_NUMBERS(a->stream, b->stream);
 *
 * A result is less than, equal to or greater than 0. A NaN compares equal to every number, so an array must not contain
 * one.
 */
#ifndef BASE_COMPARE_NUMBERS_H
#define BASE_COMPARE_NUMBERS_H

#include <stdint.h>

/* Compares two values of one type. */
#define COMPARE_NUMBERS(left, right)                                                                                   \
	__extension__({                                                                                                \
		const __typeof__(left) left_ = (left), right_ = (right);                                               \
		(left_ > right_) - (left_ < right_);                                                                   \
	})

static inline int compare_int32(const void *left, const void *right)
{
	return COMPARE_NUMBERS(*(const int32_t *)left, *(const int32_t *)right);
}

static inline int compare_uint32(const void *left, const void *right)
{
	return COMPARE_NUMBERS(*(const uint32_t *)left, *(const uint32_t *)right);
}

static inline int compare_int64(const void *left, const void *right)
{
	return COMPARE_NUMBERS(*(const int64_t *)left, *(const int64_t *)right);
}

static inline int compare_uint64(const void *left, const void *right)
{
	return COMPARE_NUMBERS(*(const uint64_t *)left, *(const uint64_t *)right);
}

static inline int compare_double(const void *left, const void *right)
{
	return COMPARE_NUMBERS(*(const double *)left, *(const double *)right);
}

#endif
