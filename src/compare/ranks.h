/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h: Wilcoxon's tests and the shift that belongs to them (Hodges and Lehmann). They assume no distribution, and
 * a few odd values do not move them. They are exact for up to 50 values a side, and use the normal distribution for
 * more.
 */
#ifndef COMPARE_RANKS_H
#define COMPARE_RANKS_H

#include <stddef.h>

struct shift {
	double middle, low, high;   /* with its 95 % interval, which is never narrower */
	double same_low, same_high; /* 90 % interval, never narrower */
	double outside;             /* two-sided p value of no shift */
};

/* Computes the shift of `right` against `left` from all their differences. Needs 4 values a side. */
void rank_sum_shift(struct shift *shift, const double *left, size_t left_count, const double *right,
                    size_t right_count);

/* Computes the shift of differences against 0 from their pairwise means. Needs 6 values. */
void signed_rank_shift(struct shift *shift, const double *differences, size_t count);

#endif
