/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_spans.c: sorts complete spans by start, parents (longer ones) first, together with their arguments and
 * links.
 */
#include "importers/recording/recording_spans.h"

#include "base/memory.h"
#include "base/merge_sort.h"

#include <assert.h>
#include <stdlib.h>

uint32_t span_queue_add(struct span_queue *queue, const struct queued_span *span)
{
	MEMORY_GROW(queue->spans, queue->count, queue->capacity, 64);
	queue->spans[queue->count] = *span;
	queue->spans[queue->count].entry = queue->count;
	return queue->count++;
}

void span_queue_note(struct span_queue *queue, const struct queued_note *note)
{
	MEMORY_GROW(queue->notes, queue->note_count, queue->note_capacity, 64);
	queue->notes[queue->note_count++] = *note;
}

static int compare_spans(const void *left, const void *right)
{
	const struct queued_span *a = left, *b = right;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->dur_ns < b->dur_ns) - (a->dur_ns > b->dur_ns);
}

/* rows: by entry; MODEL_NONE for spans that stay in the queue, whose new entries are in `entries`. */
static void settle_notes(struct span_queue *queue, const uint32_t *rows, const uint32_t *entries, struct model *model,
                         span_queue_link link, void *context)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < queue->note_count; i++) {
		struct queued_note *note = &queue->notes[i];
		assert(note->entry < queue->count);
		if (entries[note->entry] != MODEL_NONE) {
			queue->notes[kept] = *note;
			queue->notes[kept++].entry = entries[note->entry];
			continue;
		}
		uint32_t row = rows[note->entry];
		if (row == MODEL_NONE)
			continue; /* nested too deep to be stored */
		if (note->is_link) {
			link(context, note, queue->track, row);
		} else {
			note->arg.track = queue->track;
			note->arg.row = row;
			model_span_arg(model, &note->arg);
		}
	}
	queue->note_count = kept;
}

void span_queue_flush(struct span_queue *queue, uint32_t count, struct model *model, span_queue_link link,
                      void *context)
{
	if (!queue->count)
		return;
	merge_sort(queue->spans, queue->count, sizeof *queue->spans, compare_spans);
	uint32_t *rows = memory_resize(NULL, 2 * (size_t)queue->count, sizeof *rows), *entries = rows + queue->count;
	for (uint32_t i = 0; i < queue->count; i++) {
		struct queued_span *span = &queue->spans[i];
		assert(span->entry < queue->count);
		rows[span->entry] = MODEL_NONE;
		entries[span->entry] = i < count ? MODEL_NONE : i - count;
		if (i >= count) {
			span->entry = i - count;
			continue;
		}
		uint32_t row = model_span_complete(model, queue->track, span->start_ns, span->dur_ns, span->kind,
		                                   span->name);
		rows[span->entry] = row;
		if (span->shape && row != MODEL_NONE)
			model_span_set_shape(model, queue->track, row, span->shape);
	}
	settle_notes(queue, rows, entries, model, link, context);
	queue->count -= count < queue->count ? count : queue->count;
	if (queue->count)
		memmove(queue->spans, queue->spans + count, queue->count * sizeof *queue->spans);
	free(rows);
}

void span_queue_release(struct span_queue *queue)
{
	free(queue->spans);
	free(queue->notes);
	*queue = (struct span_queue){0};
}
