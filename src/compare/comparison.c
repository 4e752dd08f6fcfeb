/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison.c: see the header. The order matters: the work per step decides which metric is the first, and the
 * verdict reads the other tables.
 */
#include "base/memory.h"
#include "compare/comparison_operators.h"
#include "compare/cuts/comparison_cuts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const struct comparison_options comparison_defaults = {.smallest = COMPARE_SMALLEST,
                                                       .tolerance = COMPARE_TOLERANCE,
                                                       .assumed_noise = COMPARE_ASSUMED_NOISE};

/* If one run has a gap, the steps of all runs are evened out. If a run is only a summary, step times are not evened
 * out, because it has just a median. */
static void comparison_find_gaps(struct compared_sides *sides)
{
	bool has_steps = true;

	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; i < sides->count[side]; i++) {
			const struct compared_run *run = &sides->runs[side][i];

			has_steps &= run->steps_count > 0;
			sides->steps.is_cpu_evened |= step_level_cpu_has_gap(run);
			for (int amount = 0; amount < STEP_AMOUNTS; amount++)
				sides->steps.is_evened[amount] |= step_level_has_gap(run, (enum step_amount)amount);
		}
	}
	for (int amount = 0; amount < STEP_AMOUNTS; amount++)
		sides->steps.is_evened[amount] &= has_steps;
}

static void sides_init(struct compared_sides *sides)
{
	comparison_find_gaps(sides);
	sides->steps.is_running = true;
	for (int side = 0; side < SIDES; side++) {
		size_t count = sides->count[side];

		sides->levels[side] = memory_resize(NULL, count, sizeof(*sides->levels[side]));
		sides->has_level[side] = memory_resize(NULL, count, sizeof(*sides->has_level[side]));
		for (size_t i = 0; i < count; i++) {
			const struct compared_run *run = &sides->runs[side][i];

			sides->has_level[side][i] = step_level_compute(&sides->levels[side][i], run, PER_STEP,
			                                               sides->steps.is_evened[PER_STEP]);
			sides->steps.is_running &= step_level_is_running(run);
		}
	}
}

/* Returns true if no run has steps. */
static bool sides_are_whole(const struct compared_sides *sides)
{
	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			if (sides->runs[side][i].steps_count || sides->runs[side][i].summary.steps)
				return false;
	return true;
}

static void sides_release(struct compared_sides *sides)
{
	for (int side = 0; side < SIDES; side++) {
		free(sides->levels[side]);
		free(sides->has_level[side]);
	}
}

void comparison_init(struct comparison *comparison, const struct compared_run *base, int base_count,
                     const struct compared_run *new, int new_count, const struct comparison_options *options)
{
	struct compared_sides sides = {.runs = {base, new},
	                               .count = {(size_t)base_count, (size_t)new_count},
	                               .options = options ? options : &comparison_defaults};

	struct taken_prices prices;

	assert(base_count > 0 && new_count > 0);
	taken_prices_init(&prices, &sides);
	sides_init(&sides);
	comparison->is_whole = sides_are_whole(&sides);
	comparison_add_runs(&comparison->runs, &sides);
	comparison_add_differences(comparison, &sides);
	comparison_add_metrics(comparison, &sides);
	comparison_add_cuts(comparison, &sides);
	comparison_add_contributions(&comparison->contributions, &sides, comparison->is_whole);
	comparison_add_functions(&comparison->functions, &sides);
	comparison_add_memory(&comparison->memory, &sides);
	comparison_add_telemetry(comparison, &sides);
	comparison_add_verdict(comparison, &sides);
	sides_release(&sides);
	taken_prices_release(&prices, &sides);
}

void comparison_release(struct comparison *comparison)
{
	table_release(&comparison->verdict);
	table_release(&comparison->runs);
	table_release(&comparison->differences);
	table_release(&comparison->metrics);
	table_release(&comparison->explained_by);
	table_release(&comparison->contributions);
	table_release(&comparison->functions);
	table_release(&comparison->memory);
	table_release(&comparison->telemetry);
}

int comparison_row(const struct comparison *comparison, enum compare_metric metric)
{
	for (int row = 0; row < comparison->metrics.row_count; row++)
		if (comparison->metric_results[row].metric == metric)
			return row;
	return -1;
}

int comparison_metric(const struct comparison *comparison, const char *name)
{
	const struct table *metrics = &comparison->metrics;

	for (int row = 0; row < metrics->row_count; row++)
		if (!strcmp(table_get(metrics, row, METRIC_NAME)->text, name))
			return row;
	return -1;
}

int comparison_difference(const struct comparison *comparison, enum fact_kind kind)
{
	for (int row = 0; row < comparison->differences.row_count; row++)
		if (comparison->difference_kinds[row] == kind &&
		    table_get(&comparison->differences, row, DIFFERENCE_MATTERS)->b)
			return row;
	return -1;
}
