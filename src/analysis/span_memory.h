/* SPDX-License-Identifier: Apache-2.0
 *
 * span_memory.h: what each span by itself allocated minus what it freed, in bytes of host memory: of what happened while it was the innermost one
 * of its thread. Frees of what nobody saw allocated do not count.
 */
#ifndef ANALYSIS_SPAN_MEMORY_H
#define ANALYSIS_SPAN_MEMORY_H

#include "model/model.h"
#include "model/number_map.h"

struct span_memory {
	struct number_map map; /* track and row -> index */
	int64_t *bytes;
	uint32_t count, capacity;
};

void span_memory_init(struct span_memory *memory, const struct model *model);
void span_memory_release(struct span_memory *memory);

static inline int64_t span_memory_of(const struct span_memory *memory, uint32_t track, uint32_t row)
{
	uint32_t found = memory->count ? number_map_find(&memory->map, (uint64_t)track << 32 | row) : NUMBER_MAP_NONE;

	return found == NUMBER_MAP_NONE ? 0 : memory->bytes[found];
}

#endif
