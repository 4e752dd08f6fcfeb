/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h: Wilcoxon's tests and the shift that belongs to them (Hodges and Lehmann). They assume no distribution, and a few odd
 * values do not move them. Exact up to 50 values a side, beyond with the normal distribution.
 */
#ifndef COMPARE_RANKS_H
#define COMPARE_RANKS_H

#include <stddef.h>

struct shift {
	double middle, low, high;   /* 95 % interval, never less than that */
	double same_low, same_high; /* 90 % interval, never less than that */
	double outside;             /* p value of no shift, two sides */
};

/* Of `right` against `left`, from all their differences. Needs 4 values a side. */
void rank_sum_shift(struct shift *shift, const double *left, size_t left_count, const double *right,
                    size_t right_count);

/* Of differences against 0, from their pairwise means. Needs 6 values. */
void signed_rank_shift(struct shift *shift, const double *differences, size_t count);

#endif
