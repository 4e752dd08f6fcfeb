/* SPDX-License-Identifier: Apache-2.0
 *
 * alternation.h: steps that take turns in having different amounts to do, as where gradients of several batches are added up: 2, 1, 2, 1 ms.
 * Their median lies between the two levels, or on either, as their number is even or odd, and says nothing of the next run.
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

/* Hardly any value lies where the median does: which side of the gap it falls on is chance. False of fewer than 16. */
bool alternation_has_gap(const double *logarithms, size_t count);

/* Steps after which values repeat, 2 to 32; 1: they do not. At least 4 whole periods, and 16 values. */
size_t alternation_period(const double *logarithms, size_t count);

/* Takes out by how much the places of a period differ: what stays varies around the mean over the period, of what the values are the logarithms of.
 * The period: 1 where there is none, and nothing to take out. */
size_t alternation_even_out(double *logarithms, size_t count);

#endif
