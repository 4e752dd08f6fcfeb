/* SPDX-License-Identifier: Apache-2.0
 *
 * steady.h: what of a run is no steady state: the slow steps at its begin, and a drift over all of it. Plain arrays, nothing
 * owned.
 */
#ifndef COMPARE_STEADY_H
#define COMPARE_STEADY_H

#include <stdbool.h>
#include <stddef.h>

/* Steps at the begin that are slower than the run is later: the longest stretch within the first quarter that ends with such
 * a step and consists of them by half. A step is slower when it is longer than the median of the second half by more than
 * 5 * 1.4826 median absolute deviations and by at least 5 %. 0 when there are fewer than 8 steps. */
size_t steady_warm_up(const double *durations, size_t count);

/* The slope, per step, of values that drift: a line through the medians of ten equal parts, when its 95 % interval leaves out 0 and
 * it makes at least 1 % (0.01, the values being logarithms) over the run. Otherwise false. Needs 40 values. */
bool steady_trend(const double *logarithms, size_t count, double *per_step);

#endif
