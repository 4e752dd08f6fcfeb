/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_spans.h: complete spans arrive in order of their ends, or of a device's buffers; the model wants them in
 * order of their starts. One queue per track sorts them. It holds back half a million spans at a time; later ones are
 * taken as they come.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_SPANS_H
#define IMPORTERS_RECORDING_RECORDING_SPANS_H

#include "model/model.h"

struct span_queue;

struct span_ref {            /* a span that following events may refer to */
	uint32_t track, row; /* if queue is NULL; track MODEL_NONE: no span */
	struct span_queue *queue;
	uint32_t entry;
};

struct queued_span {
	int64_t start_ns, dur_ns;
	uint32_t name, shape;
	uint32_t entry; /* notes refer to it */
	uint8_t kind;
};

struct queued_note { /* an ARG or a LINK of a queued span */
	uint32_t entry;
	bool is_link, is_incoming;
	uint8_t link_kind;
	uint64_t number;
	struct span_arg arg;
};

struct span_queue {
	struct queued_span *spans;
	uint32_t count, capacity;
	struct queued_note *notes;
	uint32_t note_count, note_capacity;
	uint32_t track; /* track of the model for these spans */
};

#define SPAN_QUEUE_MAX (1u << 20)

typedef void (*span_queue_link)(void *context, const struct queued_note *note, uint32_t track, uint32_t row);

/* Adds a span and returns its entry. The caller flushes a full queue first. */
uint32_t span_queue_add(struct span_queue *queue, const struct queued_span *span);
void span_queue_note(struct span_queue *queue, const struct queued_note *note);
/* Delivers the `count` earliest spans to the model, and their links to `link`. */
void span_queue_flush(struct span_queue *queue, uint32_t count, struct model *model, span_queue_link link,
                      void *context);
void span_queue_release(struct span_queue *queue);

#endif
