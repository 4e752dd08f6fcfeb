/* SPDX-License-Identifier: Apache-2.0
 *
 * statistics.h: the few statistics that tables quote. All functions take plain arrays and own nothing.
 *
 * Intervals are 95 % intervals of a mean (Student t on n - 1 degrees of freedom) or of a slope (t on n - 2); they hold for
 * values that do not depend on each other. Quantiles are type 7 of Hyndman and Fan, as numpy and R compute them.
 */
#ifndef ANALYSIS_SHARED_STATISTICS_H
#define ANALYSIS_SHARED_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

struct summary {
	size_t count;
	double mean, std;  /* std: sample deviation, n - 1; 0 when count < 2 */
	bool has_interval; /* needs two values */
	double low, high;  /* of the mean */
	double min, max, p50, p95, p99;
};

/* Sorts `values`. False when count is 0. */
bool summary_compute(struct summary *summary, double *values, size_t count);

void sort_doubles(double *values, size_t count);
double quantile(const double *sorted, size_t count, double p); /* count > 0 */
/* Copies, to be freed, of count > 0 values: in order; and as they come, but none below the quantile `share` or above that of 1 - share. */
double *sorted_copy(const double *values, size_t count);
double *clipped_copy(const double *values, size_t count, double share);

/* Median, and the median distance from it. Sorts `values` and uses `scratch`, as large, for the distances. */
void median_and_mad(double *values, double *scratch, size_t count, double *median, double *mad);

/* t such that a Student variable of that many degrees of freedom lies within [-t, t] with 95 %. */
double student_t95(double degrees);

/* The share of a Student variable outside [-t, t], and the t of a share. degrees INFINITY: of a normal one. */
double student_t_outside(double t, double degrees);
double student_t_limit(double outside, double degrees);

/* The p value of no change, two sides, of one that has this standard error; one without error is certain, unless it is none. */
double student_t_chance(double change, double error, double degrees);

struct slope {
	double slope, low, high;
	bool has_interval; /* needs three points */
};
/* Least squares of y over x. False when fewer than two different x. */
bool slope_compute(struct slope *result, const double *x, const double *y, size_t count);

#endif
