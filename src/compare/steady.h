/* SPDX-License-Identifier: Apache-2.0
 *
 * steady.h: finds the parts of a run that are not a steady state: slow steps at its start, and a drift over all of it.
 * Works on plain arrays and owns nothing.
 */
#ifndef COMPARE_STEADY_H
#define COMPARE_STEADY_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of warm-up steps at the start. They are the longest stretch within the first quarter that ends
 * with a slower step and of which at least half are slower. A step is slower if it exceeds the median of the second
 * half by more than 5 * 1.4826 median absolute deviations and by more than 5 %. Of 4 to 7 steps it is the first one, if it is longer
 * than twice that median. Returns 0 for fewer steps. */
size_t steady_warm_up(const double *durations, size_t count);

/* Finds the slope per step of values that drift: a line through the medians of ten equal parts. Returns false unless
 * its 95 % interval excludes 0 and it makes at least 1 % over the run (0.01, because the values are logarithms). Needs
 * 40 values. */
bool steady_trend(const double *logarithms, size_t count, double *per_step);

#endif
