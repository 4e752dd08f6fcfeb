/* SPDX-License-Identifier: Apache-2.0
 *
 * growth.c: see the header. Grows: the whole 95 % interval of the slope is above 0, and each third of the points is
 * above the one before. Shrinks: the reverse. Does not grow: neither, and over all points even the ends of the
 * interval make at most a hundredth of the level, or 64 KiB.
 */
#include "analysis/memory/growth.h"

#include "base/memory.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>

#define SMALL_BYTES 65536.0
#define SMALL_RATIO 0.01

uint32_t growth_first(uint32_t steps)
{
	return steps / 2 > 3 ? steps / 2 : steps < 3 ? 0 : steps - 3;
}

void growth_init(struct growth *growth, uint32_t steps)
{
	uint32_t first = growth_first(steps), wanted = steps - first;

	*growth = (struct growth){.steps = steps, .first = first};
	growth->every = (wanted + GROWTH_POINTS - 1) / GROWTH_POINTS;
	growth->every = growth->every ? growth->every : 1;
	growth->x = memory_resize(NULL, GROWTH_POINTS < wanted ? GROWTH_POINTS : (size_t)wanted + 1, sizeof(double));
	growth->y = memory_resize(NULL, GROWTH_POINTS < wanted ? GROWTH_POINTS : (size_t)wanted + 1, sizeof(double));
}

void growth_release(struct growth *growth)
{
	free(growth->x);
	free(growth->y);
	*growth = (struct growth){0};
}

bool growth_wants(const struct growth *growth, uint32_t ordinal)
{
	return ordinal >= growth->first && ordinal < growth->steps &&
	       (growth->steps - 1 - ordinal) % growth->every == 0;
}

void growth_add(struct growth *growth, uint32_t ordinal, double value)
{
	if (!growth_wants(growth, ordinal))
		return;
	growth->x[growth->count] = ordinal;
	growth->y[growth->count++] = value;
}

void growth_fill(struct growth *growth, uint32_t ordinal)
{
	uint32_t next = growth->count ? (uint32_t)growth->x[growth->count - 1] + 1 : growth->first;

	for (; next < ordinal; next++)
		growth_add(growth, next, 0);
}

bool growth_slope(const struct growth *growth, struct slope *slope)
{
	return slope_compute(slope, growth->x, growth->y, growth->count) && slope->has_interval;
}

static double mean(const double *values, uint32_t first, uint32_t end)
{
	double sum = 0;

	for (uint32_t i = first; i < end; i++)
		sum += values[i];
	return sum / (double)(end - first);
}

/* Returns true if the mean goes up (down, for a sign of -1) from third to third. */
static bool is_steady(const struct growth *growth, double sign)
{
	uint32_t third = growth->count / 3;
	double first = mean(growth->y, 0, third), last = mean(growth->y, growth->count - third, growth->count);
	double middle = mean(growth->y, third, growth->count - third);

	return sign * first < sign * middle && sign * middle < sign * last;
}

static const char *verdict_of(struct arena *arena, const char *verb, double bytes)
{
	char text[UNITS_BYTES];

	if (bytes < 1)
		return arena_printf(arena, "%s by less than 1 B per step", verb);
	return arena_printf(arena, "%s by %s per step", verb, units_bytes(text, bytes));
}

static bool is_growing(const struct growth *growth, const struct slope *slope)
{
	return slope->low > 0 && is_steady(growth, 1);
}

bool growth_grows(const struct growth *growth)
{
	struct slope slope;

	return growth->steps >= GROWTH_LEAST_STEPS && growth_slope(growth, &slope) && is_growing(growth, &slope);
}

const char *growth_verdict(const struct growth *growth, struct arena *arena)
{
	char text[UNITS_BYTES];
	struct slope slope;
	double span, most, level;

	if (growth->steps < GROWTH_LEAST_STEPS || !growth_slope(growth, &slope))
		return arena_printf(arena, "cannot tell: < %u steps", GROWTH_LEAST_STEPS);
	if (is_growing(growth, &slope))
		return verdict_of(arena, "grows", slope.slope);
	if (slope.high < 0 && is_steady(growth, -1))
		return verdict_of(arena, "shrinks", -slope.slope);
	span = growth->x[growth->count - 1] - growth->x[0];
	most = span * fmax(fabs(slope.low), fabs(slope.high));
	level = mean(growth->y, 0, growth->count);
	if (most <= SMALL_BYTES || most <= SMALL_RATIO * level)
		return "does not grow";
	return arena_printf(arena, "cannot tell: it varies, by up to %s per step",
	                    units_bytes(text, fmax(fabs(slope.low), fabs(slope.high))));
}
