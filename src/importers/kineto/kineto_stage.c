/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_stage.c: see kineto_stage.h; kineto_deliver.c delivers to the model.
 */
#include "importers/kineto/kineto_stage.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/merge_sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void kineto_stage_release(struct kineto_stage *stage)
{
	struct storage *storage = stage->storage;
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		storage_release(storage, stage->tracks[i].spans);
	storage_release(storage, stage->tracks);
	storage_release(storage, stage->extras);
	storage_release(storage, stage->args);
	storage_release(storage, stage->steps);
	storage_release(storage, stage->memory);
	storage_release(storage, stage->flows);
	storage_release(storage, stage->asyncs);
	storage_release(storage, stage->bounds);
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

static uint32_t kineto_stage_hash_of(const struct staged_place *pid, const struct staged_place *tid)
{
	const uint64_t parts[] = {(uint64_t)pid->number, pid->text, (uint64_t)tid->number, tid->text};
	return (uint32_t)(hash_words(parts, sizeof parts / sizeof *parts) >> 32);
}

static uint32_t *kineto_stage_find_slot(const struct kineto_stage *stage, const struct staged_place *pid,
                                        const struct staged_place *tid)
{
	assert(stage->slot_count && !(stage->slot_count & (stage->slot_count - 1)));
	uint32_t slot = kineto_stage_hash_of(pid, tid) & (stage->slot_count - 1);
	while (stage->slots[slot]) {
		const struct staged_track *track = &stage->tracks[stage->slots[slot] - 1];
		if (is_place(&track->pid, pid) && is_place(&track->tid, tid))
			break;
		slot = (slot + 1) & (stage->slot_count - 1);
	}
	return &stage->slots[slot];
}

static void kineto_stage_grow_slots(struct kineto_stage *stage)
{
	stage->slot_count = stage->slot_count ? 2 * stage->slot_count : 256;
	stage->slots = memory_resize(stage->slots, stage->slot_count, sizeof *stage->slots);
	memset(stage->slots, 0, stage->slot_count * sizeof *stage->slots);
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		*kineto_stage_find_slot(stage, &stage->tracks[i].pid, &stage->tracks[i].tid) = i + 1;
}

uint32_t kineto_stage_track(struct kineto_stage *stage, struct staged_place pid, struct staged_place tid)
{
	if (stage->last_track < stage->tracks_count && is_place(&stage->tracks[stage->last_track].pid, &pid) &&
	    is_place(&stage->tracks[stage->last_track].tid, &tid))
		return stage->last_track;
	if (2 * (stage->tracks_count + 1) >= stage->slot_count)
		kineto_stage_grow_slots(stage);
	uint32_t *slot = kineto_stage_find_slot(stage, &pid, &tid);
	if (!*slot) {
		STAGE_ARRAY_GROW(stage, tracks);
		stage->tracks[stage->tracks_count] = (struct staged_track){
			.pid = pid, .tid = tid, .device = -1, .bound_ns = INT64_MIN};
		*slot = ++stage->tracks_count;
	}
	stage->last_track = *slot - 1;
	return stage->last_track;
}

const struct staged_track *kineto_stage_find(const struct kineto_stage *stage, struct staged_place pid,
                                             struct staged_place tid)
{
	uint32_t found = stage->slot_count ? *kineto_stage_find_slot(stage, &pid, &tid) : 0;
	return found ? &stage->tracks[found - 1] : NULL;
}

struct staged_span *kineto_stage_span(struct kineto_stage *stage, uint32_t number)
{
	assert(number < stage->tracks_count);
	struct staged_track *track = &stage->tracks[number];
	STORAGE_GROW(stage->storage, track->spans, track->count, track->capacity, 4);
	track->is_sorted = false;
	track->spans[track->count] = (struct staged_span){0};
	return &track->spans[track->count++];
}

uint32_t kineto_stage_split(struct kineto_stage *stage, uint32_t number,
                            bool (*is_moved)(const struct staged_span *span))
{
	assert(number < stage->tracks_count);
	uint32_t other = stage->tracks_count, kept = 0;
	STAGE_ARRAY_GROW(stage, tracks);
	stage->tracks[stage->tracks_count++] = (struct staged_track){.pid = stage->tracks[number].pid,
	                                                             .tid = stage->tracks[number].tid,
	                                                             .device = -1,
	                                                             .bound_ns = INT64_MIN};
	for (uint32_t i = 0; i < stage->tracks[number].count; i++) {
		struct staged_span span = stage->tracks[number].spans[i];
		if (is_moved(&span))
			*kineto_stage_span(stage, other) = span;
		else
			stage->tracks[number].spans[kept++] = span;
	}
	stage->tracks[number].count = kept;
	return other;
}

/* ---- begins and ends ---- */

static void add_bound(struct kineto_stage *stage, const struct staged_bound *bound)
{
	struct staged_track *track = &stage->tracks[bound->track];
	track->is_mixed |= bound->time_ns < track->bound_ns;
	track->bound_ns = bound->time_ns;
	STAGE_ARRAY_GROW(stage, bounds);
	stage->bounds[stage->bounds_count++] = *bound;
}

void kineto_stage_begin(struct kineto_stage *stage, uint32_t number, uint64_t offset)
{
	const struct staged_track *track = &stage->tracks[number];
	assert(track->count > 0); /* its span was added just before */
	const struct staged_span *span = &track->spans[track->count - 1];
	add_bound(stage, &(struct staged_bound){.time_ns = span->start_ns,
	                                        .offset = offset,
	                                        .track = number,
	                                        .row = track->count - 1,
	                                        .name = span->name});
}

void kineto_stage_end(struct kineto_stage *stage, uint32_t number, int64_t time_ns, uint32_t name, uint64_t offset)
{
	add_bound(stage,
	          &(struct staged_bound){
			  .time_ns = time_ns, .offset = offset, .track = number, .row = STAGED_IS_END, .name = name});
}

/* Equal bounds keep the order of the file, since the sort is stable. */
static int compare_bounds(const void *left, const void *right)
{
	const struct staged_bound *a = left, *b = right;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

struct kineto_stage_pairing { /* state for one track */
	struct kineto_stage *stage;
	struct staged_halves *halves;
	uint32_t *open; /* has room for all */
	uint32_t depth;
	/* for one instant, by name: begin events not reserved for an end, and end events that wait for one */
	struct number_map begins, waiting;
};

#define STAGED_IS_DONE (STAGED_IS_END - 1) /* row of an end that is already paired */
#define ALIKE 64                           /* open spans to search for a name */

static struct staged_span *span_of(const struct kineto_stage_pairing *pairing, const struct staged_bound *begin)
{
	return &pairing->stage->tracks[begin->track].spans[begin->row];
}

static void take_begin(struct kineto_stage_pairing *pairing, uint32_t number)
{
	pairing->open[pairing->depth++] = number;
}

static const struct staged_bound *open_at(const struct kineto_stage_pairing *pairing, uint32_t depth)
{
	return &pairing->stage->bounds[pairing->open[depth]];
}

/* For spans that began at one time, the place in the file says nothing: the one with the end's name is taken as the
 * inner one. */
static void raise_named(struct kineto_stage_pairing *pairing, uint32_t name)
{
	assert(pairing->depth > 0);
	uint32_t top = pairing->depth - 1;
	for (uint32_t i = top + 1; name && i-- > 0 && top - i < ALIKE;) {
		const struct staged_bound *begin = open_at(pairing, i);
		uint32_t number = pairing->open[i];
		if (begin->time_ns != open_at(pairing, top)->time_ns)
			return;
		if (begin->name != name)
			continue;
		memmove(&pairing->open[i], &pairing->open[i + 1], (top - i) * sizeof *pairing->open);
		pairing->open[top] = number;
		return;
	}
}

static void take_end(struct kineto_stage_pairing *pairing, uint32_t number)
{
	const struct staged_bound *bound = &pairing->stage->bounds[number];
	struct staged_halves *halves = pairing->halves;
	if (pairing->depth) {
		raise_named(pairing, bound->name);
		const struct staged_bound *begin = &pairing->stage->bounds[pairing->open[--pairing->depth]];
		span_of(pairing, begin)->dur_ns = bound->time_ns - begin->time_ns;
		return;
	}
	if (!halves->ends || bound->offset < halves->first_end)
		halves->first_end = bound->offset;
	halves->ends++;
}

/* ---- bounds of one time ---- */

static uint32_t kineto_stage_count_of(const struct number_map *map, uint32_t name)
{
	uint32_t count = number_map_find(map, name);
	return count == NUMBER_MAP_NONE ? 0 : count;
}

static void count_begins(struct kineto_stage_pairing *pairing, uint32_t first, uint32_t end)
{
	const struct staged_bound *bounds = pairing->stage->bounds;
	for (uint32_t i = first; i < end; i++)
		if (bounds[i].row == STAGED_IS_END && bounds[i].name)
			number_map_set(&pairing->begins, bounds[i].name, 0);
	for (uint32_t i = first; i < end; i++)
		if (bounds[i].row != STAGED_IS_END &&
		    number_map_find(&pairing->begins, bounds[i].name) != NUMBER_MAP_NONE)
			number_map_set(&pairing->begins, bounds[i].name,
			               kineto_stage_count_of(&pairing->begins, bounds[i].name) + 1);
}

static bool is_open(const struct kineto_stage_pairing *pairing, uint32_t name)
{
	for (uint32_t i = pairing->depth; i-- > 0 && pairing->depth - i <= ALIKE;)
		if (open_at(pairing, i)->name == name)
			return true;
	return false;
}

/* Reserves a later begin event of this instant for an end event, if both are of a span without length. Otherwise
 * returns false. */
static bool waits_for_begin(struct kineto_stage_pairing *pairing, uint32_t name)
{
	uint32_t count = name ? kineto_stage_count_of(&pairing->begins, name) : 0;
	if (!count || is_open(pairing, name))
		return false;
	number_map_set(&pairing->begins, name, count - 1);
	number_map_set(&pairing->waiting, name, kineto_stage_count_of(&pairing->waiting, name) + 1);
	return true;
}

static void take_begin_here(struct kineto_stage_pairing *pairing, uint32_t number)
{
	uint32_t name = pairing->stage->bounds[number].name, waiting = kineto_stage_count_of(&pairing->waiting, name);
	uint32_t begins = kineto_stage_count_of(&pairing->begins, name);
	take_begin(pairing, number);
	if (waiting) {
		number_map_set(&pairing->waiting, name, waiting - 1);
		take_end(pairing, number); /* the end has the same time and name */
	} else if (begins) {
		number_map_set(&pairing->begins, name, begins - 1);
	}
}

/* Takes bounds in the order of the file. */
static void take_in_order(struct kineto_stage_pairing *pairing, uint32_t first, uint32_t end)
{
	const struct staged_bound *bounds = pairing->stage->bounds;
	for (uint32_t i = first; i < end; i++) {
		if (bounds[i].row != STAGED_IS_END)
			take_begin_here(pairing, i);
		else if (!waits_for_begin(pairing, bounds[i].name))
			take_end(pairing, i);
	}
}

/* If the order is unknown, takes ends of spans that began before, then begins, then ends of spans without length. */
static void take_mixed(struct kineto_stage_pairing *pairing, uint32_t first, uint32_t end)
{
	struct staged_bound *bounds = pairing->stage->bounds;
	uint32_t before = pairing->depth;
	for (uint32_t i = first; i < end; i++) {
		bool is_waiting = bounds[i].row == STAGED_IS_END && waits_for_begin(pairing, bounds[i].name);
		if (bounds[i].row != STAGED_IS_END || (!is_waiting && !before))
			continue;
		if (!is_waiting) {
			before--;
			take_end(pairing, i);
		}
		bounds[i].row = STAGED_IS_DONE;
	}
	for (uint32_t i = first; i < end; i++)
		if (bounds[i].row < STAGED_IS_DONE)
			take_begin_here(pairing, i);
	for (uint32_t i = first; i < end; i++)
		if (bounds[i].row == STAGED_IS_END)
			take_end(pairing, i);
}

static void pair_track(struct kineto_stage_pairing *pairing, uint32_t first, uint32_t end)
{
	const struct staged_bound *bounds = pairing->stage->bounds;
	bool is_mixed = pairing->stage->tracks[bounds[first].track].is_mixed;
	for (uint32_t i = first, next; i < end; i = next) {
		for (next = i + 1; next < end && bounds[next].time_ns == bounds[i].time_ns;)
			next++;
		if (next - i > 1)
			count_begins(pairing, i, next);
		if (is_mixed)
			take_mixed(pairing, i, next);
		else
			take_in_order(pairing, i, next);
	}
	pairing->halves->begins += pairing->depth;
	while (pairing->depth)
		span_of(pairing, &bounds[pairing->open[--pairing->depth]])->flags |= SPAN_END_IS_LOST;
}

static void note_end(struct kineto_stage *stage, const struct staged_span *span)
{
	int64_t end_ns = span->start_ns + (span->dur_ns > 0 ? span->dur_ns : 0);
	stage->end_ns = end_ns > stage->end_ns ? end_ns : stage->end_ns;
}

static void find_end(struct kineto_stage *stage)
{
	stage->end_ns = INT64_MIN;
	for (uint32_t t = 0; t < stage->tracks_count; t++)
		for (uint32_t i = 0; i < stage->tracks[t].count; i++)
			note_end(stage, &stage->tracks[t].spans[i]);
	for (uint32_t i = 0; i < stage->asyncs_count; i++)
		note_end(stage, &stage->asyncs[i].span);
	for (uint32_t i = 0; i < stage->marks_count; i++)
		if (stage->marks[i].time_ns > stage->end_ns)
			stage->end_ns = stage->marks[i].time_ns;
}

static void kineto_stage_pair_all(struct kineto_stage_pairing *pairing)
{
	const struct kineto_stage *stage = pairing->stage;
	for (uint32_t first = 0, end; first < stage->bounds_count; first = end) {
		for (end = first + 1;
		     end < stage->bounds_count && stage->bounds[end].track == stage->bounds[first].track;)
			end++;
		pair_track(pairing, first, end);
	}
}

struct staged_halves kineto_stage_pair(struct kineto_stage *stage)
{
	struct staged_halves halves = {0};
	uint32_t count = stage->bounds_count;
	struct kineto_stage_pairing pairing = {.stage = stage, .halves = &halves};
	pairing.open = storage_resize(stage->storage, NULL, (size_t)count + 1, sizeof *pairing.open);
	merge_sort_in(stage->storage, stage->bounds, count, sizeof *stage->bounds, compare_bounds);
	kineto_stage_pair_all(&pairing);
	storage_release(stage->storage, pairing.open);
	number_map_release(&pairing.begins);
	number_map_release(&pairing.waiting);
	storage_release(stage->storage, stage->bounds);
	stage->bounds = NULL;
	stage->bounds_count = stage->bounds_capacity = 0;
	find_end(stage);
	return halves;
}
