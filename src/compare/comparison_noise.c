/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_noise.c: the certainty of a change if only repeated runs show its noise. It uses Student's t with the
 * pooled scatter of both sides, and Holm over the rows of a table or level.
 */
#include "base/memory.h"
#include "base/statistics.h"
#include "compare/comparison_build.h"
#include "compare/holm.h"

#include <math.h>
#include <stdlib.h>

void run_values_init(struct run_values *values, const struct compared_sides *sides, struct arena *arena)
{
	*values = (struct run_values){.outside = NAN};
	for (int side = 0; side < SIDES; side++)
		values->of[side] = arena_array(arena, sides->count[side], sizeof(double));
}

double run_values_mean(const struct run_values *values, const struct compared_sides *sides, int side)
{
	double sum = 0;

	for (size_t i = 0; i < sides->count[side]; i++)
		sum += values->of[side][i];
	return sum / (double)sides->count[side];
}

double run_values_change(const struct run_values *values, const struct compared_sides *sides)
{
	return run_values_mean(values, sides, SIDE_NEW) - run_values_mean(values, sides, SIDE_BASE);
}

static double degrees_of(const struct compared_sides *sides)
{
	return (double)(sides->count[SIDE_BASE] + sides->count[SIDE_NEW]) - 2;
}

/* Returns the standard error of the change. */
static double error_of(const struct run_values *values, const struct compared_sides *sides)
{
	double squares = 0, parts = 0;

	for (int side = 0; side < SIDES; side++) {
		double mean = run_values_mean(values, sides, side);

		parts += 1 / (double)sides->count[side];
		for (size_t i = 0; i < sides->count[side]; i++)
			squares += (values->of[side][i] - mean) * (values->of[side][i] - mean);
	}
	return sqrt(squares / degrees_of(sides) * parts);
}

bool has_repeats(const struct compared_sides *sides)
{
	return sides->count[SIDE_BASE] + sides->count[SIDE_NEW] >= LEAST_RUNS;
}

void run_values_interval(const struct run_values *values, const struct compared_sides *sides, double outside,
                         double *low, double *high)
{
	double change = run_values_change(values, sides);
	double half = student_t_limit(outside, degrees_of(sides)) * error_of(values, sides);

	*low = change - half;
	*high = change + half;
}

double run_values_outside(const struct run_values *values, const struct compared_sides *sides)
{
	return student_t_chance(run_values_change(values, sides), error_of(values, sides), degrees_of(sides));
}

enum compare_result tested_result(const struct tested_change *tested, double smallest, double tolerance)
{
	bool is_certain = tested->outside < SURE;

	if (is_certain && fabs(tested->change) >= smallest)
		return RESULT_CHANGED;
	if (is_certain || (tested->same_low >= -tolerance && tested->same_high <= tolerance))
		return RESULT_SAME;
	return RESULT_INCONCLUSIVE;
}

static struct run_values *values_at(struct run_values *first, size_t stride, size_t place)
{
	return (struct run_values *)((char *)first + place * stride);
}

void run_values_adjust(struct run_values *first, size_t stride, size_t count)
{
	double *outside = memory_resize(NULL, count + 1, sizeof(*outside));

	for (size_t i = 0; i < count; i++)
		outside[i] = values_at(first, stride, i)->outside;
	holm_adjust(outside, count);
	for (size_t i = 0; i < count; i++)
		values_at(first, stride, i)->outside = outside[i];
	free(outside);
}

void run_values_test(struct run_values *first, size_t stride, size_t count, const struct compared_sides *sides)
{
	if (!has_repeats(sides))
		return;
	for (size_t i = 0; i < count; i++)
		values_at(first, stride, i)->outside = run_values_outside(values_at(first, stride, i), sides);
	run_values_adjust(first, stride, count);
}

void run_values_set_certain(const struct run_values *values, struct table *table, int row, int column)
{
	if (isnan(values->outside))
		table_set_missing(table, row, column, TOO_FEW_RUNS);
	else
		table_set_bool(table, row, column, values->outside < SURE);
}
