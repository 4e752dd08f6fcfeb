/* SPDX-License-Identifier: Apache-2.0
 *
 * flop_counts.h: selects the operators whose floating point operations count. If operators with a formula are nested,
 * the innermost one counts, so that no work is counted twice. For a whole program:
 *
 *     static void use(void *context, const struct flop_count *count) {...}
 *     enum flops_result result = flop_counts_each(model, likeness, use, &mine);
 *
 * The result is the best of all operators: below FLOPS_KNOWN no operator was counted. A caller with another walk over
 * spans has a struct flop_counts with model, walk, use and context. It calls enter for each operator, with the result
 * of flop_walk_inputs(), and leave for each span, and releases the struct.
 */
#ifndef ANALYSIS_OPERATORS_FLOP_COUNTS_H
#define ANALYSIS_OPERATORS_FLOP_COUNTS_H

#include "analysis/operators/flop_likeness.h"
#include "analysis/operators/flops.h"

struct flop_count { /* an operator that has a formula */
	uint32_t track, row;
	uint32_t tag;    /* set by the caller */
	uint32_t inputs; /* string; 0: unknown */
	int64_t dur_ns;
	double flops;
	enum flops_result result;
	bool is_counted;
	bool is_outside;   /* not counted only because an operator nested in it is */
	bool is_uncounted; /* neither it nor any operator in it or around it is counted: its work is in no sum */
	bool lacks_inputs; /* is_uncounted, in a step without inputs of a job with inputs in other steps */
};

typedef void (*flop_counts_use)(void *context, const struct flop_count *count);

struct flop_counts {
	struct flops flops; /* .model */
	struct flop_walk walk;
	flop_counts_use use;
	void *context;
	enum flops_result result; /* the best so far */
	struct open_formula *open;
	uint32_t count, capacity;
};

void flop_counts_enter(struct flop_counts *counts, const struct span_view *span, uint32_t inputs, uint32_t tag);
void flop_counts_leave_open(struct flop_counts *counts, uint32_t depth);
/* Uses the operators that are not around a span of this depth; depth 0 at the end of a track. */
static inline void flop_counts_leave(struct flop_counts *counts, uint32_t depth)
{
	if (counts->count)
		flop_counts_leave_open(counts, depth);
}
void flop_counts_release(struct flop_counts *counts);

enum flops_result flop_counts_each(const struct model *model, const struct flop_likeness *likeness, flop_counts_use use,
                                   void *context);

/* A sum of counts, for a cell of a table. */
struct flop_sum {
	double flops;
	int64_t counted, uncounted;
	int64_t lacking; /* of these, without inputs that other steps have: then the counted part is not a sum */
	enum flops_result result; /* the best */
};

void flop_sum_add(struct flop_sum *sum, const struct flop_count *count);
void flop_sum_merge(struct flop_sum *sum, const struct flop_sum *other);
/* Returns why there is no sum. */
const char *flop_sum_missing(const struct model *model, const struct flop_sum *sum);

#endif
