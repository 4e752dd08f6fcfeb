/* SPDX-License-Identifier: Apache-2.0
 *
 * clamped.h: arithmetic on numbers from files, which may have any value. A result that does not fit becomes the largest
 * or smallest value that does. So a broken recording gives a strange number, never undefined behaviour.
 *
 *     clamped_add(&total_ns, span->dur_ns);
 *     table_set_int(table, row, column, clamped_int(bytes * count));
 */
#ifndef BASE_CLAMPED_H
#define BASE_CLAMPED_H

#include <stdint.h>

static inline void clamped_add(int64_t *sum, int64_t number)
{
	if (__builtin_add_overflow(*sum, number, sum))
		*sum = number < 0 ? INT64_MIN : INT64_MAX;
}

static inline void clamped_subtract(int64_t *sum, int64_t number)
{
	if (__builtin_sub_overflow(*sum, number, sum))
		*sum = number < 0 ? INT64_MAX : INT64_MIN;
}

/* Returns 0 for NaN. */
static inline int64_t clamped_int(double number)
{
	if (number >= 0x1p63)
		return INT64_MAX;
	return number > -0x1p63 ? (int64_t)number : number <= -0x1p63 ? INT64_MIN : 0;
}

#endif
