/* SPDX-License-Identifier: Apache-2.0
 *
 * node_numbers.c: see node_numbers.h.
 */
#include "steps/node_numbers.h"

#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"

#include <stdlib.h>
#include <stepscope/format.h>

#define RANGES_MAX (1u << 24) /* more than the ranges of a million steps */

/* Returns true if the number continues the same backward, in which numbers go down. */
static bool node_numbers_goes_on(struct node_range *range, uint32_t call, uint64_t thread, uint64_t number)
{
	if (range->thread != thread || range->call != call || number > range->highest)
		return false;
	range->lowest = number < range->lowest ? number : range->lowest;
	return true;
}

void node_numbers_note(struct node_numbers *numbers, uint32_t *last, uint32_t call, uint64_t word)
{
	uint64_t thread = word >> NODE_NUMBER_BITS, number = word & ((UINT64_C(1) << NODE_NUMBER_BITS) - 1);
	if (word == STEPSCOPE_NO_SEQUENCE || !thread || numbers->count == RANGES_MAX)
		return;
	if (*last != NO_NODE_RANGE && node_numbers_goes_on(&numbers->list[*last], call, thread, number))
		return;
	MEMORY_GROW(numbers->list, numbers->count, numbers->capacity, 64);
	*last = numbers->count;
	numbers->list[numbers->count++] = (struct node_range){thread, number, number, call};
}

static int compare_ranges(const void *left, const void *right)
{
	const struct node_range *a = left, *b = right;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (a->lowest > b->lowest) - (a->lowest < b->lowest);
}

/* From here on, `highest` is the highest number of all the thread's ranges so far. */
void node_numbers_settle(struct node_numbers *numbers)
{
	merge_sort(numbers->list, numbers->count, sizeof *numbers->list, compare_ranges);
	for (uint32_t i = 1; i < numbers->count; i++) {
		const struct node_range *before = &numbers->list[i - 1];
		struct node_range *range = &numbers->list[i];
		if (before->thread == range->thread && before->highest > range->highest)
			range->highest = before->highest;
	}
}

bool node_numbers_have(const struct node_numbers *numbers, uint64_t thread, uint64_t first, uint64_t end)
{
	if (!numbers->count || numbers->count == RANGES_MAX)
		return true;
	size_t behind = LOWER_BOUND(numbers->list, numbers->count, item,
	                            item->thread < thread || (item->thread == thread && item->lowest < end));
	return behind && numbers->list[behind - 1].thread == thread && numbers->list[behind - 1].highest >= first;
}

void node_numbers_release(struct node_numbers *numbers)
{
	free(numbers->list);
	*numbers = (struct node_numbers){0};
}
