/* SPDX-License-Identifier: Apache-2.0
 *
 * span_places.h: the module, the line and the stack of Python that a span lies in. Module and line of a backward are its forward's.
 *
 *     struct span_places places;
 *     span_places_init(&places, model);
 *     uint32_t line = span_line_of(&places, track, row);     0: none is known
 *     text = span_line_text(&places, line, arena);
 *     span_places_release(&places);
 */
#ifndef ANALYSIS_SHARED_SPAN_PLACES_H
#define ANALYSIS_SHARED_SPAN_PLACES_H

#include "base/arena.h"
#include "base/buffer.h"
#include "model/model.h"
#include "model/number_map.h"

struct span_places {
	const struct model *model;
	struct number_map links; /* track and row of a backward -> its link */
	bool *has_links;         /* by track */
	uint32_t *user_frames;   /* of the stacks; made when first needed */
	struct number_map lines; /* function and line -> the first of its frames */
	struct buffer text;
};

void span_places_init(struct span_places *places, const struct model *model);
void span_places_release(struct span_places *places);

/* row: a span of the track, MODEL_NONE: none. The innermost call of a module around it, or of the module whose operator made the node
 * of a backward that it lies in, whichever is further in: what a checkpoint computes again is of the module that it calls again. */
uint32_t span_module_of(const struct span_places *places, uint32_t track, uint32_t row); /* string: path; 0: none */
/* Index into model.stacks of the innermost span around it that has one, 0: none; in a backward of what started that. */
uint32_t span_stack_of(const struct span_places *places, uint32_t track, uint32_t row);
/* The innermost line of the user's own program; one number for a line, whoever called it. */
uint32_t span_line_of(struct span_places *places, uint32_t track, uint32_t row);
/* The same of an index into model.stacks. */
uint32_t span_line_of_stack(struct span_places *places, uint32_t stack);
/* The innermost span of the track that is open at an instant; MODEL_NONE: none is. */
uint32_t span_open_at(const struct model *model, uint32_t track, int64_t time_ns);
const char *span_line_text(struct span_places *places, uint32_t line, struct arena *arena);

struct table;
/* The cells of a module and a line, 0: why there is none. */
void span_places_set(struct span_places *places, struct table *table, int row, int module_column, uint32_t module,
                     int line_column, uint32_t line);

#endif
