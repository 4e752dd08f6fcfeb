/* SPDX-License-Identifier: Apache-2.0
 *
 * flop_likeness.h: the inputs of operators in steps without inputs, taken from other steps of the job. PyTorch is
 * asked for inputs in only some of the steps that a budget chose.
 *
 * A step without inputs is like the steps with inputs that have the same number of calls of the operator on the same
 * thread. This holds only if all of these compute the same, call by call. A few such steps are not enough: they may
 * agree by chance, for example if sizes change from step to step.
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

#define FLOP_LIKENESS_LEAST 8 /* least number of steps with inputs that must compute the same */
#define FLOP_LIKENESS_MISSING "inputs were recorded in only some steps, and those of the other steps cannot be inferred"

struct flop_likeness {
	const struct model *model;
	bool is_mixed;               /* otherwise all fields below are empty */
	struct number_map operators; /* track << 32 | name -> a number */
	struct number_map in_steps;  /* this number << 32 | step -> index of counts */
	struct number_map by_calls;  /* this number << 32 | calls -> index of likes */
	struct flop_calls *counts;
	struct flop_like *likes;
	uint32_t *inputs; /* of likes: strings, by their calls */
	uint32_t operator_count, count_count, count_capacity, like_count, like_capacity;
	size_t input_count, input_capacity;
};

/* Finds nothing if all steps with operators have inputs, or if none has. */
void flop_likeness_init(struct flop_likeness *likeness, const struct model *model);
void flop_likeness_release(struct flop_likeness *likeness);

/* Returns true if steps with inputs and the same number of calls of an operator compute different things: sizes change
 * from step to step. */
bool flop_likeness_varies(const struct flop_likeness *likeness);
/* Returns true if the step was recorded with operators but without inputs, while other steps have inputs. -1: no
 * step. */
bool flop_likeness_lacks(const struct flop_likeness *likeness, int32_t step);

/* A walk over the operators of tracks. It must see all operators of each track, in their order. */
struct flop_walk {
	const struct flop_likeness *likeness;
	uint32_t *places; /* by index of counts: number of calls passed */
};
/* Returns the recorded inputs of the operator, otherwise those of the call that it is like; 0: unknown. */
uint32_t flop_walk_inputs(struct flop_walk *walk, const struct span_view *span);
void flop_walk_release(struct flop_walk *walk);

#endif
