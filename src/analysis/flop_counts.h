/* SPDX-License-Identifier: Apache-2.0
 *
 * flop_counts.h: which operators' floating point operations count in a whole program: where operators lie in each other the innermost one that
 * has a formula, so that no work is counted twice.
 *
 *     static void use(void *context, uint32_t track, uint32_t row, double flops) {...}
 *     enum flops_result result = flop_counts_each(model, use, &mine);
 *
 * The answer is the best that any operator had: below FLOPS_KNOWN nothing was used.
 */
#ifndef ANALYSIS_FLOP_COUNTS_H
#define ANALYSIS_FLOP_COUNTS_H

#include "analysis/flops.h"

typedef void (*flop_counts_use)(void *context, uint32_t track, uint32_t row, double flops);

enum flops_result flop_counts_each(const struct model *model, flop_counts_use use, void *context);
/* Why there is no count, for a cell of a table. */
const char *flop_counts_missing(enum flops_result result);

#endif
