/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_categories.h: the category of each allocation.
 */
#ifndef MODEL_MEMORY_CATEGORIES_H
#define MODEL_MEMORY_CATEGORIES_H

#include "model/model.h"

/* Says what the allocations of unknown category are for: memory_categories.c. They are paired. */
void finish_categories(struct model *model);

#endif
