/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_rows.c: finds the spans that were open at given times, in one pass over the rows of a track and its spots,
 * sorted by time.
 */
#include "importers/kineto/kineto_rows.h"

#include "base/merge_sort.h"
#include "importers/kineto/kineto_stage.h"

static int compare_spots(const void *left, const void *right)
{
	const struct kineto_spot *a = *(struct kineto_spot *const *)left, *b = *(struct kineto_spot *const *)right;
	if (a->staged != b->staged)
		return a->staged < b->staged ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static bool is_open_at(const struct track *track, uint32_t row, int64_t time_ns)
{
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(track, row, &i);
	return chunk->start_ns[i] == time_ns || chunk->start_ns[i] + chunk->dur_ns[i] > time_ns;
}

static int64_t kineto_rows_start_of(const struct track *track, uint32_t row)
{
	uint32_t i;
	return track_chunk(track, row, &i)->start_ns[i];
}

static uint32_t parent_of(const struct track *track, uint32_t row)
{
	uint32_t i;
	return track_chunk(track, row, &i)->parent[i];
}

/* Processes the spots on one lane, by time. A span that has ended at one spot has ended for all later ones, so each row
 * is left once. */
static void sweep(const struct model *model, uint32_t number, struct kineto_spot **spots, uint32_t count)
{
	const struct track *track = model->tracks[number];
	uint32_t next = 0, around = MODEL_NONE;
	for (uint32_t i = 0; i < count; i++) {
		struct kineto_spot *spot = spots[i];
		while (next < track->span_count && kineto_rows_start_of(track, next) <= spot->time_ns)
			around = next++;
		while (around != MODEL_NONE && !is_open_at(track, around, spot->time_ns))
			around = parent_of(track, around);
		if (around == MODEL_NONE || spot->row != MODEL_NONE)
			continue;
		spot->track = number;
		spot->row = around;
	}
}

void kineto_find_rows(const struct kineto_stage *stage, const struct model *model, struct kineto_spot *spots,
                      uint32_t count)
{
	struct kineto_spot **sorted = storage_resize(stage->storage, NULL, (size_t)count + 1, sizeof *sorted);
	for (uint32_t i = 0; i < count; i++) {
		sorted[i] = &spots[i];
		spots[i].track = stage->tracks[spots[i].staged].first_track;
		spots[i].row = MODEL_NONE;
	}
	merge_sort_in(stage->storage, sorted, count, sizeof *sorted, compare_spots);
	for (uint32_t first = 0, end; first < count; first = end) {
		const struct staged_track *lanes = &stage->tracks[sorted[first]->staged];
		for (end = first + 1; end < count && sorted[end]->staged == sorted[first]->staged;)
			end++;
		for (uint32_t lane = 0; lane < lanes->track_count; lane++)
			sweep(model, lanes->first_track + lane, sorted + first, end - first);
	}
	storage_release(stage->storage, sorted);
}
