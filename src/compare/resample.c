/* SPDX-License-Identifier: Apache-2.0
 *
 * resample.c: see the header. A resample is stored as counts by rank, so that its median needs no sorting.
 */
#include "compare/resample.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/statistics.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RESAMPLES 1000
#define LEAST_RESAMPLES 100
#define DRAWS 50000000.0 /* in total, about half a second */
#define MAXIMUM_LAGS 512

/* ---- the length of the stretches ---- */

/* Computes covariances of the signs around the median, at lags 0 to `lags`. */
static void covariances(const double *values, size_t count, double *result, size_t lags)
{
	double *signs = memory_resize(NULL, count, sizeof(*signs));
	double median = median_of_values(values, count), mean = 0;

	for (size_t i = 0; i < count; i++) {
		signs[i] = (values[i] > median) - (values[i] < median);
		mean += signs[i] / (double)count;
	}
	for (size_t lag = 0; lag <= lags; lag++) {
		result[lag] = 0;
		for (size_t i = lag; i < count; i++)
			result[lag] += (signs[i] - mean) * (signs[i - lag] - mean) / (double)count;
	}
	free(signs);
}

/* Returns the lag after which several lags in a row have no significant covariance. */
static size_t last_dependent_lag(const double *covariance, size_t count, size_t lags, size_t in_a_row)
{
	double limit = 2 * sqrt(log10((double)count) / (double)count) * covariance[0];
	size_t quiet = 0;

	for (size_t lag = 1; lag <= lags; lag++) {
		quiet = fabs(covariance[lag]) < limit ? quiet + 1 : 0;
		if (quiet == in_a_row)
			return lag - in_a_row;
	}
	return lags;
}

/* Returns the weight of a lag: flat in the middle, then falling to 0. */
static double window(double place)
{
	return place <= 0.5 ? 1 : place < 1 ? 2 * (1 - place) : 0;
}

double resample_block(const double *values, size_t count)
{
	double covariance[MAXIMUM_LAGS + 1], spectrum, bias = 0, block;
	double in_a_row = fmax(5, ceil(sqrt(log10((double)count + 1))));
	size_t lags, width;

	if (count < 10)
		return 1;
	lags = (size_t)fmin(fmin(MAXIMUM_LAGS, (double)count / 2), ceil(sqrt((double)count)) + in_a_row);
	covariances(values, count, covariance, lags);
	if (covariance[0] <= 0)
		return 1;
	width = 2 * last_dependent_lag(covariance, count, lags, (size_t)in_a_row);
	width = width > lags ? lags : width;
	spectrum = covariance[0];
	for (size_t lag = 1; lag <= width; lag++) {
		double weight = window((double)lag / (double)width);

		spectrum += 2 * weight * covariance[lag];
		bias += 2 * weight * (double)lag * covariance[lag];
	}
	if (spectrum <= 0)
		return 1;
	block = cbrt(bias * bias / (spectrum * spectrum) * (double)count);
	return fmax(1, fmin(block, fmin(3 * sqrt((double)count), (double)count / 3)));
}

/* ---- the error ---- */

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	return hash_scatter(*state += HASH_FACTOR);
}

static double next_uniform(uint64_t *state)
{
	return (double)(next_random(state) >> 11) * 0x1p-53;
}

struct resample_ranked {
	double value;
	uint32_t place;
};

static int resample_compare_values(const void *left, const void *right)
{
	const struct resample_ranked *a = left, *b = right;

	return a->value != b->value ? (a->value > b->value) - (a->value < b->value)
	                            : (a->place > b->place) - (a->place < b->place);
}

struct resample_series {
	struct resample_ranked *sorted;
	uint32_t *ranks; /* by place */
	uint32_t *drawn; /* by rank: number of draws */
	size_t count;
	double new_stretch; /* chance of a new stretch at each draw */
	uint64_t random;
};

static void series_init(struct resample_series *series, const double *values, size_t count, double block)
{
	series->count = count;
	series->new_stretch = 1 / fmax(1, block);
	series->random = 1;
	series->sorted = memory_resize(NULL, count, sizeof(*series->sorted));
	series->ranks = memory_resize(NULL, count, sizeof(*series->ranks));
	series->drawn = memory_resize(NULL, count, sizeof(*series->drawn));
	for (size_t i = 0; i < count; i++)
		series->sorted[i] = (struct resample_ranked){values[i], (uint32_t)i};
	qsort(series->sorted, count, sizeof(*series->sorted), resample_compare_values);
	for (size_t i = 0; i < count; i++)
		series->ranks[series->sorted[i].place] = (uint32_t)i;
}

static void series_release(struct resample_series *series)
{
	free(series->sorted);
	free(series->ranks);
	free(series->drawn);
}

/* Returns the value at a place of the sorted resample. */
static double drawn_value(const struct resample_series *series, size_t place)
{
	size_t rank = 0, before = series->drawn[0];

	while (before <= place)
		before += series->drawn[++rank];
	return series->sorted[rank].value;
}

static void draw(struct resample_series *series)
{
	size_t count = series->count, place = 0;

	memset(series->drawn, 0, count * sizeof(*series->drawn));
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || next_uniform(&series->random) < series->new_stretch)
			place = (size_t)(next_uniform(&series->random) * (double)count);
		else
			place = place + 1 < count ? place + 1 : 0;
		series->drawn[series->ranks[place]]++;
	}
}

static double drawn_quantile(const struct resample_series *series, double p)
{
	double place = p * (double)(series->count - 1), below = floor(place);
	double value = drawn_value(series, (size_t)below);

	if (place <= below)
		return value;
	return value + (place - below) * (drawn_value(series, (size_t)below + 1) - value);
}

static double drawn_mean(const struct resample_series *series)
{
	double sum = 0;

	for (size_t rank = 0; rank < series->count; rank++)
		sum += series->sorted[rank].value * series->drawn[rank];
	return sum / (double)series->count;
}

double resample_quantile(enum resample_what what)
{
	return what == RESAMPLE_P95 ? 0.95 : what == RESAMPLE_P01 ? 0.01 : 0.5;
}

double resample_error(const double *values, size_t count, double block, enum resample_what what)
{
	int resamples = (int)fmax(LEAST_RESAMPLES, fmin(RESAMPLES, DRAWS / (double)(count ? count : 1)));
	double mean = 0, squares = 0;
	struct resample_series series;

	if (count < 2)
		return 0;
	series_init(&series, values, count, block);
	for (int i = 0; i < resamples; i++) {
		double drawn, off;

		draw(&series);
		drawn = what == RESAMPLE_MEAN ? drawn_mean(&series) : drawn_quantile(&series, resample_quantile(what));
		off = drawn - mean;
		mean += off / (i + 1);
		squares += off * (drawn - mean);
	}
	series_release(&series);
	return sqrt(squares / (resamples - 1));
}
