/* SPDX-License-Identifier: Apache-2.0
 *
 * resample.h: the standard error of the median (or mean, or a quantile) of a series whose values depend on their
 * neighbours. It uses the stationary bootstrap (Politis and Romano 1994), which draws stretches of the series instead
 * of single values.
 *
 *     double block = resample_block(values, count);
 *     double error = resample_error(values, count, block, RESAMPLE_MEDIAN);
 *
 * The same series gives the same answer: the generator starts from a fixed seed.
 */
#ifndef COMPARE_RESAMPLE_H
#define COMPARE_RESAMPLE_H

#include <stddef.h>

/* Returns the mean length of the stretches, computed from the series itself (Politis and White 2004, as corrected
 * 2009): from the side of the median on which each value is. It is 1 if values do not depend on each other, and at most
 * a third of their number. */
double resample_block(const double *values, size_t count);

enum resample_what {
	RESAMPLE_MEDIAN,
	RESAMPLE_P95,
	RESAMPLE_P01,
	RESAMPLE_MEAN
};

/* Returns the quantile that `what` stands for. The mean is not a quantile. */
double resample_quantile(enum resample_what what);

/* Returns the standard error, or 0 if there is only one value. */
double resample_error(const double *values, size_t count, double block, enum resample_what what);

#endif
