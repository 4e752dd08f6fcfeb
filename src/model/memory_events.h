/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_events.h: puts allocations and frees in order, and adds the missing ones.
 */
#ifndef MODEL_MEMORY_EVENTS_H
#define MODEL_MEMORY_EVENTS_H

#include "model/model.h"

/* Sorts model.memory and owners by process and time, and pairs frees with allocations. Adds allocations that only an
 * owner reported, and sets the category of each. Call it after the tracks are finished. */
void finish_memory(struct model *model);

#endif
