/* SPDX-License-Identifier: Apache-2.0
 *
 * flop_counts.h: which operators' floating point operations count: where operators lie in each other the innermost one that has a formula, so
 * that no work is counted twice. For a whole program:
 *
 *     static void use(void *context, const struct flop_count *count) {...}
 *     enum flops_result result = flop_counts_each(model, likeness, use, &mine);
 *
 * The answer is the best that any operator had: below FLOPS_KNOWN none was counted. A walk over spans of its own has a struct flop_counts with
 * model, walk, use and context, calls enter for each operator with what flop_walk_inputs() says of it and leave for each span, and releases it.
 */
#ifndef ANALYSIS_OPERATORS_FLOP_COUNTS_H
#define ANALYSIS_OPERATORS_FLOP_COUNTS_H

#include "analysis/operators/flop_likeness.h"
#include "analysis/operators/flops.h"

struct flop_count { /* an operator that has a formula */
	uint32_t track, row;
	uint32_t tag;    /* the caller's own */
	uint32_t inputs; /* string; 0: not known */
	int64_t dur_ns;
	double flops;
	enum flops_result result;
	bool is_counted;
	bool is_outside;   /* would be, but for an operator inside of it that is */
	bool is_uncounted; /* neither it nor what is inside of it or around it: its work is in no sum */
	bool lacks_inputs; /* is_uncounted, in a step without inputs of a job that has others */
};

typedef void (*flop_counts_use)(void *context, const struct flop_count *count);

struct flop_counts {
	struct flops flops; /* .model */
	struct flop_walk walk;
	flop_counts_use use;
	void *context;
	enum flops_result result; /* the best */
	struct open_formula *open;
	uint32_t count, capacity;
};

void flop_counts_enter(struct flop_counts *counts, const struct span_view *span, uint32_t inputs, uint32_t tag);
void flop_counts_leave_open(struct flop_counts *counts, uint32_t depth);
/* Uses what is not around a span of this depth; 0 at the end of a track. */
static inline void flop_counts_leave(struct flop_counts *counts, uint32_t depth)
{
	if (counts->count)
		flop_counts_leave_open(counts, depth);
}
void flop_counts_release(struct flop_counts *counts);

enum flops_result flop_counts_each(const struct model *model, const struct flop_likeness *likeness, flop_counts_use use,
                                   void *context);

/* A sum of them, for a cell of a table. */
struct flop_sum {
	double flops;
	int64_t counted, uncounted;
	int64_t lacking; /* of these, for lack of inputs that others have: then what is counted is a part, and no sum */
	enum flops_result result; /* the best */
};

void flop_sum_add(struct flop_sum *sum, const struct flop_count *count);
void flop_sum_merge(struct flop_sum *sum, const struct flop_sum *other);
/* Why there is no sum. */
const char *flop_sum_missing(const struct model *model, const struct flop_sum *sum);

#endif
