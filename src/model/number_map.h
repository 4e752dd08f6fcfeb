/* SPDX-License-Identifier: Apache-2.0
 *
 * number_map.h: a hash table from 64-bit numbers to 32-bit numbers (indexes). It owns its memory; an all-zero struct is
 * an empty map. A map that grows with the names of a trace should use the model's storage: struct number_map by_name =
 * {.storage = model->storage}.
 */
#ifndef MODEL_NUMBER_MAP_H
#define MODEL_NUMBER_MAP_H

#include <stdint.h>

#define NUMBER_MAP_NONE UINT32_MAX

struct number_map_slot {
	uint64_t key;
	uint32_t value; /* NUMBER_MAP_NONE: free */
};

struct storage;

struct number_map {
	struct storage *storage; /* (optional) base/storage.h */
	struct number_map_slot *slots;
	uint32_t capacity; /* a power of two, or 0 */
	uint32_t count;
};

void number_map_release(struct number_map *map);                      /* the map is empty afterwards */
uint32_t number_map_find(const struct number_map *map, uint64_t key); /* NUMBER_MAP_NONE when absent */
void number_map_set(struct number_map *map, uint64_t key, uint32_t value);
/* Sets the value of a key that has no value. Returns the key's value. It numbers items in order of appearance:
 *
 *     uint32_t found = number_map_add(&map, key, count);
 *     if (found == count)
 *             list[count++] = (struct item){...};
 */
uint32_t number_map_add(struct number_map *map, uint64_t key, uint32_t value);
void number_map_remove(struct number_map *map, uint64_t key);

#endif
