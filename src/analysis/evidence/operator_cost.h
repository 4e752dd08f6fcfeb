/* SPDX-License-Identifier: Apache-2.0
 *
 * operator_cost.h: how much longer a step takes because operators are recorded in it. This is the mean of the
 * differences between steps with operators and the steps without next to them, with the 95 % interval of Student's t.
 *
 * A step with operators is compared with its neighbour without: the step before or after it, or both. They must be
 * complete and follow each other in one thread without a gap. None may have an evaluation in it, or be among the first
 * three of its process. For a job, the differences of all ranks in one step are one difference, their mean.
 *
 * If a budget chose the steps, the 8 steps of a block of numbers are compared all at once instead: the mean with
 * operators and the mean without. Each step of a block is equally likely to have operators, so the difference is right
 * on average, whatever the program's steps are like. The difference to two neighbours is not: a neighbour with
 * operators drops out, which happens more often at the ends of a block.
 *
 * The choice of the steps must not depend on the program's work in them. If steps of two lengths alternate, and the
 * longer ones always have operators, the result is the difference of the lengths.
 */
#ifndef ANALYSIS_EVIDENCE_OPERATOR_COST_H
#define ANALYSIS_EVIDENCE_OPERATOR_COST_H

#include "analysis/step_times/step_times.h"

struct operator_cost {
	const char *unknown;        /* why it was not measured; NULL: it was measured */
	uint32_t pairs;             /* steps with operators that are compared */
	uint32_t beside;            /* steps without operators that they are compared with */
	uint32_t with, count;       /* complete steps with operators in any part; all complete steps */
	double with_ns, without_ns; /* means of the compared steps */
	double ratio, half;         /* mean difference and half of its interval, relative to without_ns */
};

#define OPERATOR_COST_NO_STEPS "no steps"
#define OPERATOR_COST_ALL "operators were recorded in all steps"
#define OPERATOR_COST_NONE "operators were recorded in no step"

/* Returns the cost in one process; MODEL_NONE: in the job, over all ranks. */
struct operator_cost operator_cost_find(const struct model *model, const struct step_times *times, uint32_t process);

/* Returns true if the interval reaches at most a third of the value to each side. Otherwise only a bound is known. */
static inline bool operator_cost_is_told(double ratio, double half)
{
	return half <= ratio / 3;
}

#endif
