/* SPDX-License-Identifier: Apache-2.0
 *
 * module_place.h: identifies a module whose name changes by its place in the tree of modules and by the operators that
 * it calls directly. If a module contains several such modules, their order tells them apart. If two recordings differ
 * only in the names of modules, their modules have equal places.
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
	uint64_t around[MODULE_DEPTHS]; /* by depth: the place of the last module at that depth */
	struct number_map counts;       /* of modules with the same parent place and the same operators */
};

/* Returns the place. `operators` are their names, or NULL if the module calls none. Returns NULL if the module is too
 * deep. */
const char *module_place(struct module_places *places, int64_t depth, const char *operators, struct arena *arena);
void module_places_release(struct module_places *places);

#endif
