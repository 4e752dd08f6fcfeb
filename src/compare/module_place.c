/* SPDX-License-Identifier: Apache-2.0
 *
 * module_place.c: see the header.
 */
#include "compare/module_place.h"

#include "base/hash.h"

#include <inttypes.h>

const char *module_place(struct module_places *places, int64_t depth, const char *operators, struct arena *arena)
{
	uint64_t like, place;
	uint32_t count;

	if (depth < 0 || depth >= MODULE_DEPTHS)
		return NULL;
	like = hash_mix(depth ? places->around[depth - 1] : 0, 1);
	for (; operators && *operators; operators++)
		like = hash_mix(like, (unsigned char)*operators);
	count = number_map_find(&places->counts, like);
	count = count == NUMBER_MAP_NONE ? 0 : count + 1;
	number_map_set(&places->counts, like, count);
	place = hash_mix(like, count + 2);
	places->around[depth] = place;
	return arena_printf(arena, "%016" PRIx64, place);
}

void module_places_release(struct module_places *places)
{
	number_map_release(&places->counts);
}
