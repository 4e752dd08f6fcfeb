/* SPDX-License-Identifier: Apache-2.0
 *
 * intervals.c: see intervals.h. Every operation is one walk along both lists.
 */
#include "analysis/shared/intervals.h"

#include "base/lower_bound.h"
#include "base/storage.h"

#include <assert.h>
#include <string.h>

void intervals_release(struct intervals *list)
{
	if (!list->is_lent)
		storage_release(list->storage, list->items);
	memset(list, 0, sizeof(*list));
}

void intervals_lend(struct intervals *to, const struct intervals *from)
{
	intervals_release(to);
	*to = *from;
	to->is_lent = true;
}

static void intervals_reserve(struct intervals *list, size_t capacity)
{
	assert(!list->is_lent);
	if (capacity <= list->capacity)
		return;
	list->capacity = capacity > 2 * list->capacity ? capacity : 2 * list->capacity;
	list->items = storage_resize(list->storage, list->items, list->capacity, sizeof(*list->items));
}

void intervals_grow(struct intervals *list)
{
	intervals_reserve(list, list->capacity ? list->capacity + 1 : 64);
}

static void intervals_begin(struct intervals *out, const struct intervals *a, const struct intervals *b)
{
	assert(out != a && out != b); /* it is cleared before they are read */
	if (out->is_lent)
		intervals_release(out);
	intervals_live_in(out, a->storage ? a->storage : b->storage);
	out->count = 0;
}

static void copy(struct intervals *out, const struct intervals *from)
{
	if (!from->count)
		return;
	intervals_reserve(out, from->count);
	memcpy(out->items, from->items, from->count * sizeof(*from->items));
	out->count = from->count;
}

void intervals_join(struct intervals *out, const struct intervals *a, const struct intervals *b)
{
	size_t i = 0, k = 0;

	intervals_begin(out, a, b);
	if (!a->count || !b->count) {
		copy(out, a->count ? a : b);
		return;
	}
	intervals_reserve(out, a->count > b->count ? a->count : b->count);
	while (i < a->count || k < b->count) {
		const struct interval *next;

		if (k == b->count || (i < a->count && a->items[i].start_ns <= b->items[k].start_ns))
			next = &a->items[i++];
		else
			next = &b->items[k++];
		intervals_add(out, next->start_ns, next->end_ns);
	}
}

void intervals_subtract(struct intervals *out, const struct intervals *a, const struct intervals *b)
{
	size_t k = 0;

	intervals_begin(out, a, b);
	if (!b->count) {
		copy(out, a);
		return;
	}
	intervals_reserve(out, a->count);
	for (size_t i = 0; i < a->count; i++) {
		int64_t from_ns = a->items[i].start_ns, end_ns = a->items[i].end_ns;

		while (k < b->count && b->items[k].end_ns <= from_ns)
			k++;
		for (size_t cut = k; cut < b->count && b->items[cut].start_ns < end_ns; cut++) {
			intervals_add(out, from_ns, b->items[cut].start_ns);
			from_ns = b->items[cut].end_ns;
			k = cut;
		}
		intervals_add(out, from_ns, end_ns);
	}
}

void intervals_intersect(struct intervals *out, const struct intervals *a, const struct intervals *b)
{
	size_t i = 0, k = 0;

	intervals_begin(out, a, b);
	while (i < a->count && k < b->count) {
		const struct interval *x = &a->items[i], *y = &b->items[k];

		intervals_add(out, x->start_ns > y->start_ns ? x->start_ns : y->start_ns,
		              x->end_ns < y->end_ns ? x->end_ns : y->end_ns);
		if (x->end_ns < y->end_ns)
			i++;
		else
			k++;
	}
}

int64_t intervals_within(const struct intervals *list, int64_t start_ns, int64_t end_ns)
{
	int64_t total_ns = 0;
	size_t low = LOWER_BOUND(list->items, list->count, item, item->end_ns <= start_ns);

	for (; low < list->count && list->items[low].start_ns < end_ns; low++) {
		int64_t from_ns = list->items[low].start_ns > start_ns ? list->items[low].start_ns : start_ns;
		int64_t to_ns = list->items[low].end_ns < end_ns ? list->items[low].end_ns : end_ns;

		clamped_add(&total_ns, intervals_length(from_ns, to_ns));
	}
	return total_ns;
}
