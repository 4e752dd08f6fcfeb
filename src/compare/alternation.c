/* SPDX-License-Identifier: Apache-2.0
 *
 * alternation.c: see the header.
 */
#include "compare/alternation.h"

#include "analysis/shared/statistics.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_VALUES 16
#define LONGEST_PERIOD 32
#define LEAST_PERIODS 4
#define LEAST_EXPLAINED 0.5 /* of the variance, by the places of a period */
#define ALIKE 1.5           /* a multiple of a period leaves as much unexplained: chance apart */
#define CLIPPED 0.05        /* at either end: single odd steps are no part of a period */

/* The middle fifth of values with one hump is 0.38 as wide as their middle half, of values with two as wide; and the middle two fifths 0.41 of four. */
#define LEAST_GAP 0.75
#define LEAST_DISTANCE 0.01 /* less does not matter */
#define LONGEST_STRETCH                                                                                                \
	8 /* steps on one side of the gap, on average: longer ones are no work but a run that changed its speed */

#define LOOKED_AT 16384 /* steps show their period early */

/* Variance that is left when the mean of each place of the period is taken out; of period 1 all of it. */
static double unexplained(const double *values, size_t count, size_t period)
{
	double squares = 0;

	for (size_t place = 0; place < period; place++) {
		double mean = 0, seen = 0;

		for (size_t i = place; i < count; i += period) { /* Welford's */
			double off = values[i] - mean;

			seen += 1;
			mean += off / seen;
			squares += off * (values[i] - mean);
		}
	}
	return squares / (double)(count - period);
}

size_t alternation_period(const double *logarithms, size_t count)
{
	double left[LONGEST_PERIOD + 1] = {0}, least = INFINITY, *clipped;
	size_t longest, period = 2;

	if (count < LEAST_VALUES)
		return 1;
	count = count < LOOKED_AT ? count : LOOKED_AT;
	longest = count / LEAST_PERIODS;
	longest = longest < LONGEST_PERIOD ? longest : LONGEST_PERIOD;
	clipped = clipped_copy(logarithms, count, CLIPPED);
	for (size_t i = 1; i <= longest; i++) {
		left[i] = unexplained(clipped, count, i);
		least = fmin(least, left[i]);
	}
	free(clipped);
	if (!(least < (1 - LEAST_EXPLAINED) * left[1]))
		return 1;
	while (left[period] > ALIKE * least) /* of a period and its multiples the shortest */
		period++;
	return period;
}

static size_t crossings(const double *values, size_t count, double middle)
{
	size_t crossings = 0;

	for (size_t i = 1; i < count; i++)
		crossings += (values[i] > middle) != (values[i - 1] > middle);
	return crossings;
}

/* Where values repeat, a third of the other kind is enough: resampled stretches, or a run that ends within a period, have half of it. */
bool alternation_has_gap(const double *logarithms, size_t count)
{
	bool repeats = alternation_period(logarithms, count) > 1;
	double inner = repeats ? 0.2 : 0.1, outer = repeats ? 0.4 : 0.25, low, high, width, *sorted;

	if (count < LEAST_VALUES)
		return false;
	sorted = sorted_copy(logarithms, count);
	low = quantile(sorted, count, 0.5 - inner);
	high = quantile(sorted, count, 0.5 + inner);
	width = quantile(sorted, count, 0.5 + outer) - quantile(sorted, count, 0.5 - outer);
	free(sorted);
	return high - low >= LEAST_DISTANCE && high - low >= LEAST_GAP * width &&
	       crossings(logarithms, count, (low + high) / 2) >= count / LONGEST_STRETCH;
}

/* Medians: a long step is not the place's. */
static void find_places(double *places, const double *logarithms, size_t count, size_t period)
{
	double *place = memory_resize(NULL, count / period + 1, sizeof(*place));

	for (size_t p = 0; p < period; p++) {
		size_t used = 0;

		for (size_t i = p; i < count; i += period)
			place[used++] = logarithms[i];
		sort_doubles(place, used);
		places[p] = quantile(place, used, 0.5);
	}
	free(place);
}

size_t alternation_even_out(double *logarithms, size_t count)
{
	double places[LONGEST_PERIOD], mean = 0;
	size_t period = alternation_period(logarithms, count);

	if (period < 2)
		return 1;
	find_places(places, logarithms, count, period);
	for (size_t p = 0; p < period; p++)
		mean += exp(places[p] - places[0]) / (double)period;
	for (size_t i = 0; i < count; i++)
		logarithms[i] += places[0] + log(mean) - places[i % period];
	return period;
}
