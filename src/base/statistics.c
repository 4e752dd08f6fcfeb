/* SPDX-License-Identifier: Apache-2.0
 *
 * statistics.c: mean and interval, quantiles, median absolute deviation, slope. See the header for the definitions.
 */
#include "base/statistics.h"

#include "base/compare_numbers.h"
#include "base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEW 32        /* values, which are sorted to find one of them */
#define MOST_TURNS 64 /* of partitions; values in a bad order are sorted then */

void sort_doubles(double *values, size_t count)
{
	if (count > 1)
		qsort(values, count, sizeof(*values), compare_double);
}

double quantile(const double *sorted, size_t count, double p)
{
	double place = p * (double)(count - 1);
	size_t below = (size_t)place;
	assert(count > 0 && p >= 0 && p <= 1);

	if (below + 1 >= count)
		return sorted[count - 1];
	return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

static double median_of_three(double a, double b, double c)
{
	return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* Hoare's partition. Returns an index: values before it are at most the pivot, the others at least. */
static size_t partition(double *values, size_t count)
{
	double pivot = median_of_three(values[0], values[count / 2], values[count - 1]);
	size_t low = 0, high = count - 1;

	for (;; low++, high--) {
		while (values[low] < pivot)
			low++;
		while (values[high] > pivot)
			high--;
		if (low >= high)
			return high + 1;
		double value = values[low];
		values[low] = values[high];
		values[high] = value;
	}
}

/* Moves the value of that rank to its place: none before it is larger, and none after it is smaller. */
static void move_to_rank(double *values, size_t count, size_t rank)
{
	for (int turn = 0; turn < MOST_TURNS && count > FEW; turn++) {
		size_t first = partition(values, count);

		if (rank < first) {
			count = first;
			continue;
		}
		values += first;
		count -= first;
		rank -= first;
	}
	sort_doubles(values, count);
}

double quantile_within(double *values, size_t count, double p)
{
	double place = p * (double)(count - 1), next;
	size_t below = (size_t)place;
	assert(count > 0 && p >= 0 && p <= 1);

	move_to_rank(values, count, below);
	if (below + 1 >= count)
		return values[below];
	next = values[below + 1];
	for (size_t i = below + 2; i < count; i++)
		next = values[i] < next ? values[i] : next;
	return values[below] + (place - (double)below) * (next - values[below]);
}

double *sorted_copy(const double *values, size_t count)
{
	double *sorted = memory_resize(NULL, count, sizeof(*sorted));
	assert(count > 0);

	memcpy(sorted, values, count * sizeof(*sorted));
	sort_doubles(sorted, count);
	return sorted;
}

double median_of_values(const double *values, size_t count)
{
	double *copy = memory_resize(NULL, count, sizeof(*copy)), median;

	memcpy(copy, values, count * sizeof(*copy));
	median = quantile_within(copy, count, 0.5);
	free(copy);
	return median;
}

double *clipped_copy(const double *values, size_t count, double share)
{
	assert(share >= 0 && share <= 0.5);
	double *clipped = sorted_copy(values, count);
	double low = quantile(clipped, count, share), high = quantile(clipped, count, 1 - share);

	for (size_t i = 0; i < count; i++)
		clipped[i] = fmin(fmax(values[i], low), high);
	return clipped;
}

/* ---- Student's t, from the incomplete beta function ---- */

/* Continued fraction of the incomplete beta function by Lentz's method. It converges fast for x < (a + 1) / (a + b +
 * 2). */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), result;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	result = d;
	for (int m = 1; m < 300; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double before = result;

		d = 1 + even * d, c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		result *= d * c;
		d = 1 + odd * d, c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		result *= d * c;
		if (fabs(result - before) < 1e-15 * fabs(result))
			break;
	}
	return result;
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_t_outside(double t, double degrees)
{
	if (isinf(degrees))
		return erfc(fabs(t) / sqrt(2));
	return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double student_t_limit(double outside, double degrees)
{
	double low = 0, high = 16;

	while (student_t_outside(high, degrees) > outside && high < 1e12)
		high *= 2;
	for (int i = 0; i < 64; i++) {
		double t = (low + high) / 2;

		if (student_t_outside(t, degrees) > outside)
			low = t;
		else
			high = t;
	}
	return (low + high) / 2;
}

double student_t95(double degrees)
{
	return student_t_limit(0.05, degrees);
}

double student_t_chance(double change, double error, double degrees)
{
	if (error > 0)
		return student_t_outside(change / error, degrees);
	return fabs(change) > 0 ? 0 : 1;
}

/* ---- summaries ---- */

bool summary_compute(struct summary *summary, double *values, size_t count)
{
	double sum = 0, squares = 0;

	*summary = (struct summary){.count = count};
	if (!count)
		return false;
	sort_doubles(values, count);
	for (size_t i = 0; i < count; i++)
		sum += values[i];
	summary->mean = sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - summary->mean) * (values[i] - summary->mean);
	summary->min = values[0];
	summary->max = values[count - 1];
	summary->p50 = quantile(values, count, 0.50);
	summary->p95 = quantile(values, count, 0.95);
	summary->p99 = quantile(values, count, 0.99);
	if (count > 1) {
		double half;

		summary->std = sqrt(squares / (double)(count - 1));
		half = student_t95((double)(count - 1)) * summary->std / sqrt((double)count);
		summary->has_interval = true;
		summary->low = summary->mean - half;
		summary->high = summary->mean + half;
	}
	return true;
}

void median_and_mad(double *values, double *scratch, size_t count, double *median, double *mad)
{
	sort_doubles(values, count);
	*median = quantile(values, count, 0.5);
	for (size_t i = 0; i < count; i++)
		scratch[i] = fabs(values[i] - *median);
	sort_doubles(scratch, count);
	*mad = quantile(scratch, count, 0.5);
}

bool slope_compute(struct slope *result, const double *x, const double *y, size_t count)
{
	double mean_x = 0, mean_y = 0, xx = 0, xy = 0, left = 0;

	*result = (struct slope){0};
	for (size_t i = 0; i < count; i++) {
		mean_x += x[i] / (double)count;
		mean_y += y[i] / (double)count;
	}
	for (size_t i = 0; i < count; i++) {
		xx += (x[i] - mean_x) * (x[i] - mean_x);
		xy += (x[i] - mean_x) * (y[i] - mean_y);
	}
	if (count < 2 || xx <= 0)
		return false;
	result->slope = xy / xx;
	for (size_t i = 0; i < count; i++) {
		double off = y[i] - mean_y - result->slope * (x[i] - mean_x);

		left += off * off;
	}
	if (count > 2) {
		double half = student_t95((double)(count - 2)) * sqrt(left / (double)(count - 2) / xx);

		result->has_interval = true;
		result->low = result->slope - half;
		result->high = result->slope + half;
	}
	return true;
}
