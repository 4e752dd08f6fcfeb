/* SPDX-License-Identifier: Apache-2.0
 *
 * places.h: the usual step. A place is a position in the usual sequence of calls and works of a step. Each item of a
 * step has a place, or is extra: the usual step has no such item. So what comes each Nth step can be told from what
 * comes in each one, without a search for a period.
 */
#ifndef REPLAY_PLACES_H
#define REPLAY_PLACES_H

#include "replay/graph.h"

struct replay_place {
	double gap_ns, own_ns; /* medians over the steps, of the gap before the item and of its duration */
	uint32_t count;        /* items at the place */
};

struct replay_places {
	struct replay_place *places;
	uint32_t place_count;
	uint32_t *of_items; /* by item: its place; REPLAY_NONE: extra, or the first item of the window */
	uint32_t alike;     /* steps with exactly the usual sequence */
	bool is_known;      /* there are three steps or more */
};

void replay_places_find(struct replay_places *places, const struct replay_graph *graph);
void replay_places_release(struct replay_places *places);

/* An item of which the usual step has none. */
static inline bool replay_is_extra(const struct replay_places *places, uint32_t item)
{
	return places->is_known && item > 0 && places->of_items[item] == REPLAY_NONE;
}

#endif
