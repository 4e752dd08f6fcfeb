/* SPDX-License-Identifier: Apache-2.0
 *
 * statistics.h: the few statistics that tables quote. All functions take plain arrays and own nothing.
 *
 * Intervals are 95 % intervals of a mean (Student t on n - 1 degrees of freedom) or of a slope (t on n - 2). They hold
 * for values that do not depend on each other. Quantiles are type 7 of Hyndman and Fan, as numpy and R compute them.
 */
#ifndef BASE_STATISTICS_H
#define BASE_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

struct summary {
	size_t count;
	double mean, std;  /* std: sample deviation, n - 1; 0 when count < 2 */
	bool has_interval; /* needs two values */
	double low, high;  /* of the mean */
	double min, max, p50, p95, p99;
};

/* Sorts `values`. Returns false if count is 0. */
bool summary_compute(struct summary *summary, double *values, size_t count);

void sort_doubles(double *values, size_t count);
double quantile(const double *sorted, size_t count, double p); /* count > 0 */
/* The same of values in any order, which it reorders. */
double quantile_within(double *values, size_t count, double p);
double median_of_values(const double *values, size_t count); /* in any order; count > 0 */
/* Both return a copy of count > 0 values, which the caller frees: sorted_copy() in ascending order, clipped_copy() in
 * the given order and clamped to the quantiles `share` and 1 - share. */
double *sorted_copy(const double *values, size_t count);
double *clipped_copy(const double *values, size_t count, double share);

/* Computes the median and the median distance from it. Sorts `values`; uses `scratch`, of the same size, for the
 * distances. */
void median_and_mad(double *values, double *scratch, size_t count, double *median, double *mad);

/* Returns t such that a Student variable with that many degrees of freedom is within [-t, t] with 95 % probability. */
double student_t95(double degrees);

/* Return the probability that a Student variable is outside [-t, t], and the t for such a probability. degrees
 * INFINITY: a normal variable. */
double student_t_outside(double t, double degrees);
double student_t_limit(double outside, double degrees);

/* Returns the two-sided p value of a change with this standard error. If the error is 0, every change but 0 is certain
 * (p is 0). */
double student_t_chance(double change, double error, double degrees);

struct slope {
	double slope, low, high;
	bool has_interval; /* needs three points */
};
/* Least squares of y over x. Returns false if x has fewer than two different values. */
bool slope_compute(struct slope *result, const double *x, const double *y, size_t count);

#endif
