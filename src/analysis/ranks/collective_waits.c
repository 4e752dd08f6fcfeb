/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_waits.c: see collective_waits.h.
 */
#include "analysis/ranks/collective_waits.h"

#include "analysis/shared/intervals.h"
#include "base/memory.h"
#include "base/merge_sort.h"

#include <stdlib.h>
#include <string.h>

struct timed_group {
	int64_t last_ns;
	uint32_t group;
};

static int compare_groups(const void *left, const void *right)
{
	const struct timed_group *a = left, *b = right;

	if (a->last_ns != b->last_ns)
		return a->last_ns < b->last_ns ? -1 : 1;
	return (a->group > b->group) - (a->group < b->group);
}

static void collective_waits_put_in_order(struct collective_waits *waits, const struct collective_matches *matches)
{
	struct timed_group *timed = memory_resize(NULL, (size_t)matches->group_count + 1, sizeof(*timed));

	for (uint32_t g = 0; g < matches->group_count; g++)
		timed[g] = (struct timed_group){collective_matches_arrival(matches, &matches->groups[g]).last_ns, g};
	merge_sort(timed, matches->group_count, sizeof(*timed), compare_groups);
	for (uint32_t g = 0; g < matches->group_count; g++)
		waits->order[g] = timed[g].group;
	free(timed);
}

/* Returns when the last but one arrived. */
static int64_t second_last(const struct collective_run *runs, uint32_t count, const struct collective_arrival *arrival)
{
	int64_t next_ns = arrival->first_ns;

	for (uint32_t i = 0; i < count; i++)
		if (runs[i].process != arrival->last_process && runs[i].start_ns > next_ns)
			next_ns = runs[i].start_ns;
	return next_ns;
}

/* Returns the part of [start, end) that is not in the list. */
static int64_t new_in(const struct intervals *waited, int64_t start_ns, int64_t end_ns)
{
	return intervals_length(start_ns, end_ns) - intervals_within(waited, start_ns, end_ns);
}

/* No other interval of the list ends later. */
static void add_last(struct intervals *waited, int64_t start_ns, int64_t end_ns)
{
	while (waited->count && waited->items[waited->count - 1].start_ns >= start_ns)
		waited->count--;
	intervals_add(waited, start_ns, end_ns);
}

static void collective_waits_find_waits(struct collective_wait *waits, const struct collective_matches *matches,
                                        uint32_t group, struct intervals *waited)
{
	const struct collective_match *match = &matches->groups[group];
	const struct collective_run *runs = &matches->list[match->first];
	struct collective_arrival arrival = collective_matches_arrival(matches, match);
	int64_t next_ns = second_last(runs, match->count, &arrival), start_ns;

	for (uint32_t i = 0; i < match->count; i++) {
		struct intervals *own = &waited[runs[i].process];

		start_ns = runs[i].start_ns;
		if (start_ns >= arrival.last_ns)
			continue;
		waits[match->first + i] = (struct collective_wait){
			new_in(own, start_ns, arrival.last_ns),
			new_in(own, start_ns > next_ns ? start_ns : next_ns, arrival.last_ns),
		};
		add_last(own, start_ns, arrival.last_ns);
	}
}

void collective_waits_find(struct collective_waits *waits, const struct collective_matches *matches, uint32_t processes)
{
	struct intervals *waited = memory_resize(NULL, (size_t)processes + 1, sizeof(*waited));

	waits->list = memory_resize(NULL, (size_t)matches->count + 1, sizeof(*waits->list));
	waits->order = memory_resize(NULL, (size_t)matches->group_count + 1, sizeof(*waits->order));
	memset(waited, 0, ((size_t)processes + 1) * sizeof(*waited));
	memset(waits->list, 0, ((size_t)matches->count + 1) * sizeof(*waits->list));
	collective_waits_put_in_order(waits, matches);
	for (uint32_t i = 0; i < matches->group_count; i++)
		collective_waits_find_waits(waits->list, matches, waits->order[i], waited);
	for (uint32_t i = 0; i < processes; i++)
		intervals_release(&waited[i]);
	free(waited);
}

void collective_waits_release(struct collective_waits *waits)
{
	free(waits->list);
	free(waits->order);
	memset(waits, 0, sizeof(*waits));
}
