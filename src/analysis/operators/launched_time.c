/* SPDX-License-Identifier: Apache-2.0
 *
 * launched_time.c: see launched_time.h.
 */
#include "analysis/operators/launched_time.h"

#include "base/clamped.h"
#include "base/merge_sort.h"
#include "base/storage.h"

#include <assert.h>
#include <string.h>

static int launched_time_compare_calls(const void *left, const void *right)
{
	const struct launched_call *a = left, *b = right;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

static void launched_time_join(struct launched_call *call, const struct launched_call *other)
{
	call->count += other->count;
	call->untimed += other->untimed;
	clamped_add(&call->dur_ns, other->dur_ns);
}

static void launched_time_add(struct launched_time *time, const struct launched_call *call)
{
	struct launched_call *last = time->count ? &time->calls[time->count - 1] : NULL;

	if (last && launched_time_compare_calls(last, call) == 0) { /* graphs launch much work at once */
		launched_time_join(last, call);
		return;
	}
	if (!time->calls || time->count == time->capacity) {
		time->capacity = time->capacity ? 2 * time->capacity : 1024;
		time->calls = storage_resize(time->storage, time->calls, time->capacity, sizeof(*time->calls));
	}
	time->calls[time->count++] = *call;
}

void launched_time_init(struct launched_time *time, const struct model *model, const struct launches *launches)
{
	size_t kept = 0;

	*time = (struct launched_time){.storage = model->storage};
	for (uint32_t number = 0; number < launches->track_count; number++) {
		const struct track *track = model->tracks[number];

		for (uint32_t c = 0; launches->by_track[number] && c < track->chunk_count; c++) {
			const struct span_chunk *chunk = track->chunks[c];

			for (uint32_t i = 0; i < chunk->count; i++) {
				const struct launch *launch = launches_of(launches, number, chunk->first_row + i);

				if (launch->track != MODEL_NONE)
					launched_time_add(time, &(struct launched_call){
									.track = launch->track,
									.row = launch->row,
									.count = 1,
									.untimed = !span_is_timed(chunk->flags[i]),
									.dur_ns = chunk->dur_ns[i]});
			}
			model_chunk_done(model, chunk);
		}
	}
	merge_sort_in(time->storage, time->calls, time->count, sizeof(*time->calls), launched_time_compare_calls);
	for (size_t i = 0; i < time->count; i++) {
		if (kept && launched_time_compare_calls(&time->calls[kept - 1], &time->calls[i]) == 0) {
			launched_time_join(&time->calls[kept - 1], &time->calls[i]);
		} else {
			time->calls[kept++] = time->calls[i];
		}
	}
	time->count = kept;
}

void launched_time_release(struct launched_time *time)
{
	storage_release(time->storage, time->calls);
	*time = (struct launched_time){0};
}

const struct launched_call *launched_time_at(struct launched_time *time, uint32_t track, uint32_t row)
{
	struct launched_call wanted = {.track = track, .row = row};

	/* spans are asked for in their order, or calls before `next` would be missed */
	assert(!time->next || launched_time_compare_calls(&time->calls[time->next - 1], &wanted) < 0);

	while (time->next < time->count && launched_time_compare_calls(&time->calls[time->next], &wanted) < 0)
		time->next++;
	if (time->next == time->count || launched_time_compare_calls(&time->calls[time->next], &wanted) != 0)
		return NULL;
	return &time->calls[time->next];
}
