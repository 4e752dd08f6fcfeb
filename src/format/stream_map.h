/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_map.h: a figure per stream. Numbers of streams grow for as long as a process makes threads, so they are no index; a map
 * of the streams that are really there. Zero-initialise, release at the end.
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

/* The stream's figure, 0 at first; valid until the next call. NULL for stream 0 without memory. */
uint64_t *stream_map_at(struct stream_map *map, uint32_t stream);
void stream_map_release(struct stream_map *map);

#endif
