/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_cause.c: see the header.
 */
#include "compare/verdict_cause.h"

#include "compare/canary_metrics.h"
#include "compare/comparison_build.h"
#include "compare/metric_question.h"

#include <math.h>
#include <string.h>

#define LEAST_SHARE 0.2     /* of the changes in the step's direction: smaller rows are not a cause */
#define LEAST_OF_CHANGE 0.1 /* of the change of the step: a level may have nothing but small rows */
#define MOST_SHARE 0.5      /* rows with less than this are "among others" */
#define ALIKE 0.5           /* of the largest row: rows above it are named as well */
#define MORE_CALLS 1.1
#define LEAST_CHANGE 0.01 /* of the share of a function */

static const char *const cause_levels[CAUSE_LEVELS] = {
	[CAUSE_PHASE] = "phase",   [CAUSE_LATE_RANK] = COMPARED_LATE_RANK,
	[CAUSE_DEVICE] = "device", [CAUSE_OPERATOR] = "operator",
	[CAUSE_KERNEL] = "kernel", [CAUSE_CUDA_OPERATOR] = (CANARY_CUDA_OPERATORS),
};

static const char *const cause_memory_levels[CAUSE_MEMORY_LEVELS] = {
	[CAUSE_CATEGORY] = COMPARED_MEMORY "category",
	[CAUSE_OPERATION] = COMPARED_MEMORY "operation",
};

/* ---- with steps ---- */

/* Returns the calls of the new side over those of the base; 0 if the numbers are about equal. */
static double cause_calls_ratio(const struct table *contributions, int row)
{
	const struct table_cell *base = table_get(contributions, row, CONTRIBUTION_BASE_CALLS);
	const struct table_cell *other = table_get(contributions, row, CONTRIBUTION_NEW_CALLS);

	if (base->has_value && base->d > 0 && other->d > 0 &&
	    (other->d > MORE_CALLS * base->d || other->d * MORE_CALLS < base->d))
		return other->d / base->d;
	return 0;
}

static void cause_name_row(struct cause_part *part, const struct table *contributions, int row)
{
	if (part->count == CAUSE_ROWS) {
		part->more++;
		return;
	}
	part->rows[part->count] = row;
	part->calls_ratio[part->count++] = cause_calls_ratio(contributions, row);
}

/* Returns the rows of a level that are about as large as the largest row that changed in the direction of the step.
 * Their share is of all rows in that direction, because with changes in both directions the sum of all rows says
 * little. Returns no row if together they are a small part, or shorter than `least_ns`. */
static struct cause_part cause_find_part(const struct table *contributions, enum cause_level level, bool is_slower,
                                         double least_ns)
{
	double all = 0, alike = 0, largest = 0;
	struct cause_part part = {.count = 0};

	for (int row = 0; row < contributions->row_count; row++) { /* within a level the largest row is first */
		double delta = table_get(contributions, row, CONTRIBUTION_DELTA)->d;
		double worse = is_slower ? delta : -delta;

		if (strcmp(table_text(contributions, row, CONTRIBUTION_LEVEL), cause_levels[level]) != 0 || worse <= 0)
			continue;
		all += worse;
		if (!strcmp(table_text(contributions, row, CONTRIBUTION_NAME), phase_name(PHASE_OTHER)))
			continue;
		largest = largest > 0 ? largest : worse;
		if (worse < ALIKE * largest)
			continue;
		alike += worse;
		cause_name_row(&part, contributions, row);
	}
	if (alike <= LEAST_SHARE * all || alike < least_ns)
		return (struct cause_part){.count = 0};
	part.is_among_others = alike < MOST_SHARE * all;
	return part;
}

static double cause_delta(const struct comparison *comparison, int row)
{
	return comparison->metric_results[row].new - comparison->metric_results[row].base;
}

static struct verdict_cause cause_between_steps(const struct comparison *comparison)
{
	double period_ns = cause_delta(comparison, comparison_row(comparison, COMPARE_STEP_PERIOD));
	double mean_ns = cause_delta(comparison, comparison_row(comparison, COMPARE_STEP_TIME_MEAN));

	return (struct verdict_cause){.kind = CAUSE_BETWEEN_STEPS, .between_ns = fmax(0, period_ns - mean_ns)};
}

static struct verdict_cause cause_of_steps(const struct comparison *comparison, const struct compared_sides *sides)
{
	const struct metric_result *about = &comparison->metric_results[sides->metrics.deciding];
	bool is_slower = about->result == RESULT_REGRESSION;
	struct verdict_cause cause = {.kind = CAUSE_UNKNOWN};
	double change_ns;

	if (!is_slower && about->result != RESULT_IMPROVEMENT)
		return cause;
	if (sides->work.amount != PER_STEP) /* contributions are per step, and the work of a step differs */
		return cause;
	if (about->metric == COMPARE_STEP_PERIOD) /* the time between steps is not part of any step */
		return cause_between_steps(comparison);
	change_ns = fabs(metric_kinds[about->metric].unit == UNIT_NS
	                         ? about->new - about->base
	                         : cause_delta(comparison, comparison_row(comparison, COMPARE_STEP_TIME_MEAN)));
	for (int level = 0; level < CAUSE_LEVELS; level++) {
		double least = level == CAUSE_LATE_RANK ? LEAST_SHARE : LEAST_OF_CHANGE;
		struct cause_part part = cause_find_part(&comparison->contributions, (enum cause_level)level, is_slower,
		                                         least * change_ns);

		cause.parts[level] = part;
		if (part.count)
			cause.kind = CAUSE_PARTS;
	}
	return cause;
}

/* ---- without steps ---- */

/* Returns the function whose share of the samples changed most, among those whose change is certain if that is
 * known; -1 if there is none. */
static int cause_find_function(const struct table *functions)
{
	for (int row = 0; row < functions->row_count; row++) {
		const struct table_cell *certain = table_get(functions, row, FUNCTIONS_IS_CERTAIN);

		if (fabs(table_get(functions, row, FUNCTIONS_SELF_CHANGE)->d) < LEAST_CHANGE)
			return -1;
		if (!certain->has_value || certain->b)
			return row;
	}
	return -1;
}

/* Returns the row of a level of memory that changed most; -1 if none did. */
static int cause_find_memory(const struct table *memory, enum cause_memory level)
{
	for (int row = 0; row < memory->row_count; row++) {
		if (!strcmp(table_text(memory, row, CONTRIBUTION_LEVEL),
		            cause_memory_levels[level])) /* the largest row of the level is first */
			return fabs(table_get(memory, row, CONTRIBUTION_DELTA)->d) > 0 ? row : -1;
	}
	return -1;
}

/* Returns the quantity whose ratio changed most, among those whose change is certain; -1 if there is none. */
static int cause_find_telemetry(const struct comparison *comparison)
{
	const struct table *telemetry = &comparison->telemetry;
	double largest = 0;
	int found = -1;

	for (int row = 0; row < telemetry->row_count; row++) {
		double base = table_get(telemetry, row, TELEMETRY_CHANGE_BASE)->d;
		double new = table_get(telemetry, row, TELEMETRY_CHANGE_NEW)->d, change;

		if (comparison->telemetry_results[row] != RESULT_CHANGED)
			continue;
		change = fabs(new - base) / fmax(fabs(base), fabs(new));
		if (change <= largest)
			continue;
		largest = change;
		found = row;
	}
	return found;
}

static struct verdict_cause cause_without_steps(const struct comparison *comparison)
{
	struct verdict_cause cause = {.row = cause_find_function(&comparison->functions)};

	if (cause.row >= 0) {
		cause.kind = CAUSE_FUNCTION;
		return cause;
	}
	for (int level = 0; level < CAUSE_MEMORY_LEVELS; level++) {
		cause.memory[level] = cause_find_memory(&comparison->memory, (enum cause_memory)level);
		if (cause.memory[level] >= 0)
			cause.kind = CAUSE_MEMORY;
	}
	if (cause.kind == CAUSE_MEMORY)
		return cause;
	cause.row = cause_find_telemetry(comparison);
	cause.kind = cause.row >= 0 ? CAUSE_TELEMETRY : CAUSE_UNKNOWN;
	return cause;
}

struct verdict_cause verdict_find_cause(const struct comparison *comparison, const struct compared_sides *sides)
{
	if (sides->metrics.is_memory || !sides->metrics.has_first)
		return cause_without_steps(comparison);
	return cause_of_steps(comparison, sides);
}
