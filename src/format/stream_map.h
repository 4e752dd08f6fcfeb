/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_map.h: maps a stream to a number. Stream numbers grow as long as a process creates threads, so they are not
 * usable as an index. Zero-initialise it, and release it at the end.
 */
#ifndef FORMAT_STREAM_MAP_H
#define FORMAT_STREAM_MAP_H

#include <stddef.h>
#include <stdint.h>

struct stream_map {
	uint32_t *keys; /* 0: free */
	uint64_t *values;
	size_t capacity, count;
};

/* Returns the place of the stream's number, which is 0 at first; valid until the next call. Stream 0 is a valid key.
 * Returns NULL if there is no memory. */
uint64_t *stream_map_at(struct stream_map *map, uint32_t stream);
void stream_map_release(struct stream_map *map);

#endif
