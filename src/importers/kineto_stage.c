/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_stage.c: see kineto_stage.h; what goes into the model is in kineto_deliver.c.
 */
#include "importers/kineto_stage.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void kineto_stage_release(struct kineto_stage *stage)
{
	struct storage *storage = stage->storage;
	for (uint32_t i = 0; i < stage->tracks_count; i++) {
		storage_release(storage, stage->tracks[i].spans);
		storage_release(storage, stage->tracks[i].open);
	}
	storage_release(storage, stage->tracks);
	storage_release(storage, stage->extras);
	storage_release(storage, stage->args);
	storage_release(storage, stage->memory);
	storage_release(storage, stage->flows);
	storage_release(storage, stage->asyncs);
	storage_release(storage, stage->marks);
	storage_release(storage, stage->values);
	storage_release(storage, stage->facts);
	free(stage->slots);
	number_map_release(&stage->frames);
	*stage = (struct kineto_stage){0};
}

static bool is_place(const struct staged_place *a, const struct staged_place *b)
{
	return a->number == b->number && a->text == b->text;
}

static uint32_t hash_of(const struct staged_place *pid, const struct staged_place *tid)
{
	uint64_t hash = (uint64_t)pid->number * 0x9e3779b97f4a7c15u + pid->text;
	hash = (hash ^ (uint64_t)tid->number) * 0x9e3779b97f4a7c15u + tid->text;
	hash *= 0x9e3779b97f4a7c15u;
	return (uint32_t)(hash >> 32);
}

static uint32_t *find_slot(const struct kineto_stage *stage, const struct staged_place *pid,
                           const struct staged_place *tid)
{
	uint32_t slot = hash_of(pid, tid) & (stage->slot_count - 1);
	while (stage->slots[slot]) {
		const struct staged_track *track = &stage->tracks[stage->slots[slot] - 1];
		if (is_place(&track->pid, pid) && is_place(&track->tid, tid))
			break;
		slot = (slot + 1) & (stage->slot_count - 1);
	}
	return &stage->slots[slot];
}

static void grow_slots(struct kineto_stage *stage)
{
	stage->slot_count = stage->slot_count ? 2 * stage->slot_count : 256;
	stage->slots = memory_resize(stage->slots, stage->slot_count, sizeof *stage->slots);
	memset(stage->slots, 0, stage->slot_count * sizeof *stage->slots);
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		*find_slot(stage, &stage->tracks[i].pid, &stage->tracks[i].tid) = i + 1;
}

uint32_t kineto_stage_track(struct kineto_stage *stage, struct staged_place pid, struct staged_place tid)
{
	if (stage->last_track < stage->tracks_count && is_place(&stage->tracks[stage->last_track].pid, &pid) &&
	    is_place(&stage->tracks[stage->last_track].tid, &tid))
		return stage->last_track;
	if (2 * (stage->tracks_count + 1) >= stage->slot_count)
		grow_slots(stage);
	uint32_t *slot = find_slot(stage, &pid, &tid);
	if (!*slot) {
		STAGE_ARRAY_GROW(stage, tracks);
		stage->tracks[stage->tracks_count] = (struct staged_track){.pid = pid, .tid = tid, .device = -1};
		*slot = ++stage->tracks_count;
	}
	stage->last_track = *slot - 1;
	return stage->last_track;
}

const struct staged_track *kineto_stage_find(const struct kineto_stage *stage, struct staged_place pid,
                                             struct staged_place tid)
{
	uint32_t found = stage->slot_count ? *find_slot(stage, &pid, &tid) : 0;
	return found ? &stage->tracks[found - 1] : NULL;
}

struct staged_span *kineto_stage_span(struct kineto_stage *stage, uint32_t number)
{
	struct staged_track *track = &stage->tracks[number];
	if (track->count == track->capacity) {
		track->capacity = track->capacity ? 2 * track->capacity : 16;
		track->spans = storage_resize(stage->storage, track->spans, track->capacity, sizeof *track->spans);
	}
	track->spans[track->count] = (struct staged_span){0};
	return &track->spans[track->count++];
}

void kineto_stage_begin(struct kineto_stage *stage, uint32_t number)
{
	struct staged_track *track = &stage->tracks[number];
	if (track->open_count == track->open_capacity) {
		track->open_capacity = track->open_capacity ? 2 * track->open_capacity : 16;
		track->open = storage_resize(stage->storage, track->open, track->open_capacity, sizeof *track->open);
	}
	track->open[track->open_count++] = track->count - 1;
}

bool kineto_stage_end(struct kineto_stage *stage, uint32_t number, int64_t time_ns)
{
	struct staged_track *track = &stage->tracks[number];
	if (!track->open_count)
		return false;
	struct staged_span *span = &track->spans[track->open[--track->open_count]];
	span->dur_ns = time_ns >= span->start_ns ? time_ns - span->start_ns : 0;
	return true;
}

static void note_end(struct kineto_stage *stage, const struct staged_span *span)
{
	int64_t end_ns = span->start_ns + (span->dur_ns > 0 ? span->dur_ns : 0);
	stage->end_ns = end_ns > stage->end_ns ? end_ns : stage->end_ns;
}

uint64_t kineto_stage_find_end(struct kineto_stage *stage)
{
	uint64_t count = 0;
	stage->end_ns = INT64_MIN;
	for (uint32_t t = 0; t < stage->tracks_count; t++) {
		struct staged_track *track = &stage->tracks[t];
		for (uint32_t i = 0; i < track->count; i++)
			note_end(stage, &track->spans[i]);
		for (uint32_t i = 0; i < track->open_count; i++)
			track->spans[track->open[i]].flags |= SPAN_END_IS_LOST;
		count += track->open_count;
	}
	for (uint32_t i = 0; i < stage->asyncs_count; i++)
		note_end(stage, &stage->asyncs[i].span);
	for (uint32_t i = 0; i < stage->marks_count; i++)
		if (stage->marks[i].time_ns > stage->end_ns)
			stage->end_ns = stage->marks[i].time_ns;
	return count;
}
