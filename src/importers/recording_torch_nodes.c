/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_torch_nodes.c: which forwards backwards have worked on, by the numbers that autograd gives operators: a node of a graph has the number of
 * the operator that made it. A thread's numbers grow, so a forward has those from its first one to the next forward's first one.
 * Between the lowest and the highest number that one backward worked on all count: what is computed among the operators of a forward is a
 * part of it.
 */
#include "importers/recording_torch_scan.h"

#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"

#include <stepscope/stepscope.h>

#define NUMBER_BITS 48

/* Is it of the same backward, where numbers go down? */
static bool goes_on(struct node_numbers *numbers, const struct stream_scan *stream, uint64_t thread, uint64_t number)
{
	if (numbers->thread != thread || numbers->record != stream->node || number > numbers->highest)
		return false;
	numbers->lowest = number < numbers->lowest ? number : numbers->lowest;
	return true;
}

void torch_nodes_note(struct torch_scan *scan, struct stream_scan *stream, uint64_t word)
{
	uint64_t thread = word >> NUMBER_BITS, number = word & ((UINT64_C(1) << NUMBER_BITS) - 1);
	if (word == STEPSCOPE_NO_SEQUENCE || !thread || scan->number_count == TORCH_SCAN_MAX_RECORDS)
		return;
	if (stream->numbers != NO_RANGE && goes_on(&scan->numbers[stream->numbers], stream, thread, number))
		return;
	MEMORY_GROW(scan->numbers, scan->number_count, scan->number_capacity, 64);
	stream->numbers = scan->number_count;
	scan->numbers[scan->number_count++] = (struct node_numbers){thread, number, number, stream->node};
}

static int compare_numbers(const void *left, const void *right)
{
	const struct node_numbers *a = left, *b = right;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (a->lowest > b->lowest) - (a->lowest < b->lowest);
}

/* Goes through the numbers of a thread. */
struct used {
	const struct node_numbers *next, *end;
	uint64_t highest; /* of those before, plus 1 */
};

/* `sequence`: of the forward behind it. */
static void find_if_unused(struct used *used, uint64_t thread, struct train_record *forward, uint64_t sequence)
{
	if (!forward)
		return;
	for (; used->next < used->end && used->next->thread == thread && used->next->lowest + 1 < sequence;
	     used->next++)
		if (used->next->highest + 1 > used->highest)
			used->highest = used->next->highest + 1;
	forward->is_unused = used->highest < forward->sequence;
}

void torch_nodes_find_unused(struct torch_scan *scan)
{
	if (!scan->number_count || scan->number_count == TORCH_SCAN_MAX_RECORDS) /* none are known, or not all */
		return;
	merge_sort(scan->numbers, scan->number_count, sizeof *scan->numbers, compare_numbers);
	for (uint32_t i = 0; i < scan->stream_count; i++) {
		struct stream_scan *stream = &scan->streams[i];
		size_t first = LOWER_BOUND(scan->numbers, scan->number_count, item,
		                           item->thread < stream->torch_thread);
		struct used used = {scan->numbers + first, scan->numbers + scan->number_count, 0};
		struct train_record *forward = NULL;
		for (uint32_t r = 0; stream->torch_thread && r < stream->record_count; r++) {
			struct train_record *record = &stream->records[r];
			if (record->token != TOKEN_FORWARD || !record->sequence)
				continue;
			find_if_unused(&used, stream->torch_thread, forward, record->sequence);
			forward = record;
		}
		find_if_unused(&used, stream->torch_thread, forward, UINT64_MAX);
	}
}
