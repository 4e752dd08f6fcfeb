/* SPDX-License-Identifier: Apache-2.0
 *
 * span_memory.h: the host memory of each span in bytes, allocated minus freed, while it was the innermost span of its
 * thread. For walks over the spans of threads in the order of track and row. Frees without a recorded allocation do
 * not count.
 */
#ifndef ANALYSIS_MEMORY_SPAN_MEMORY_H
#define ANALYSIS_MEMORY_SPAN_MEMORY_H

#include "model/model.h"

struct span_bytes {
	uint32_t track, row;
	int64_t bytes;
};

struct span_memory {
	struct storage *storage;  /* of the model */
	struct span_bytes *spans; /* sorted by track and row */
	size_t count, capacity, next;
};

void span_memory_init(struct span_memory *memory, const struct model *model);
void span_memory_release(struct span_memory *memory);

/* Returns the bytes of a span. Ask in the order of track and row. */
static inline int64_t span_memory_of(struct span_memory *memory, uint32_t track, uint32_t row)
{
	while (memory->next < memory->count) {
		const struct span_bytes *span = &memory->spans[memory->next];

		if (span->track > track || (span->track == track && span->row >= row))
			return span->track == track && span->row == row ? span->bytes : 0;
		memory->next++;
	}
	return 0;
}

#endif
