/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_gaps.c: see kineto_gaps.h.
 */
#include "importers/kineto_gaps.h"

static bool is_same(const struct kineto_gap *a, const struct kineto_gap *b)
{
	return a->length == b->length && a->place == b->place && memcmp(a->text, b->text, a->length) == 0;
}

static uint8_t find(const struct kineto_gaps *gaps, const struct kineto_gap *gap)
{
	for (uint32_t i = 1; i <= gaps->count; i++)
		if (is_same(&gaps->list[i], gap))
			return (uint8_t)i;
	return 0;
}

/* When there are too many, it begins anew: a file of many layouts is not what this is for. */
static uint8_t add(struct kineto_gaps *gaps, const struct kineto_gap *gap)
{
	if (gaps->count == KINETO_GAPS) {
		gaps->count = gaps->last = 0;
		memset(gaps->list[0].next, 0, sizeof gaps->list[0].next);
	}
	struct kineto_gap *added = &gaps->list[++gaps->count];
	*added = *gap;
	added->mask = (UINT64_C(1) << gap->length) - 1;
	memset(added->next, 0, sizeof added->next);
	return (uint8_t)gaps->count;
}

void kineto_gap_add(struct kineto_gaps *gaps, const struct kineto_gap *gap)
{
	uint8_t number = gap ? find(gaps, gap) : 0;
	if (gap && !number)
		number = add(gaps, gap);
	struct kineto_gap *last = &gaps->list[gaps->last];
	for (int i = KINETO_GAP_NEXT - 1; number && i > 0; i--)
		last->next[i] = last->next[i - 1];
	if (number)
		last->next[0] = number;
	gaps->last = number;
}
