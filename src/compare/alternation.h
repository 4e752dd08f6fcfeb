/* SPDX-License-Identifier: Apache-2.0
 *
 * alternation.h: steps that take turns in the amount of their work, for example if gradients of several batches are
 * accumulated: 2, 1, 2, 1 ms. The median of such steps is between the two levels or on either of them, depending on
 * whether the number of steps is even. It does not predict the next run.
 *
 *     if (alternation_has_gap(logarithms, count))
 *             alternation_even_out(logarithms, count); // 1.5, 1.5, 1.5, 1.5 ms
 *
 * Values are logarithms in the order of the steps.
 */
#ifndef COMPARE_ALTERNATION_H
#define COMPARE_ALTERNATION_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if hardly any value is near the median, so that chance decides on which side of the gap the median
 * falls. Returns false for fewer than 16 values. */
bool alternation_has_gap(const double *logarithms, size_t count);

/* Returns the number of steps after which values repeat, 2 to 32, or 1 if they do not. Needs at least 4 whole periods
 * and 16 values. */
size_t alternation_period(const double *logarithms, size_t count);

/* Removes the differences between the places of a period. The result varies around the logarithm of the mean value over
 * the period. Returns the period; if it is 1, there is no period and nothing is removed. */
size_t alternation_even_out(double *logarithms, size_t count);

#endif
