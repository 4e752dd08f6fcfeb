/* SPDX-License-Identifier: Apache-2.0
 *
 * number_map.h: a hash table from 64-bit numbers to 32-bit numbers (indexes). Owns its memory; all zero is an empty map.
 * One that grows with the names of a trace lives in the model's storage: struct number_map by_name = {.storage = model->storage}.
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

void number_map_release(struct number_map *map);                      /* leaves it empty */
uint32_t number_map_find(const struct number_map *map, uint64_t key); /* NUMBER_MAP_NONE when absent */
void number_map_set(struct number_map *map, uint64_t key, uint32_t value);
/* Sets the value of a key that has none; returns the one that it has now. For what is numbered in the order in which it comes:
 *
 *     uint32_t found = number_map_add(&map, key, count);
 *     if (found == count)
 *             list[count++] = (struct item){...};
 */
uint32_t number_map_add(struct number_map *map, uint64_t key, uint32_t value);
void number_map_remove(struct number_map *map, uint64_t key);

#endif
