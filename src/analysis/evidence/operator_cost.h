/* SPDX-License-Identifier: Apache-2.0
 *
 * operator_cost.h: how much longer a step takes because operators are recorded in it: the mean of the differences between steps with operators
 * and the steps without beside them, with the 95 % interval of Student's t.
 *
 * A difference is taken where the step and its neighbour (the step before or behind it; both, where both are without operators) are complete, follow
 * each other in one thread without a gap, are none of the first three of their process, and have no evaluation in them. Of a job the differences of
 * all ranks in one step are one difference, their mean.
 *
 * If a budget chose the steps, the steps of a block of 8 numbers are compared instead, all at once: the mean of those with operators and the
 * mean of those without. Each step of a block is as likely as any other to have operators, so the difference is right on average, whatever
 * the program's steps are like. The difference to the two neighbours is not: where a neighbour has operators, too, it drops out, and that
 * happens more often at the ends of a block.
 *
 * Which steps have operators must not depend on what the program does in them: of steps of two lengths that take turns, of which always the
 * longer ones have operators, this is the difference of the lengths.
 */
#ifndef ANALYSIS_EVIDENCE_OPERATOR_COST_H
#define ANALYSIS_EVIDENCE_OPERATOR_COST_H

#include "analysis/step_times/step_times.h"

struct operator_cost {
	const char *unknown;        /* why it was not measured; NULL: it was */
	uint32_t pairs;             /* steps with operators that are compared */
	uint32_t beside;            /* steps without operators that they are compared with */
	uint32_t with, count;       /* complete steps that have operators, or some; all complete steps */
	double with_ns, without_ns; /* mean of the steps of the pairs */
	double ratio, half;         /* the mean difference, and half of its interval, of without_ns */
};

#define OPERATOR_COST_NO_STEPS "no steps"
#define OPERATOR_COST_ALL "operators were recorded in all steps"
#define OPERATOR_COST_NONE "operators were recorded in none of the steps"

/* Of one process; of MODEL_NONE: of the job, all ranks. */
struct operator_cost operator_cost_find(const struct model *model, const struct step_times *times, uint32_t process);

/* Is the interval narrower than a third of the value, to both sides? Else all that is known is a bound. */
static inline bool operator_cost_is_told(double ratio, double half)
{
	return half <= ratio / 3;
}

#endif
