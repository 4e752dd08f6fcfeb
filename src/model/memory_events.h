/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_events.h: allocations and frees in order, and what is missing among them.
 */
#ifndef MODEL_MEMORY_EVENTS_H
#define MODEL_MEMORY_EVENTS_H

#include "model/model.h"

/* Sorts model.memory and owners by process and time, pairs frees with allocations, adds those that only an owner told of, and says
 * what each is for. Tracks are finished. */
void finish_memory(struct model *model);

#endif
