/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_map.c: open addressing, at most half full. Key 0 (the process) is stored as UINT32_MAX, which no stream has.
 */
#include "format/stream_map.h"

#include "base/hash.h"

#include <stdbool.h>

#define SMALLEST 64u

static size_t stream_map_find(const struct stream_map *map, uint32_t key)
{
	size_t at = (size_t)(hash_word(key) >> 32) & (map->capacity - 1);
	while (map->keys[at] && map->keys[at] != key)
		at = (at + 1) & (map->capacity - 1);
	return at;
}

static bool stream_map_grow(struct stream_map *map)
{
	struct stream_map larger = {.capacity = map->capacity ? map->capacity * 2 : SMALLEST, .count = map->count};
	larger.keys = calloc(larger.capacity, sizeof(*larger.keys));
	larger.values = calloc(larger.capacity, sizeof(*larger.values));
	if (!larger.keys || !larger.values) {
		free(larger.keys);
		free(larger.values);
		return false;
	}
	for (size_t i = 0; i < map->capacity; i++) {
		if (!map->keys[i])
			continue;
		size_t at = stream_map_find(&larger, map->keys[i]);
		larger.keys[at] = map->keys[i];
		larger.values[at] = map->values[i];
	}
	struct stream_map old = *map;
	*map = larger;
	stream_map_release(&old);
	return true;
}

uint64_t *stream_map_at(struct stream_map *map, uint32_t stream)
{
	uint32_t key = stream ? stream : UINT32_MAX;
	if (map->count * 2 >= map->capacity && !stream_map_grow(map))
		return NULL;
	size_t at = stream_map_find(map, key);
	if (!map->keys[at]) {
		map->keys[at] = key;
		map->count++;
	}
	return &map->values[at];
}

void stream_map_release(struct stream_map *map)
{
	free(map->keys);
	free(map->values);
	*map = (struct stream_map){0};
}
