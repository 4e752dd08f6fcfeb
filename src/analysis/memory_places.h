/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_places.h: the module and the line of Python that allocated something. What a backward allocates is its forward's.
 *
 *     struct memory_places places;
 *     memory_places_init(&places, model);
 *     uint32_t line = memory_line_of(&places, event);     0: none is known
 *     text = memory_line_text(&places, line, arena);
 *     memory_places_release(&places);
 */
#ifndef ANALYSIS_MEMORY_PLACES_H
#define ANALYSIS_MEMORY_PLACES_H

#include "base/arena.h"
#include "base/buffer.h"
#include "model/model.h"
#include "model/number_map.h"

struct memory_places {
	const struct model *model;
	struct number_map links; /* track and row of a backward -> its link */
	uint32_t *user_frames;   /* of the stacks; made when first needed */
	struct number_map lines; /* function and line -> the first of its frames */
	struct buffer text;
};

void memory_places_init(struct memory_places *places, const struct model *model);
void memory_places_release(struct memory_places *places);

uint32_t memory_module_of(const struct memory_places *places, const struct memory_event *event); /* string: path */
/* The innermost line of the user's own program; one number for a line, whoever called it. */
uint32_t memory_line_of(struct memory_places *places, const struct memory_event *event);
const char *memory_line_text(struct memory_places *places, uint32_t line, struct arena *arena);

#endif
