/* SPDX-License-Identifier: Apache-2.0
 *
 * flop_likeness.h: which inputs operators had in steps without them, where other steps of the job have inputs: PyTorch is asked for them in a part of the
 * steps that a budget chose. A step without inputs is like those with inputs that have as many calls of the operator on the same thread, as
 * long as all of these compute the same, call by call. A few that do may do so by chance, as where sizes change from step to step.
 *
 *     struct flop_likeness likeness;
 *     flop_likeness_init(&likeness, model);
 *     struct flop_walk walk = {.likeness = &likeness};
 *     for each operator of a track, in order: inputs = flop_walk_inputs(&walk, &span);
 *     flop_walk_release(&walk);
 *     flop_likeness_release(&likeness);
 */
#ifndef ANALYSIS_OPERATORS_FLOP_LIKENESS_H
#define ANALYSIS_OPERATORS_FLOP_LIKENESS_H

#include "analysis/analysis.h"
#include "model/number_map.h"

#define FLOP_LIKENESS_LEAST 8 /* steps with inputs that must compute the same */
#define FLOP_LIKENESS_MISSING "inputs were recorded in a part of the steps, which does not tell those of the others"

struct flop_likeness {
	const struct model *model;
	bool is_mixed;               /* else all that follows is empty */
	struct number_map operators; /* track << 32 | name -> a number */
	struct number_map in_steps;  /* this number << 32 | step -> index of counts */
	struct number_map by_calls;  /* this number << 32 | calls -> index of likes */
	struct flop_calls *counts;
	struct flop_like *likes;
	uint32_t *inputs; /* of likes: strings, by their calls */
	uint32_t operator_count, count_count, count_capacity, like_count, like_capacity;
	size_t input_count, input_capacity;
};

/* Nothing where all steps with operators have inputs, or none. */
void flop_likeness_init(struct flop_likeness *likeness, const struct model *model);
void flop_likeness_release(struct flop_likeness *likeness);

/* Do steps with inputs that have as many calls of an operator compute different things? Then sizes change from step to step. */
bool flop_likeness_varies(const struct flop_likeness *likeness);
/* Was it recorded with operators and without inputs, where others have them? -1: no step. */
bool flop_likeness_lacks(const struct flop_likeness *likeness, int32_t step);

/* Passes the operators of tracks, each of which it must see, in their order. */
struct flop_walk {
	const struct flop_likeness *likeness;
	uint32_t *places; /* like counts: calls that were passed */
};
/* Its inputs as they were recorded, or else those of the call that it is like; 0: not known. */
uint32_t flop_walk_inputs(struct flop_walk *walk, const struct span_view *span);
void flop_walk_release(struct flop_walk *walk);

#endif
