/* SPDX-License-Identifier: Apache-2.0
 *
 * module_place.c: see the header.
 */
#include "compare/module_place.h"

#include <inttypes.h>

static uint64_t mixed(uint64_t hash, uint64_t with)
{
	hash = (hash ^ with) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

const char *module_place(struct module_places *places, int64_t depth, const char *operators, struct arena *arena)
{
	uint64_t like, place;
	uint32_t count;

	if (depth < 0 || depth >= MODULE_DEPTHS)
		return NULL;
	like = mixed(depth ? places->around[depth - 1] : 0, 1);
	for (; operators && *operators; operators++)
		like = mixed(like, (unsigned char)*operators);
	count = number_map_find(&places->counts, like);
	count = count == NUMBER_MAP_NONE ? 0 : count + 1;
	number_map_set(&places->counts, like, count);
	place = mixed(like, count + 2);
	places->around[depth] = place;
	return arena_printf(arena, "%016" PRIx64, place);
}

void module_places_release(struct module_places *places)
{
	number_map_release(&places->counts);
}
