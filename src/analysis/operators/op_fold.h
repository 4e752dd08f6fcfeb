/* SPDX-License-Identifier: Apache-2.0
 *
 * op_fold.h: one walk over the spans of all threads that sums up the operations and ranges of measured steps, for the
 * table `ops`. Every span gives its self time to one group, so that the groups sum up to the time in spans exactly.
 *
 *     struct op_fold fold;
 *     op_fold_init(&fold, &context);
 *     for (uint32_t i = OP_GROUP_FIRST; i < fold.groups.count; i++)
 *             fold.groups.list[i].self_ns ...
 *     op_fold_release(&fold);
 */
#ifndef ANALYSIS_OPERATORS_OP_FOLD_H
#define ANALYSIS_OPERATORS_OP_FOLD_H

#include "analysis/operators/op_groups.h"
#include "model/launches.h"

struct op_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct step_times *times; /* of the steps with inputs if rows are split by shape */
	const struct launches *launches;
	struct op_groups groups;
	int64_t unseen_ns;        /* self time of steps and micro-batches outside all phases and modules */
	double unseen_sampled_ns; /* the same of sampled steps, with their weights */
	int64_t calls, outside;   /* calls of operations and ranges: all, and those outside measured steps */
	struct step_times input_times;
	/* no step has operators: only actions of a framework count (pytorch_is_action()), in complete steps */
	bool counts_actions;
};

/* Sums up all spans of the model. */
void op_fold_init(struct op_fold *fold, struct analysis_context *context);
void op_fold_release(struct op_fold *fold);

#endif
