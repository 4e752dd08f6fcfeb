/* SPDX-License-Identifier: Apache-2.0
 *
 * resample.h: how uncertain the median (or mean, or 95 % quantile) of a series is whose values depend on their neighbours: the stationary bootstrap
 * (Politis and Romano 1994), which draws stretches of the series instead of single values.
 *
 *     double block = resample_block(values, count);
 *     double error = resample_error(values, count, block, RESAMPLE_MEDIAN);
 *
 * The same series gives the same answer: the generator starts from a fixed seed.
 */
#ifndef COMPARE_RESAMPLE_H
#define COMPARE_RESAMPLE_H

#include <stddef.h>

/* Mean length of the stretches, from the series itself (Politis and White 2004, as corrected 2009), of which side of the median
 * the values lie on: 1 when they do not depend on each other, at most a third of them. */
double resample_block(const double *values, size_t count);

enum resample_what {
	RESAMPLE_MEDIAN,
	RESAMPLE_P95,
	RESAMPLE_P01,
	RESAMPLE_MEAN
};

/* Which quantile it is; of the mean there is none. */
double resample_quantile(enum resample_what what);

/* Standard error of that. 0 when there is one value. */
double resample_error(const double *values, size_t count, double block, enum resample_what what);

#endif
