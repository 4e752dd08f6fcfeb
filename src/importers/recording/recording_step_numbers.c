/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_step_numbers.c: numbers unmarked steps if the steps before them were removed. The program counted its steps
 * while it ran, and each COUNTED event is near the end of a step.
 */
#include "base/lower_bound.h"
#include "base/memory.h"
#include "importers/recording/recording_torch_scan.h"

#include <stdlib.h>

void torch_scan_counted(struct torch_scan *scan, int64_t time_ns, uint64_t count)
{
	MEMORY_GROW(scan->counted, scan->counted_count, scan->counted_capacity, 256);
	scan->counted[scan->counted_count++] = (struct counted_step){time_ns, (int64_t)count};
}

/* Returns the index of the step whose end the instant belongs to. There is at least one step. */
typedef size_t step_at_fn(const int64_t *ends, size_t count, int64_t time_ns);

static size_t before_end(const int64_t *ends, size_t count, int64_t time_ns)
{
	size_t at = LOWER_BOUND(ends, count, end_ns, *end_ns < time_ns);

	return at == count ? at - 1 : at;
}

static size_t behind_end(const int64_t *ends, size_t count, int64_t time_ns)
{
	size_t at = LOWER_BOUND(ends, count, end_ns, *end_ns <= time_ns);

	return at ? at - 1 : 0;
}

/* An optimizer's call is counted shortly before or after its own end. */
static size_t nearest(const int64_t *ends, size_t count, int64_t time_ns)
{
	size_t next = before_end(ends, count, time_ns), last = behind_end(ends, count, time_ns);

	return llabs(time_ns - ends[last]) < llabs(ends[next] - time_ns) ? last : next;
}

/* Finds the number of steps before the first of these. Returns false if the program's own counts contradict each other.
 * The first and last step are skipped: they may be cut off, and counts near them may belong to other steps. */
static bool agree(const struct torch_scan *scan, const int64_t *ends, size_t count, step_at_fn *step_at,
                  int64_t *before)
{
	bool is_known = false;

	for (uint32_t i = 0; i < scan->counted_count; i++) {
		size_t step = step_at(ends, count, scan->counted[i].time_ns);
		int64_t there = scan->counted[i].count - (int64_t)step - 1;

		if (step == 0 || step + 1 == count)
			continue;
		if (there < 0 || (is_known && there != *before))
			return false;
		*before = there;
		is_known = true;
	}
	return is_known;
}

/* If the thread was interrupted between a count and its end, another step's end may be nearer. Then all counts are
 * taken to be on the side of their ends where most of them are. */
static bool find_before(const struct torch_scan *scan, const int64_t *ends, size_t count, int64_t *before)
{
	uint32_t behind = 0;

	if (!count || agree(scan, ends, count, nearest, before))
		return count > 0;
	for (uint32_t i = 0; i < scan->counted_count; i++)
		behind += ends[nearest(ends, count, scan->counted[i].time_ns)] <= scan->counted[i].time_ns;
	return agree(scan, ends, count, behind > scan->counted_count / 2 ? behind_end : before_end, before);
}

static size_t list_ends(const struct inference *inference, int64_t *ends)
{
	size_t count = 0;

	for (size_t i = 0; i < inference->count; i++)
		if (inference->list[i].what == INFERRED_STEP)
			ends[count++] = inference->list[i].last_ns;
	return count;
}

/* Leaves out the first step, which starts where the remaining data does, and steps for which events of other threads
 * may be gone. Returns the number left out. */
static size_t leave_out_first(struct inference *inference, int64_t since_ns)
{
	size_t kept = 0, left_out = 0;

	for (size_t i = 0; i < inference->count; i++) {
		const struct inferred *item = &inference->list[i];

		if (item->what == INFERRED_STEP && (!left_out || item->start_ns < since_ns))
			left_out++;
		else
			inference->list[kept++] = *item;
	}
	inference->count = kept;
	inference->step_count -= left_out;
	return left_out;
}

bool torch_scan_number(const struct torch_scan *scan, struct inference *inference, int64_t since_ns)
{
	int64_t *ends = memory_resize(NULL, inference->step_count + 1, sizeof *ends), before = 0;
	size_t count = list_ends(inference, ends), left_out = leave_out_first(inference, since_ns);
	bool is_known = find_before(scan, ends, count, &before);

	free(ends);
	for (size_t i = 0; i < inference->count; i++)
		if (inference->list[i].what == INFERRED_STEP)
			inference->list[i].number += is_known ? before : -(int64_t)left_out;
	return is_known;
}
