/* SPDX-License-Identifier: Apache-2.0
 *
 * span_places.h: the module, the Python line and the Python stack around a span. Module and line of a backward span
 * are those of its forward.
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
	bool *has_links;         /* by track: whether it has any of the links */
	uint32_t *user_frames;   /* of the stacks; made at the first use */
	struct number_map lines; /* function and line -> the first of its frames */
	struct buffer text;
};

void span_places_init(struct span_places *places, const struct model *model);
void span_places_release(struct span_places *places);

/* row: a span of the track, or MODEL_NONE. Returns the module of the innermost module call around the span, or of the
 * operator that created the enclosing backward node, whichever is nearer to the span. So work that a checkpoint
 * recomputes belongs to the module that the checkpoint calls again. */
uint32_t span_module_of(const struct span_places *places, uint32_t track, uint32_t row); /* string: path; 0: none */
/* Returns the stack (index into model.stacks) of the innermost span around it that has one, 0: none. In a backward
 * this is the stack of the call that started the backward. */
uint32_t span_stack_of(const struct span_places *places, uint32_t track, uint32_t row);
/* Returns the innermost line of the user's own program. A line has one number, whoever called it. */
uint32_t span_line_of(struct span_places *places, uint32_t track, uint32_t row);
/* Returns the line of an index into model.stacks. */
uint32_t span_line_of_stack(struct span_places *places, uint32_t stack);
/* Returns the innermost span of the track that is open at an instant; MODEL_NONE: none is open. */
uint32_t span_open_at(const struct model *model, uint32_t track, int64_t time_ns);
const char *span_line_text(struct span_places *places, uint32_t line, struct arena *arena);

struct table;
/* Sets the cells of a module and a line; 0 sets the reason why there is none. */
void span_places_set(struct span_places *places, struct table *table, int row, int module_column, uint32_t module,
                     int line_column, uint32_t line);

#endif
