/* SPDX-License-Identifier: Apache-2.0
 *
 * steady.c: see the header.
 */
#include "compare/steady.h"

#include "analysis/step_times/start_up.h"
#include "base/memory.h"
#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 10
#define LEAST_STEPS 8
#define FEW_STEPS 4 /* from here up to LEAST_STEPS only the first step can be the warm-up */
#define LEAST_TREND 0.01

size_t steady_warm_up(const double *durations, size_t count)
{
	size_t half = count - count / 2, slow = 0, end = 0;
	double median, mad, limit;
	double *values;

	if (count < FEW_STEPS)
		return 0;
	if (count < LEAST_STEPS)
		return durations[0] > START_UP_TIMES * median_of_values(durations + count / 2, half);
	values = memory_resize(NULL, 2 * half, sizeof(*values));
	memcpy(values, durations + count / 2, half * sizeof(*values));
	median_and_mad(values, values + half, half, &median, &mad);
	free(values);
	limit = fmax(median + 5 * 1.4826 * mad, median * 1.05);
	for (size_t i = 0; i < count / 4; i++) {
		slow += durations[i] > limit;
		if (durations[i] > limit && 2 * slow >= i + 1)
			end = i + 1;
	}
	return end;
}

bool steady_trend(const double *logarithms, size_t count, double *per_step)
{
	double places[PARTS], medians[PARTS], *part;
	struct slope slope;

	if (count < 4 * (size_t)PARTS)
		return false;
	part = memory_resize(NULL, count / PARTS + 1, sizeof(*part));
	for (size_t i = 0; i < PARTS; i++) {
		size_t first = i * count / PARTS, end = (i + 1) * count / PARTS;

		memcpy(part, logarithms + first, (end - first) * sizeof(*part));
		sort_doubles(part, end - first);
		medians[i] = quantile(part, end - first, 0.5);
		places[i] = (double)(first + end - 1) / 2;
	}
	free(part);
	*per_step = 0;
	if (!slope_compute(&slope, places, medians, PARTS) || (slope.low <= 0 && slope.high >= 0))
		return false;
	*per_step = slope.slope;
	return fabs(slope.slope) * (double)count >= LEAST_TREND;
}
