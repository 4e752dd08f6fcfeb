/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_doubles.c: handles files that contain each event twice, such as two files joined into one. Duplicates of
 * events that their writer numbered are recognised anyway (kineto_deliver.c). Of other events, two may be equal by
 * chance, but not all of them. If all spans are doubled, marks and values are checked, too.
 */
#include "importers/kineto/kineto_doubles.h"

#include "base/merge_sort.h"
#include "importers/kineto/kineto_deliver.h"
#include "importers/kineto/kineto_stage.h"

#include <math.h>
#include <string.h>

#define PAIRS_LEAST 8 /* fewer may be chance */
#define RUN_MOST 64   /* spans with equal times to search for twins */

static bool has_number(const struct staged_span *span)
{
	return span->flags & STAGED_HAS_NUMBER;
}

/* Returns the end of the run of spans with equal times that starts at `first`. */
static uint32_t end_of_run(const struct staged_track *track, uint32_t first)
{
	const struct staged_span *spans = track->spans;
	uint32_t end = first + 1;
	while (end < track->count && spans[end].start_ns == spans[first].start_ns &&
	       spans[end].dur_ns == spans[first].dur_ns)
		end++;
	return end;
}

/* Counts the spans of a run that have no number and equal this one. */
static uint32_t count_twins(const struct staged_span *spans, uint32_t first, uint32_t end, const struct staged_span *of)
{
	uint32_t count = 0;
	for (uint32_t i = first; i < end; i++)
		count += !has_number(&spans[i]) && spans[i].kind == of->kind && spans[i].name == of->name &&
		         spans[i].shape == of->shape && spans[i].inputs == of->inputs;
	return count;
}

/* Returns true if every span without a number has a twin. Numbered spans count as pairs if they have one, but need
 * none. Most files have an unnumbered span among their first, so this ends early. */
static bool are_all_pairs(const struct staged_track *track, uint64_t *pairs)
{
	const struct staged_span *spans = track->spans;
	for (uint32_t first = 0, end; first < track->count; first = end) {
		end = end_of_run(track, first);
		for (uint32_t i = first; i < end; i++) {
			if (has_number(&spans[i])) {
				*pairs += i > first && kineto_compare_spans(&spans[i - 1], &spans[i]) == 0;
				continue;
			}
			if (end - first > RUN_MOST || count_twins(spans, first, end, &spans[i]) % 2)
				return false;
			*pairs += count_twins(spans, first, i, &spans[i]) % 2;
		}
	}
	return true;
}

static void leave_out_second(struct kineto_stage *stage, struct staged_track *track)
{
	struct staged_span *spans = track->spans;
	uint32_t kept = 0;
	for (uint32_t first = 0, end; first < track->count; first = end) {
		end = end_of_run(track, first);
		for (uint32_t i = first; i < end; i++) /* those before i may be overwritten */
			if (has_number(&spans[i]) || count_twins(spans, i, end, &spans[i]) % 2 == 0)
				spans[kept++] = spans[i];
	}
	stage->duplicates += track->count - kept;
	track->count = kept;
}

/* ---- marks, values ---- */

static int compare_marks(const void *left, const void *right)
{
	const struct staged_mark *a = left, *b = right;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->track != b->track ? (a->track > b->track) - (a->track < b->track)
	                            : (a->name > b->name) - (a->name < b->name);
}

static int kineto_doubles_compare_values(const void *left, const void *right)
{
	const struct staged_value *a = left, *b = right;
	struct staged_mark x = {a->time_ns, a->track, a->name}, y = {b->time_ns, b->track, b->name};
	int order = compare_marks(&x, &y);
	if (!order)
		order = a->is_metric - b->is_metric;
	if (!order)
		order = (a->value > b->value) - (a->value < b->value);
	return order ? order : !!isnan(a->value) - !!isnan(b->value);
}

/* Removes one of each two if all items occur twice. Returns the number of items left. */
static uint32_t leave_out_pairs(struct kineto_stage *stage, void *items, uint32_t count, size_t size,
                                int (*compare)(const void *, const void *))
{
	char *at = items;
	merge_sort_in(stage->storage, items, count, size, compare);
	for (uint32_t i = 0; i < count; i += 2)
		if (i + 1 == count || compare(at + i * size, at + (i + 1) * size) != 0)
			return count;
	for (uint32_t i = 0; i < count; i += 2)
		memmove(at + i / 2 * size, at + i * size, size);
	stage->duplicates += count / 2;
	return count / 2;
}

void kineto_leave_out_doubles(struct kineto_stage *stage)
{
	uint64_t pairs = 0;
	for (uint32_t i = 0; i < stage->tracks_count; i++) {
		kineto_sort(stage, &stage->tracks[i]);
		if (!are_all_pairs(&stage->tracks[i], &pairs))
			return;
	}
	if (pairs < PAIRS_LEAST)
		return;
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		leave_out_second(stage, &stage->tracks[i]);
	stage->marks_count = leave_out_pairs(stage, stage->marks, stage->marks_count, sizeof(*stage->marks),
	                                     compare_marks);
	stage->values_count = leave_out_pairs(stage, stage->values, stage->values_count, sizeof(*stage->values),
	                                      kineto_doubles_compare_values);
}
