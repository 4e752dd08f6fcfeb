/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_categories.h: the category of each allocation.
 */
#ifndef MODEL_MEMORY_CATEGORIES_H
#define MODEL_MEMORY_CATEGORIES_H

#include "model/model.h"

/* Sets the category of allocations for which it is unknown; the rules are in memory_categories.c. Allocations and frees
 * must be paired. */
void finish_categories(struct model *model);

#endif
