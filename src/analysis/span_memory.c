/* SPDX-License-Identifier: Apache-2.0
 *
 * span_memory.c: see the header.
 */
#include "analysis/span_memory.h"

#include "base/memory.h"

#include <stdlib.h>

static int64_t *bytes_of(struct span_memory *memory, uint64_t key)
{
	uint32_t found = number_map_find(&memory->map, key);

	if (found != NUMBER_MAP_NONE)
		return &memory->bytes[found];
	if (memory->count == memory->capacity) {
		memory->capacity = memory->capacity ? 2 * memory->capacity : 1024;
		memory->bytes = memory_resize(memory->bytes, memory->capacity, sizeof(*memory->bytes));
	}
	number_map_set(&memory->map, key, memory->count);
	memory->bytes[memory->count] = 0;
	return &memory->bytes[memory->count++];
}

void span_memory_init(struct span_memory *memory, const struct model *model)
{
	*memory = (struct span_memory){0};
	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];
		wide_bytes bytes = (wide_bytes)event->bytes;
		int64_t *sum;

		if (event->row == MODEL_NONE || event->is_found || event->device >= 0 ||
		    (event->is_free && event->partner == MODEL_NONE))
			continue;
		sum = bytes_of(memory, (uint64_t)event->track << 32 | event->row);
		*sum = bytes_that_fit(*sum + (event->is_free ? -bytes : bytes));
	}
}

void span_memory_release(struct span_memory *memory)
{
	number_map_release(&memory->map);
	free(memory->bytes);
	*memory = (struct span_memory){0};
}
