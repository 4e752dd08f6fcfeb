/* SPDX-License-Identifier: Apache-2.0
 *
 * alternation.c: see the header.
 */
#include "compare/alternation.h"

#include "base/memory.h"
#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_VALUES 16
#define LONGEST_PERIOD 32
#define LEAST_PERIODS 4
#define LEAST_EXPLAINED 0.5 /* of the variance, by the places of a period */
#define ALIKE 1.5    /* largest factor by which a period's unexplained variance may exceed the least one by chance */
#define CLIPPED 0.05 /* at either end, because single odd steps do not belong to a period */

/* For values with one hump, the middle fifth is 0.38 times as wide as the middle half; for values with two humps both
 * are equally wide. For repeating values the middle two fifths and the middle four fifths are compared: 0.41 for one
 * hump. */
#define LEAST_GAP 0.75
#define LEAST_DISTANCE 0.01 /* smaller gaps do not matter */
#define LONGEST_STRETCH                                                                                                \
	8 /* mean number of steps on one side of the gap: longer stretches are a change of speed, not of work */

#define LOOKED_AT 16384 /* number of values that are examined: a period shows early */

/* Returns the variance that remains after the mean of each place of the period is removed; for period 1 all
 * variance. */
static double unexplained(const double *values, size_t count, size_t period)
{
	double squares = 0;

	for (size_t place = 0; place < period; place++) {
		double mean = 0, seen = 0;

		for (size_t i = place; i < count; i += period) { /* Welford's method */
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
	while (left[period] > ALIKE * least) /* the shortest of a period and its multiples */
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

/* If values repeat, a third of the other kind is enough, because resampled stretches, or a run that ends within a
 * period, do not have half of each kind. */
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

/* Uses medians, because a single long step does not belong to its place. */
static void find_places(double *places, const double *logarithms, size_t count, size_t period)
{
	double *place = memory_resize(NULL, count / period + 1, sizeof(*place));

	for (size_t p = 0; p < period; p++) {
		size_t used = 0;

		for (size_t i = p; i < count; i += period)
			place[used++] = logarithms[i];
		places[p] = quantile_within(place, used, 0.5);
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
