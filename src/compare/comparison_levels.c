/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_levels.c: one level of the tables `contributions` and `memory`. Every name of either side is a row, so
 * that the rows sum to the level's difference.
 */
#include "base/hash.h"
#include "base/memory.h"
#include "compare/comparison_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 20000 /* most names of a level; further ones are one row: */
#define OTHERS "(others)"
#define JOINED 4000   /* most names among which renamed ones are searched */
#define LEAST_SUM 0.5 /* of the sum of absolute changes: below that, shares would be absurd */

/* ---- one name of a level ---- */

struct contribution {
	const char *name, *family, *note;
	struct run_values amounts;
	double change, calls[SIDES];
	bool has_calls, is_on[SIDES];
	size_t order; /* of first occurrence */
};

struct contribution_level {
	const char *name;
	struct compared_sides *sides;
	struct arena *arena;
	struct contribution *rows;
	size_t count, capacity;
	uint32_t *slots; /* hash of names: index + 1 */
	size_t slot_count;
};

struct level_sums { /* of the changes */
	double whole;
	double all; /* sum of absolute changes */
};

static struct contribution *add_contribution(struct contribution_level *level, const char *name)
{
	struct contribution *added;

	MEMORY_GROW(level->rows, level->count, level->capacity, 64);
	added = &level->rows[level->count];
	*added = (struct contribution){.name = name, .order = level->count++};
	run_values_init(&added->amounts, level->sides, level->arena);
	return added;
}

static struct contribution *find_or_add(struct contribution_level *level, const char *name)
{
	size_t slot = (hash_text(0, name, strlen(name)) >> 32) & (level->slot_count - 1);

	while (level->slots[slot]) {
		struct contribution *found = &level->rows[level->slots[slot] - 1];

		if (!strcmp(found->name, name))
			return found;
		slot = (slot + 1) & (level->slot_count - 1);
	}
	if (level->count >= NAMES && strcmp(name, OTHERS) != 0)
		return find_or_add(level, OTHERS);
	level->slots[slot] = (uint32_t)level->count + 1;
	return add_contribution(level, name);
}

/* Returns false if the run does not have the level. */
static bool collect_run(struct contribution_level *level, int side, size_t i)
{
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
		row->amounts.of[side][i] += part->amount;
		row->has_calls |= part->has_calls;
		row->calls[side] += part->calls / runs;
	}
	return is_there;
}

/* Returns false if a run of a side does not have the level. */
static bool collect(struct contribution_level *level)
{
	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < level->sides->count[side]; i++)
			if (!collect_run(level, side, i))
				return false;
	return true;
}

/* ---- renamed kernels and modules ---- */

static bool is_only_on(const struct contribution *row, int side)
{
	return row->family && row->is_on[side] && !row->is_on[!side];
}

static void levels_join(struct contribution *into, struct contribution *from, const struct compared_sides *sides)
{
	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; i < sides->count[side]; i++)
			into->amounts.of[side][i] += from->amounts.of[side][i];
		into->calls[side] += from->calls[side];
		into->is_on[side] |= from->is_on[side];
	}
	into->has_calls |= from->has_calls;
	from->name = NULL;
}

/* Names a row of renamed parts. A module gets its name on the new side, because the name of its place says nothing. */
static void say_renamed(const struct contribution_level *level, struct contribution *row, const size_t names[SIDES],
                        const char *other)
{
	bool is_one = names[SIDE_BASE] == 1 && names[SIDE_NEW] == 1;

	if (is_one)
		row->note = arena_printf(level->arena, "renamed: %s -> %s", row->name, other);
	else
		row->note = arena_printf(level->arena, "%zu names in the base, %zu different names on the new side",
		                         names[SIDE_BASE], names[SIDE_NEW]);
	row->name = arena_printf(level->arena, "%s (renamed)", strcmp(level->name, "module") ? row->family : other);
}

/* Joins names that only one side has into one row per family, if the other side also has such names. */
static void join_renamed(struct contribution_level *level)
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
				levels_join(row, found, level->sides);
		}
		say_renamed(level, row, names, other);
		row->family = NULL;
	}
}

/* Drops names that one side does not list: such a level lists only its longest parts, so the amount is unknown. */
static void drop_unlisted(struct contribution_level *level)
{
	for (size_t i = 0; i < level->count; i++)
		if (!level->rows[i].is_on[SIDE_BASE] || !level->rows[i].is_on[SIDE_NEW])
			level->rows[i].name = NULL;
}

static void drop_joined(struct contribution_level *level)
{
	size_t kept = 0;

	for (size_t i = 0; i < level->count; i++)
		if (level->rows[i].name)
			level->rows[kept++] = level->rows[i];
	level->count = kept;
}

/* ---- rows ---- */

static int compare_contributions(const void *left, const void *right)
{
	const struct contribution *a = left, *b = right;
	double large = fabs(a->change), small = fabs(b->change);

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

static void set_interval(struct table *table, int row, const struct compared_sides *sides,
                         const struct run_values *amounts)
{
	double low, high;

	if (!has_repeats(sides)) {
		table_set_missing(table, row, CONTRIBUTION_LOW, TOO_FEW_RUNS);
		table_set_missing(table, row, CONTRIBUTION_HIGH, TOO_FEW_RUNS);
		return;
	}
	run_values_interval(amounts, sides, SURE, &low, &high);
	table_set_double(table, row, CONTRIBUTION_LOW, low);
	table_set_double(table, row, CONTRIBUTION_HIGH, high);
}

static void levels_add_row(struct table *table, const struct contribution_level *level,
                           const struct contribution *contribution, const struct level_sums *sums)
{
	const char *note = contribution->note;
	int row = table_row(table);

	if (!note && !contribution->is_on[SIDE_BASE])
		note = "only on the new side";
	else if (!note && !contribution->is_on[SIDE_NEW])
		note = "only in the base";
	table_set_text(table, row, CONTRIBUTION_LEVEL, level->name);
	table_set_text(table, row, CONTRIBUTION_NAME, contribution->name);
	table_set_double(table, row, CONTRIBUTION_BASE,
	                 run_values_mean(&contribution->amounts, level->sides, SIDE_BASE));
	table_set_double(table, row, CONTRIBUTION_NEW, run_values_mean(&contribution->amounts, level->sides, SIDE_NEW));
	table_set_double(table, row, CONTRIBUTION_DELTA, contribution->change);
	if (!(sums->all > 0))
		table_set_missing(table, row, CONTRIBUTION_RATIO, "there is no difference");
	else if (fabs(sums->whole) < LEAST_SUM * sums->all)
		table_set_missing(table, row, CONTRIBUTION_RATIO, "the rows of this level cancel out");
	else
		table_set_double(table, row, CONTRIBUTION_RATIO, contribution->change / sums->whole);
	set_calls(table, row, contribution);
	run_values_set_certain(&contribution->amounts, table, row, CONTRIBUTION_IS_CERTAIN);
	set_interval(table, row, level->sides, &contribution->amounts);
	table_set_text_or(table, row, CONTRIBUTION_NOTE, note, "on both sides");
}

/* Computes the changes of all rows, before they are sorted. */
static struct level_sums find_changes(struct contribution_level *level)
{
	struct level_sums sums = {0, 0};

	for (size_t i = 0; i < level->count; i++) {
		level->rows[i].change = run_values_change(&level->rows[i].amounts, level->sides);
		sums.whole += level->rows[i].change;
		sums.all += fabs(level->rows[i].change);
	}
	return sums;
}

static void levels_add_rows(struct table *table, struct contribution_level *level)
{
	struct level_sums sums;

	if (!strncmp(level->name, COMPARED_TOP, strlen(COMPARED_TOP)))
		drop_unlisted(level);
	else if (level->count <= JOINED)
		join_renamed(level);
	drop_joined(level);
	sums = find_changes(level);
	run_values_test(&level->rows[0].amounts, sizeof(level->rows[0]), level->count, level->sides);
	qsort(level->rows, level->count, sizeof(*level->rows), compare_contributions);
	for (size_t i = 0; i < level->count; i++)
		levels_add_row(table, level, &level->rows[i], &sums);
}

void comparison_add_level(struct table *table, struct compared_sides *sides, const char *name)
{
	struct contribution_level level = {
		.name = name, .sides = sides, .arena = &table->arena, .slot_count = 65536, .capacity = 64};

	level.rows = memory_resize(NULL, level.capacity, sizeof(*level.rows));
	level.slots = memory_resize(NULL, level.slot_count, sizeof(*level.slots));
	memset(level.slots, 0, level.slot_count * sizeof(*level.slots));
	if (collect(&level))
		levels_add_rows(table, &level);
	free(level.slots);
	free(level.rows);
}
