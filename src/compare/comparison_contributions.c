/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_contributions.c: the table `contributions`: where the difference of a mean step comes from, seen by phase, operator,
 * module, device, kernel and call. Within a level every name of either side is a row, so the rows sum to the level's difference.
 */
#include "compare/comparison_build.h"

#include "compare/holm.h"

#include "analysis/statistics.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 20000 /* of a level; the rest is one row */
#define JOINED 4000 /* names among which renamed ones are looked for */

static const char *const levels[] = {"phase", "operator", "module", "device", "kernel", "call"};
#define LEVELS (sizeof(levels) / sizeof(levels[0]))

static const struct table_column columns[CONTRIBUTION_COLUMNS] = {
	[CONTRIBUTION_LEVEL] =
		{.name = "level",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "how the step is looked at: phase, operator (self time on the threads that mark "
                               "steps), module (self time), device (what it does, else why it does nothing); "
                               "or besides it: kernel, call (of the runtime)"},
	[CONTRIBUTION_NAME] = {.name = "name", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "which of them"},
	[CONTRIBUTION_BASE] = {.name = "base_ns",
                               .title = "base",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_NS,
                               .definition = "time in a mean step of the base, mean over its runs; of runs "
                                             "without steps, in all of a run"},
	[CONTRIBUTION_NEW] = {.name = "new_ns",
                              .title = "new",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_NS,
                              .definition = "the same of the new side"},
	[CONTRIBUTION_DELTA] =
		{.name = "delta_ns",
                 .title = "difference",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition = "new minus base; of phases, operators and modules the rows sum to the difference "
                               "of the mean step, of kernels and calls to that of all kernels, or calls"},
	[CONTRIBUTION_RATIO] =
		{.name = "share_ratio",
                 .title = "share",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .denominator = "sum of the level's differences",
                 .definition = "part of the level's difference; above 1 or negative where rows cancel out"},
	[CONTRIBUTION_BASE_CALLS] = {.name = "base_calls",
                                     .title = "calls base",
                                     .type = TABLE_DOUBLE,
                                     .unit = UNIT_COUNT,
                                     .definition = "calls in a mean step of the base, or in all of a run"},
	[CONTRIBUTION_NEW_CALLS] = {.name = "new_calls",
                                    .title = "calls new",
                                    .type = TABLE_DOUBLE,
                                    .unit = UNIT_COUNT,
                                    .definition = "the same of the new side"},
	[CONTRIBUTION_IS_CERTAIN] =
		{.name = "is_certain",
                 .title = "certain",
                 .type = TABLE_BOOL,
                 .definition = "the difference is no noise from run to run (Student's t at 95 %, Holm over "
                               "the rows of the level)"},
	[CONTRIBUTION_NOTE] = {.name = "note", .type = TABLE_TEXT, .definition = "renamed, or only on one side"},
};

/* ---- one name of a level ---- */

struct contribution {
	const char *name, *family, *note;
	double *ns[SIDES]; /* per run */
	double calls[SIDES], mean_ns[SIDES];
	bool has_calls, is_on[SIDES];
	double outside;
	size_t order; /* first seen */
};

struct level {
	const char *name;
	struct compared_sides *sides;
	struct arena *arena;
	struct contribution *rows;
	size_t count, capacity;
	uint32_t *slots; /* hash of names: index + 1 */
	size_t slot_count;
};

static uint64_t hash_text(const char *text)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	while (*text)
		hash = (hash ^ (unsigned char)*text++) * UINT64_C(1099511628211);
	return hash ^ (hash >> 29);
}

static struct contribution *add_contribution(struct level *level, const char *name)
{
	struct contribution *added;

	if (level->count == level->capacity) {
		level->capacity *= 2;
		level->rows = memory_resize(level->rows, level->capacity, sizeof(*level->rows));
	}
	added = &level->rows[level->count];
	*added = (struct contribution){.name = name, .outside = NAN, .order = level->count};
	for (int side = 0; side < SIDES; side++)
		added->ns[side] = arena_array(level->arena, level->sides->count[side], sizeof(double));
	level->count++;
	return added;
}

static struct contribution *find_or_add(struct level *level, const char *name)
{
	size_t slot = hash_text(name) & (level->slot_count - 1);

	while (level->slots[slot]) {
		struct contribution *found = &level->rows[level->slots[slot] - 1];

		if (!strcmp(found->name, name))
			return found;
		slot = (slot + 1) & (level->slot_count - 1);
	}
	if (level->count >= NAMES && strcmp(name, "(others)") != 0)
		return find_or_add(level, "(others)");
	level->slots[slot] = (uint32_t)level->count + 1;
	return add_contribution(level, name);
}

/* False when a run of a side does not have the level. */
static bool collect(struct level *level)
{
	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; i < level->sides->count[side]; i++) {
			const struct compared_run *run = &level->sides->runs[side][i];
			double runs = (double)level->sides->count[side];
			bool is_there = false;

			for (size_t p = 0; p < run->parts_count; p++) {
				const struct compared_part *part = &run->parts[p];
				struct contribution *row;

				if (strcmp(part->level, level->name) != 0)
					continue;
				is_there = true;
				row = find_or_add(level, part->name);
				row->family = part->family;
				row->is_on[side] = true;
				row->ns[side][i] += part->ns;
				row->mean_ns[side] += part->ns / runs;
				row->has_calls |= part->has_calls;
				row->calls[side] += part->calls / runs;
			}
			if (!is_there)
				return false;
		}
	}
	return true;
}

/* ---- renamed kernels ---- */

static bool is_only_on(const struct contribution *row, int side)
{
	return row->family && row->is_on[side] && !row->is_on[!side];
}

static void join(struct contribution *into, struct contribution *from, const struct compared_sides *sides)
{
	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; i < sides->count[side]; i++)
			into->ns[side][i] += from->ns[side][i];
		into->mean_ns[side] += from->mean_ns[side];
		into->calls[side] += from->calls[side];
		into->is_on[side] |= from->is_on[side];
	}
	into->has_calls |= from->has_calls;
	from->name = NULL;
}

/* Names that only one side has are one row per family, when the other side has such names too. */
static void join_renamed(struct level *level)
{
	for (size_t i = 0; i < level->count; i++) {
		struct contribution *row = &level->rows[i];
		const char *family = row->family, *other = NULL;
		size_t names[SIDES] = {0};

		if (!row->name || !is_only_on(row, SIDE_BASE))
			continue;
		for (size_t j = 0; j < level->count; j++) {
			struct contribution *found = &level->rows[j];

			if (!found->name || !found->family || strcmp(found->family, family) != 0)
				continue;
			for (int side = 0; side < SIDES; side++)
				names[side] += is_only_on(found, side);
			other = is_only_on(found, SIDE_NEW) && !other ? found->name : other;
		}
		if (!names[SIDE_NEW])
			continue;
		for (size_t j = 0; j < level->count; j++) {
			struct contribution *found = &level->rows[j];

			if (j != i && found->name && found->family && !strcmp(found->family, family) &&
			    (is_only_on(found, SIDE_BASE) || is_only_on(found, SIDE_NEW)))
				join(row, found, level->sides);
		}
		row->note = names[SIDE_BASE] == 1 && names[SIDE_NEW] == 1
		                    ? arena_printf(level->arena, "renamed: %s -> %s", row->name, other)
		                    : arena_printf(level->arena,
		                                   "%zu kernels of the base, %zu other ones of the new side",
		                                   names[SIDE_BASE], names[SIDE_NEW]);
		row->name = arena_printf(level->arena, "%s (renamed)", family);
		row->family = NULL;
	}
}

static void drop_joined(struct level *level)
{
	size_t kept = 0;

	for (size_t i = 0; i < level->count; i++)
		if (level->rows[i].name)
			level->rows[kept++] = level->rows[i];
	level->count = kept;
}

/* ---- noise ---- */

static double mean_of(const double *values, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return sum / (double)count;
}

static double scatter(const double *values, double mean, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (values[i] - mean) * (values[i] - mean);
	return sum;
}

double outside_of_noise(double *const values[SIDES], const size_t count[SIDES])
{
	double degrees = (double)(count[SIDE_BASE] + count[SIDE_NEW]) - 2, mean[SIDES], squares = 0, error, delta;

	for (int side = 0; side < SIDES; side++) {
		mean[side] = mean_of(values[side], count[side]);
		squares += scatter(values[side], mean[side], count[side]);
	}
	delta = mean[SIDE_NEW] - mean[SIDE_BASE];
	error = sqrt(squares / degrees * (1 / (double)count[SIDE_BASE] + 1 / (double)count[SIDE_NEW]));
	return error > 0 ? student_t_outside(delta / error, degrees) : fabs(delta) > 0 ? 0 : 1;
}

static void test_rows(struct level *level)
{
	double *outside = memory_resize(NULL, level->count + 1, sizeof(*outside));

	for (size_t i = 0; i < level->count; i++)
		outside[i] = outside_of_noise(level->rows[i].ns, level->sides->count);
	holm_adjust(outside, level->count);
	for (size_t i = 0; i < level->count; i++)
		level->rows[i].outside = outside[i];
	free(outside);
}

/* ---- rows ---- */

static double delta_of(const struct contribution *row)
{
	return row->mean_ns[SIDE_NEW] - row->mean_ns[SIDE_BASE];
}

static int compare_contributions(const void *left, const void *right)
{
	const struct contribution *a = left, *b = right;
	double large = fabs(delta_of(a)), small = fabs(delta_of(b));

	if (large > small || large < small)
		return large < small ? 1 : -1;
	return (a->order > b->order) - (a->order < b->order);
}

static void set_calls(struct table *table, int row, const struct contribution *contribution)
{
	for (int side = 0; side < SIDES; side++) {
		int column = CONTRIBUTION_BASE_CALLS + side;

		if (contribution->has_calls)
			table_set_double(table, row, column, contribution->calls[side]);
		else
			table_set_missing(table, row, column, "not counted");
	}
}

static void add_row(struct table *table, const struct level *level, const struct contribution *contribution,
                    double whole_ns)
{
	const char *note = contribution->note;
	int row = table_row(table);

	if (!note && !contribution->is_on[SIDE_BASE])
		note = "only on the new side";
	else if (!note && !contribution->is_on[SIDE_NEW])
		note = "only in the base";
	table_set_text(table, row, CONTRIBUTION_LEVEL, level->name);
	table_set_text(table, row, CONTRIBUTION_NAME, contribution->name);
	table_set_double(table, row, CONTRIBUTION_BASE, contribution->mean_ns[SIDE_BASE]);
	table_set_double(table, row, CONTRIBUTION_NEW, contribution->mean_ns[SIDE_NEW]);
	table_set_double(table, row, CONTRIBUTION_DELTA, delta_of(contribution));
	if (fabs(whole_ns) > 0)
		table_set_double(table, row, CONTRIBUTION_RATIO, delta_of(contribution) / whole_ns);
	else
		table_set_missing(table, row, CONTRIBUTION_RATIO, "there is no difference");
	set_calls(table, row, contribution);
	if (isnan(contribution->outside))
		table_set_missing(table, row, CONTRIBUTION_IS_CERTAIN, "too few runs to know the noise");
	else
		table_set_bool(table, row, CONTRIBUTION_IS_CERTAIN, contribution->outside < SURE);
	if (note)
		table_set_text(table, row, CONTRIBUTION_NOTE, note);
	else
		table_set_missing(table, row, CONTRIBUTION_NOTE, "on both sides");
}

static void add_level(struct table *table, struct compared_sides *sides, const char *name)
{
	struct level level = {
		.name = name, .sides = sides, .arena = &table->arena, .slot_count = 65536, .capacity = 64};
	double whole_ns = 0;

	level.rows = memory_resize(NULL, level.capacity, sizeof(*level.rows));
	level.slots = memory_resize(NULL, level.slot_count, sizeof(*level.slots));
	memset(level.slots, 0, level.slot_count * sizeof(*level.slots));
	if (collect(&level)) {
		if (level.count <= JOINED)
			join_renamed(&level);
		drop_joined(&level);
		if (sides->count[SIDE_BASE] + sides->count[SIDE_NEW] >= LEAST_RUNS)
			test_rows(&level);
		qsort(level.rows, level.count, sizeof(*level.rows), compare_contributions);
		for (size_t i = 0; i < level.count; i++)
			whole_ns += delta_of(&level.rows[i]);
		for (size_t i = 0; i < level.count; i++)
			add_row(table, &level, &level.rows[i], whole_ns);
	}
	free(level.slots);
	free(level.rows);
}

/* Of devices: one of a processor, cpu0.clock_hz, is none. */
static bool knows_clocks(const struct compared_run *run)
{
	for (size_t i = 0; i < run->facts_count; i++)
		if (run->facts[i].kind == FACT_CLOCK && strncasecmp(run->facts[i].name, "cpu", 3) != 0)
			return true;
	return false;
}

/* Of kernels that are slower; NULL: both sides tell how fast their devices ran (the table `differences`), or have none. */
static const char *clock_note(const struct compared_sides *sides)
{
	const struct compared_run *base = &sides->runs[SIDE_BASE][0], *new = &sides->runs[SIDE_NEW][0];

	if (!compared_run_fact(base, "devices") || !compared_run_fact(new, "devices") ||
	    (knows_clocks(base) && knows_clocks(new)))
		return NULL;
	return "clocks of the devices are not known on both sides: a lower one cannot be told from slower kernels";
}

/* A step here, a whole recording there. */
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
	bool has_parts = !is_mixed(sides, is_whole);

	table_init(table, "contributions", "Where the difference comes from",
	           is_whole ? "the difference of whole recordings, which have no steps, seen in several ways"
	                    : "the difference of a mean step, seen in several ways; warm-up left out");
	table_columns(table, columns, CONTRIBUTION_COLUMNS);
	for (size_t i = 0; i < LEVELS && has_parts; i++)
		add_level(table, sides, levels[i]);
	table->note = clock_note(sides);
	if (!table->row_count)
		table->empty = has_parts ? "neither phases nor operators were recorded on both sides"
		                         : "a run has no steps: what takes how long of a step is not known of it";
}
