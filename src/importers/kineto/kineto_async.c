/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_async.c: pairs asynchronous events (b and e, until 2014 S and F) to spans. Events with one category and one id
 * belong together, whatever threads they are on; among them, the span that began last ends first. Each category of a
 * process has its own tracks.
 */
#include "base/hash.h"
#include "base/merge_sort.h"
#include "importers/kineto/kineto_import.h"

#include <stdlib.h>
#include <string.h>

static uint64_t kineto_async_hash_text(uint64_t hash, const struct kineto_value *value)
{
	return hash_word(hash_bytes(hash, value->at, value->length) ^ value->type);
}

/* The id is a number or a text. */
static uint64_t hash_id(uint64_t key, const struct kineto_value *id)
{
	uint64_t number;
	return kineto_unsigned(id, &number) ? hash_word(key ^ number) : kineto_async_hash_text(key, id);
}

/* {"local": ...} is unique only within its process. */
static uint64_t kineto_async_key_of(const struct kineto_event *event)
{
	const struct kineto_value *id = &event->fields[KINETO_EVENT_ID];
	uint64_t key = kineto_async_hash_text(HASH_BYTES, &event->fields[KINETO_EVENT_CAT]);
	struct kineto_walk walk = kineto_walk_begin(id);
	if (id->type != VALUE_OBJECT)
		return hash_id(key, id);
	while (kineto_walk_next(&walk)) {
		key = hash_id(kineto_async_hash_text(key, &walk.key), &walk.value);
		if (kineto_is_text(&walk.key, "local"))
			key = kineto_async_hash_text(key, &event->fields[KINETO_EVENT_PID]);
	}
	return key;
}

uint32_t kineto_async_track(struct kineto_import *import, const struct kineto_event *event)
{
	const struct kineto_value *cat = &event->fields[KINETO_EVENT_CAT];
	struct staged_place row = {.text = cat->length ? kineto_intern(import, cat)
	                                               : intern_add(&import->model->strings, "async")};
	return kineto_stage_track(&import->stage, kineto_place(import, &event->fields[KINETO_EVENT_PID]), row);
}

bool kineto_is_async(char phase)
{
	return phase == 'b' || phase == 'e' || phase == 'n' || phase == 'S' || phase == 'F';
}

void kineto_take_async(struct kineto_import *import, const struct kineto_event *event, const struct staged_span *span,
                       bool is_end)
{
	struct kineto_stage *stage = &import->stage;
	uint32_t track = kineto_async_track(import, event);
	if (!stage->tracks[track].is_loose && !stage->tracks[track].count)
		stage->tracks[track].offset = import->offset;
	stage->tracks[track].is_loose = true;
	STAGE_ARRAY_GROW(stage, asyncs);
	stage->asyncs[stage->asyncs_count++] = (struct staged_async){
		.span = *span, .key = kineto_async_key_of(event), .track = track, .is_end = is_end};
}

/* Orders by key, then by time, ends before begins, and never by the place in the file. */
static int compare_asyncs(const void *left, const void *right)
{
	const struct staged_async *a = left, *b = right;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->span.start_ns != b->span.start_ns)
		return a->span.start_ns < b->span.start_ns ? -1 : 1;
	if (a->is_end != b->is_end)
		return a->is_end ? -1 : 1;
	return (a->span.tie > b->span.tie) - (a->span.tie < b->span.tie);
}

static void kineto_async_add_span(struct kineto_stage *stage, const struct staged_async *begin, int64_t dur_ns)
{
	struct staged_span *span = kineto_stage_span(stage, begin->track);
	*span = begin->span;
	span->dur_ns = dur_ns;
}

/* Pairs one group. Halves without the other are counted, and a span without an end lasts until the end of the
 * recording. `open` has room for all. */
static void pair(struct kineto_import *import, uint32_t first, uint32_t end, uint32_t *open)
{
	struct kineto_stage *stage = &import->stage;
	uint32_t depth = 0;
	for (uint32_t i = first; i < end; i++) {
		const struct staged_async *async = &stage->asyncs[i];
		if (!async->is_end) {
			open[depth++] = i;
		} else if (!depth) {
			kineto_repair_note(&import->repairs, REPAIR_END, 1, KINETO_NO_PLACE);
		} else {
			const struct staged_async *begin = &stage->asyncs[open[--depth]];
			kineto_async_add_span(stage, begin, async->span.start_ns - begin->span.start_ns);
		}
	}
	kineto_repair_note(&import->repairs, REPAIR_BEGIN, depth, KINETO_NO_PLACE);
	while (depth) {
		struct staged_async *begin = &stage->asyncs[open[--depth]];
		begin->span.flags |= SPAN_END_IS_LOST;
		kineto_async_add_span(stage, begin, stage->end_ns - begin->span.start_ns);
	}
}

void kineto_pair_asyncs(struct kineto_import *import)
{
	struct kineto_stage *stage = &import->stage;
	uint32_t count = stage->asyncs_count;
	uint32_t *open = storage_resize(stage->storage, NULL, (size_t)count + 1, sizeof *open);
	merge_sort_in(stage->storage, stage->asyncs, count, sizeof *stage->asyncs, compare_asyncs);
	for (uint32_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && stage->asyncs[end].key == stage->asyncs[first].key;)
			end++;
		pair(import, first, end, open);
	}
	storage_release(stage->storage, open);
}
