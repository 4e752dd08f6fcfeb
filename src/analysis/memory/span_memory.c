/* SPDX-License-Identifier: Apache-2.0
 *
 * span_memory.c: see the header.
 */
#include "analysis/memory/span_memory.h"

#include "base/merge_sort.h"
#include "base/storage.h"

static int compare_spans(const void *left, const void *right)
{
	const struct span_bytes *a = left, *b = right;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

static void span_memory_add(struct span_memory *memory, const struct span_bytes *item)
{
	if (memory->count && compare_spans(&memory->spans[memory->count - 1], item) == 0) {
		struct span_bytes *last = &memory->spans[memory->count - 1];

		last->bytes = bytes_that_fit((wide_bytes)last->bytes + item->bytes);
		return;
	}
	STORAGE_GROW(memory->storage, memory->spans, memory->count, memory->capacity, 1024);
	memory->spans[memory->count++] = *item;
}

void span_memory_init(struct span_memory *memory, const struct model *model)
{
	size_t count;

	*memory = (struct span_memory){.storage = model->storage};
	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];
		wide_bytes bytes = (wide_bytes)event->bytes;

		if (event->row == MODEL_NONE || event->is_found || event->device >= 0 ||
		    (event->is_free && event->partner == MODEL_NONE))
			continue;
		span_memory_add(memory, &(struct span_bytes){event->track, event->row,
		                                             bytes_that_fit(event->is_free ? -bytes : bytes)});
	}
	if (memory->count)
		merge_sort_in(memory->storage, memory->spans, memory->count, sizeof(*memory->spans), compare_spans);
	count = memory->count;
	memory->count = 0;
	for (size_t i = 0; i < count; i++) /* in place: joining never yields more spans than were read */
		span_memory_add(memory, &memory->spans[i]);
}

void span_memory_release(struct span_memory *memory)
{
	storage_release(memory->storage, memory->spans);
	*memory = (struct span_memory){0};
}
