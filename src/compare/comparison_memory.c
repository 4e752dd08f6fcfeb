/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_memory.c: the table `memory`: the origin of the difference between peaks of memory, by purpose and by the
 * operation that allocated. If snapshots show it, also the origin of the difference between reserved memory.
 */
#include "compare/comparison_build.h"

#include <string.h>

static const char *const levels[] = {COMPARED_MEMORY "category",
                                     COMPARED_MEMORY "operation",
                                     COMPARED_MEMORY "module",
                                     COMPARED_MEMORY "line",
                                     COMPARED_MEMORY "reserved",
                                     COMPARED_MEMORY "category of the host",
                                     COMPARED_MEMORY "operation of the host",
                                     COMPARED_MEMORY "module of the host",
                                     COMPARED_MEMORY "line of the host"};

static const struct table_column columns[CONTRIBUTION_COLUMNS] = {
	[CONTRIBUTION_LEVEL] =
		{.name = "level",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "division of the peak of the fullest device of a process (or, without device memory, of the "
                         "fullest process): category, operation that allocated it, module or line. reserved: memory "
                         "that the allocator of that device held when the snapshot was made"},
	[CONTRIBUTION_NAME] = {.name = "name",
                               .type = TABLE_TEXT,
                               .role = ROLE_KEY,
                               .definition = "name of the category, operation, module and "
                                             "so on"},
	[CONTRIBUTION_BASE] =
		{.name = "base_bytes",
                 .title = "base",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_BYTES,
                 .definition = "bytes alive at the peak of the base, mean over its runs; for reserved, bytes at the "
                               "end"},
	[CONTRIBUTION_NEW] = {.name = "new_bytes",
                              .title = "new",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_BYTES,
                              .definition = "same for the new side"},
	[CONTRIBUTION_DELTA] = {.name = "delta_bytes",
                                .title = "difference",
                                .type = TABLE_DOUBLE,
                                .unit = UNIT_BYTES,
                                .definition = "new minus base. The rows of a level sum to the difference of the peaks; "
                                              "rows of reserved sum to the difference of the reserved memory"},
	[CONTRIBUTION_RATIO] = CONTRIBUTION_SHARE_COLUMN,
	[CONTRIBUTION_BASE_CALLS] = {.name = "base_allocations",
                                     .title = "allocations base",
                                     .type = TABLE_DOUBLE,
                                     .unit = UNIT_COUNT,
                                     .definition = "allocations alive at the peak of the base, mean over its runs"},
	[CONTRIBUTION_NEW_CALLS] = {.name = "new_allocations",
                                    .title = "allocations new",
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
		{.name = "ci95_low_bytes",
                 .title = "low",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_BYTES,
                 .role = ROLE_EVIDENCE,
                 .definition = "lower end of the 95 % interval of the difference, from the scatter of the runs"},
	[CONTRIBUTION_HIGH] = {.name = "ci95_high_bytes",
                               .title = "high",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_BYTES,
                               .role = ROLE_EVIDENCE,
                               .definition = "upper end of this interval"},
	[CONTRIBUTION_NOTE] = {.name = "note", .type = TABLE_TEXT, .definition = "only on one side"},
};

static bool has_memory(const struct compared_run *run)
{
	for (size_t i = 0; i < run->parts_count; i++)
		if (!strncmp(run->parts[i].level, COMPARED_MEMORY, strlen(COMPARED_MEMORY)))
			return true;
	return false;
}

static const char *no_rows(const struct compared_sides *sides)
{
	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			if (!has_memory(&sides->runs[side][i]))
				return "a run did not record memory, or its peak is unknown: see report --table "
				       "memory";
	return "one side recorded device memory, the other host memory";
}

void comparison_add_memory(struct table *table, struct compared_sides *sides)
{
	table_init(table, "memory", "Contributions to the difference in peak memory",
	           "memory alive at the peak on both sides, divided in several ways");
	table_columns(table, columns, CONTRIBUTION_COLUMNS);
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		comparison_add_level(table, sides, levels[i]);
	if (!table->row_count)
		table->empty = no_rows(sides);
	else if (!has_repeats(sides))
		table->note = sides->count[SIDE_BASE] == 1 && sides->count[SIDE_NEW] == 1
		                      ? "no interval: one run per side does not show how much runs differ"
		                      : "no interval: fewer than four runs do not show how much runs differ";
}
