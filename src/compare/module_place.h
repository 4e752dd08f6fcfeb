/* SPDX-License-Identifier: Apache-2.0
 *
 * module_place.h: what a module is when its name changes: where it is in the tree of modules, and the operators that it calls itself. Of
 * several such in one module the first is the first. Modules of two recordings that differ in names alone have equal places.
 *
 *     struct module_places places = {0};
 *     for (...rows of the table modules, in its order) module_place(&places, depth, operators, arena)
 *     module_places_release(&places);
 */
#ifndef COMPARE_MODULE_PLACE_H
#define COMPARE_MODULE_PLACE_H

#include "base/arena.h"
#include "model/number_map.h"

#define MODULE_DEPTHS 256

struct module_places {
	uint64_t around[MODULE_DEPTHS]; /* by depth: the place of the last module there */
	struct number_map counts;       /* of those with one place around them and the same operators */
};

/* operators: their names, NULL: it calls none. NULL: it is too deep to tell. */
const char *module_place(struct module_places *places, int64_t depth, const char *operators, struct arena *arena);
void module_places_release(struct module_places *places);

#endif
