/* SPDX-License-Identifier: Apache-2.0
 *
 * number_map.c: open addressing with linear probing, at most half full. Removal moves later entries up, so there are no
 * tombstones.
 */
#include "model/number_map.h"

#include "base/hash.h"
#include "base/storage.h"

static uint32_t home(const struct number_map *map, uint64_t key)
{
	return (uint32_t)(hash_word(key ^ key >> 32) >> 32) & (map->capacity - 1);
}

static uint32_t number_map_slot_of(const struct number_map *map, uint64_t key)
{
	uint32_t i = home(map, key);
	while (map->slots[i].value != NUMBER_MAP_NONE && map->slots[i].key != key)
		i = (i + 1) & (map->capacity - 1);
	return i;
}

static void number_map_grow(struct number_map *map)
{
	struct number_map old = *map;
	map->capacity = old.capacity ? 2 * old.capacity : 16;
	map->slots = storage_resize(map->storage, NULL, map->capacity, sizeof *map->slots);
	for (uint32_t i = 0; i < map->capacity; i++)
		map->slots[i].value = NUMBER_MAP_NONE;
	for (uint32_t i = 0; i < old.capacity; i++)
		if (old.slots[i].value != NUMBER_MAP_NONE)
			map->slots[number_map_slot_of(map, old.slots[i].key)] = old.slots[i];
	storage_release(map->storage, old.slots);
}

void number_map_release(struct number_map *map)
{
	storage_release(map->storage, map->slots);
	*map = (struct number_map){.storage = map->storage};
}

uint32_t number_map_find(const struct number_map *map, uint64_t key)
{
	return map->capacity ? map->slots[number_map_slot_of(map, key)].value : NUMBER_MAP_NONE;
}

/* Returns the slot of the key, after making room for one more. */
static struct number_map_slot *slot_to_fill(struct number_map *map, uint64_t key)
{
	if (2 * (map->count + 1) > map->capacity)
		number_map_grow(map);
	return &map->slots[number_map_slot_of(map, key)];
}

void number_map_set(struct number_map *map, uint64_t key, uint32_t value)
{
	struct number_map_slot *slot = slot_to_fill(map, key);
	map->count += slot->value == NUMBER_MAP_NONE;
	*slot = (struct number_map_slot){key, value};
}

uint32_t number_map_add(struct number_map *map, uint64_t key, uint32_t value)
{
	struct number_map_slot *slot = slot_to_fill(map, key);
	if (slot->value == NUMBER_MAP_NONE) {
		map->count++;
		*slot = (struct number_map_slot){key, value};
	}
	return slot->value;
}

void number_map_remove(struct number_map *map, uint64_t key)
{
	if (!map->capacity)
		return;
	uint32_t mask = map->capacity - 1, hole = number_map_slot_of(map, key);
	if (map->slots[hole].value == NUMBER_MAP_NONE)
		return;
	for (uint32_t i = (hole + 1) & mask; map->slots[i].value != NUMBER_MAP_NONE; i = (i + 1) & mask) {
		/* may move into the hole unless its home is cyclically in (hole, i] */
		uint32_t distance = (i - home(map, map->slots[i].key)) & mask;
		if (distance >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole].value = NUMBER_MAP_NONE;
	map->count--;
}
