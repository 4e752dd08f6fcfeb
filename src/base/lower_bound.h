/* SPDX-License-Identifier: Apache-2.0
 *
 * lower_bound.h: binary search.
 *
 *     uint32_t first = LOWER_BOUND(list->items, list->count, item, item->time_ns < time_ns);
 *
 * Returns the number of elements for which `is_before` is true; in the array, these must come first. So it is the index
 * of the first other element, or `count`. `item` names the element in the condition.
 */
#ifndef BASE_LOWER_BOUND_H
#define BASE_LOWER_BOUND_H

#include <stddef.h>

#define LOWER_BOUND(items, count, item, is_before)                                                                     \
	__extension__({                                                                                                \
		size_t low_ = 0, high_ = (count);                                                                      \
		while (low_ < high_) {                                                                                 \
			size_t middle_ = low_ + (high_ - low_) / 2;                                                    \
			const __typeof__(*(items)) *item = &(items)[middle_];                                          \
			if (is_before)                                                                                 \
				low_ = middle_ + 1;                                                                    \
			else                                                                                           \
				high_ = middle_;                                                                       \
		}                                                                                                      \
		low_;                                                                                                  \
	})

#endif
