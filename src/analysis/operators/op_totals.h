/* SPDX-License-Identifier: Apache-2.0
 *
 * op_totals.h: the sums over all rows of the table `ops`. If possible, they come directly from the allocations and
 * from the work of devices, and not from the groups: then the table's rules check the groups against them.
 */
#ifndef ANALYSIS_OPERATORS_OP_TOTALS_H
#define ANALYSIS_OPERATORS_OP_TOTALS_H

#include "analysis/operators/op_fold.h"

struct op_totals {
	double steps; /* number of steps, of all processes, that the sums cover */
	int64_t self_ns;
	int64_t step_self_ns;              /* on threads that mark steps */
	int64_t unseen_ns;                 /* of that outside all operations, phases and modules */
	int64_t memory;                    /* bytes allocated minus freed inside spans */
	int64_t device_ns;                 /* work of devices */
	int64_t unlaunched_ns, unlaunched; /* of that without a launch in the trace: time, number */
};

/* Joins the groups of sampled steps with the others: afterwards only groups without key.is_sampled count. Then computes
 * the totals. */
void op_totals_compute(struct op_totals *totals, struct op_fold *fold);

#endif
