/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_contributions.c: the table `contributions`: the origin of a mean step's difference, by phase, operator,
 * module, device, kernel and call.
 */
#include "compare/canary_metrics.h"
#include "compare/comparison_build.h"

#include <math.h>
#include <string.h>

static const char *const levels[] = {"phase", COMPARED_LATE_RANK,    "operator",          "module", "device", "kernel",
                                     "call",  CANARY_CUDA_OPERATORS, CANARY_CPU_OPERATORS};
#define LEVELS (sizeof(levels) / sizeof(levels[0]))

static const struct table_column columns[CONTRIBUTION_COLUMNS] = {
	[CONTRIBUTION_LEVEL] =
		{.name = "level",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "division of the step: phase, operator (self time on the threads that mark "
                               "steps), module (self time) or device (its activity, or the reason it is idle). "
                               "Outside this division: kernel, call (of the runtime). For metrics.json: top "
                               "CUDA operators, top CPU operators"},
	[CONTRIBUTION_NAME] = {.name = "name",
                               .type = TABLE_TEXT,
                               .role = ROLE_KEY,
                               .definition = "name of the phase, operator, module and so "
                                             "on"},
	[CONTRIBUTION_BASE] = {.name = "base_ns",
                               .title = "base",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_NS,
                               .definition = "time per mean step of the base, mean over its runs. For runs "
                                             "without steps, time per run; for metrics.json, time in the "
                                             "profiled part of the run"},
	[CONTRIBUTION_NEW] = {.name = "new_ns",
                              .title = "new",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_NS,
                              .definition = "same for the new side"},
	[CONTRIBUTION_DELTA] =
		{.name = "delta_ns",
                 .title = "difference",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition = "new minus base. Rows of phases, operators and modules sum to the difference of "
                               "the mean step; rows of kernels and calls sum to that of all kernels or calls"},
	[CONTRIBUTION_RATIO] = CONTRIBUTION_SHARE_COLUMN,
	[CONTRIBUTION_BASE_CALLS] = {.name = "base_calls",
                                     .title = "calls base",
                                     .type = TABLE_DOUBLE,
                                     .unit = UNIT_COUNT,
                                     .definition = "calls per mean step of the base; without steps, per run"},
	[CONTRIBUTION_NEW_CALLS] = {.name = "new_calls",
                                    .title = "calls new",
                                    .type = TABLE_DOUBLE,
                                    .unit = UNIT_COUNT,
                                    .definition = "same for the new side"},
	[CONTRIBUTION_IS_CERTAIN] =
		{.name = "is_certain",
                 .title = "certain",
                 .type = TABLE_BOOL,
                 .definition = "whether the difference exceeds the noise from run to run (Student's t at "
                               "95 %, Holm over the rows of the level)"},
	[CONTRIBUTION_LOW] =
		{.name = "ci95_low_ns",
                 .title = "low",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .role = ROLE_EVIDENCE,
                 .definition = "lower end of the 95 % interval of the difference, from the scatter of the runs",
                 .is_hidden = true},
	[CONTRIBUTION_HIGH] = {.name = "ci95_high_ns",
                               .title = "high",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_NS,
                               .role = ROLE_EVIDENCE,
                               .definition = "upper end of this interval",
                               .is_hidden = true},
	[CONTRIBUTION_NOTE] = {.name = "note", .type = TABLE_TEXT, .definition = "renamed, or only on one side"},
};

/* Returns true if clocks of devices are known; the clock of a processor, cpu0.clock_hz, does not count. */
static bool knows_clocks(const struct compared_run *run)
{
	for (size_t i = 0; i < run->facts_count; i++)
		if (run->facts[i].kind == FACT_CLOCK && strncasecmp(run->facts[i].name, "cpu", 3) != 0)
			return true;
	return false;
}

/* Returns a note about slower kernels, or NULL if both sides report the clocks of their devices (in the table
 * `differences`) or a side has no devices. */
static const char *clock_note(const struct compared_sides *sides)
{
	const struct compared_run *base = &sides->runs[SIDE_BASE][0], *new = &sides->runs[SIDE_NEW][0];

	if (!compared_run_fact(base, "devices") || !compared_run_fact(new, "devices") ||
	    (knows_clocks(base) && knows_clocks(new)))
		return NULL;
	return "a side has no recorded device clocks, so a lower clock cannot be distinguished from slower kernels";
}

static bool is_of_metrics(const struct compared_run *run)
{
	return !run->steps_count && run->summary.steps;
}

/* Returns true if all runs are metrics.json files, whose lists have the same kind of parts. */
static bool are_of_metrics(const struct compared_sides *sides)
{
	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			if (!is_of_metrics(&sides->runs[side][i]))
				return false;
	return true;
}

/* Returns true if parts of a step would be compared with parts of a whole recording. */
static bool is_mixed(const struct compared_sides *sides, bool is_whole)
{
	for (int side = 0; side < SIDES && !is_whole; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			if (!sides->runs[side][i].steps_count)
				return true;
	return false;
}

void comparison_add_contributions(struct table *table, struct compared_sides *sides, bool is_whole)
{
	bool are_lists = are_of_metrics(sides), has_parts = are_lists || !is_mixed(sides, is_whole);

	table_init(table, "contributions", "Contributions to the difference",
	           are_lists
	                   ? "operators listed in the files of both sides, in the profiled part of the run; the files "
	                     "do not tell its number of steps"
	           : is_whole ? "the difference of whole recordings, which have no steps, divided in several ways"
	                      : "the difference of the mean step, divided in several ways; warm-up steps are excluded");
	table_columns(table, columns, CONTRIBUTION_COLUMNS);
	for (size_t i = 0; i < LEVELS && has_parts; i++)
		comparison_add_level(table, sides, levels[i]);
	table->note = clock_note(sides);
	if (!table->row_count)
		table->empty = are_lists   ? "the profiler's lists of both sides have no operator in common"
		               : has_parts ? "neither phases nor operators were recorded on both sides"
		                           : "a run has no steps, so its time per step is unknown";
}
