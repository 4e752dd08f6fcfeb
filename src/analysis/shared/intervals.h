/* SPDX-License-Identifier: Apache-2.0
 *
 * intervals.h: sets of instants as sorted lists of disjoint intervals [start, end). Times of several sources may be
 * joined, subtracted from each other and measured without counting an instant twice.
 *
 *     struct intervals busy = {0};
 *     intervals_add(&busy, start_ns, end_ns); // in order of their starts; those that meet become one
 *     int64_t busy_ns = intervals_within(&busy, step_start_ns, step_end_ns);
 *     intervals_release(&busy);
 */
#ifndef ANALYSIS_SHARED_INTERVALS_H
#define ANALYSIS_SHARED_INTERVALS_H

#include "base/clamped.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
	int64_t start_ns, end_ns;
};

struct storage;
struct intervals {
	struct interval *items;
	size_t count, capacity;
	struct storage *storage; /* holds the items; NULL: malloc */
	bool is_lent;            /* the items belong to another list, which must live as long; nothing can be added */
};

/* Puts the items of the list, and of lists made from it, in this storage. Does nothing if the list already has
 * items. */
static inline void intervals_live_in(struct intervals *list, struct storage *storage)
{
	if (!list->items)
		list->storage = storage;
}

void intervals_release(struct intervals *list);
void intervals_lend(struct intervals *to, const struct intervals *from); /* replaces `to` */
void intervals_grow(struct intervals *list);                             /* for intervals_add() */

/* Ignores an empty interval. */
static inline void intervals_add(struct intervals *list, int64_t start_ns, int64_t end_ns)
{
	struct interval *last = list->count ? &list->items[list->count - 1] : NULL;

	assert(!list->is_lent);
	if (end_ns <= start_ns)
		return;
	if (last && start_ns <= last->end_ns) {
		last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
		return;
	}
	if (!list->items || list->count == list->capacity)
		intervals_grow(list);
	list->items[list->count++] = (struct interval){start_ns, end_ns};
}

/* `out` must not be `a` or `b`. It is cleared first, which ends a loan. */
void intervals_join(struct intervals *out, const struct intervals *a, const struct intervals *b);
void intervals_subtract(struct intervals *out, const struct intervals *a, const struct intervals *b); /* a without b */
void intervals_intersect(struct intervals *out, const struct intervals *a, const struct intervals *b);

static inline void intervals_swap(struct intervals *a, struct intervals *b)
{
	struct intervals keep = *a;

	*a = *b;
	*b = keep;
}

/* Returns the time from one instant to another, clamped to the largest number. */
static inline int64_t intervals_length(int64_t start_ns, int64_t end_ns)
{
	clamped_subtract(&end_ns, start_ns);
	return end_ns;
}

int64_t intervals_within(const struct intervals *list, int64_t start_ns, int64_t end_ns);

#endif
