/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.c: tables that keep a limited number of rows and combine the others into one. It drops tens of thousands of
 * rows at a time, with their texts.
 */
#include "table/bound.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(BOUND_ROWS > TABLE_ROWS_MAX, "some can go");

static struct table_cell *row_of(const struct table *table, int row)
{
	return &table->cells[(size_t)row * (size_t)table->column_count];
}

/* ---- ranks ---- */

struct bound_ranked {
	const struct table *table;
	int row;
};

/* A missing value comes last. */
static int compare_cells(enum table_type type, const struct table_cell *a, const struct table_cell *b)
{
	if (a->has_value != b->has_value)
		return a->has_value ? -1 : 1;
	return a->has_value ? table_compare_values(type, a, b) : 0;
}

static int bound_compare_ranks(const void *left, const void *right)
{
	const struct bound_ranked *one = left, *other = right;
	const struct table *table = one->table;
	const struct table_cell *a = row_of(table, one->row), *b = row_of(table, other->row);
	int value = table->bound_column, order = 0;

	if (a[value].has_value && b[value].has_value)
		order = table_compare_values(table->columns[value].type, &b[value], &a[value]); /* largest first */
	else
		order = b[value].has_value - a[value].has_value;
	for (int i = 0; i < table->column_count && !order; i++)
		if (table->columns[i].role == ROLE_KEY)
			order = compare_cells(table->columns[i].type, &a[i], &b[i]);
	return order ? order : (one->row > other->row) - (one->row < other->row);
}

static size_t text_bytes(const struct table *table, int row)
{
	size_t bytes = 0;

	for (int i = 0; i < table->column_count; i++) {
		const struct table_cell *cell = &row_of(table, row)[i];

		if (cell->has_value && table->columns[i].type == TABLE_TEXT)
			bytes += strlen(cell->text) + 1;
	}
	return bytes;
}

/* Returns, by row, if the row stays. *least: the last row that stays. A row that goes would also go with more rows: the
 * rows before it then have at least as much text. */
static bool *choose_rows(const struct table *table, int *least)
{
	size_t count = (size_t)table->row_count, bytes = 0;
	struct bound_ranked *ranks = memory_resize(NULL, count, sizeof(*ranks));
	bool *stays = memory_resize(NULL, count, sizeof(*stays));

	for (int row = 0; row < table->row_count; row++)
		ranks[row] = (struct bound_ranked){table, row};
	qsort(ranks, count, sizeof(*ranks), bound_compare_ranks);
	for (int i = 0; i < table->row_count; i++) {
		bytes += text_bytes(table, ranks[i].row);
		stays[ranks[i].row] = i == 0 || (i < TABLE_ROWS_MAX && bytes <= TABLE_TEXT_MAX);
		*least = stays[ranks[i].row] ? ranks[i].row : *least;
	}
	free(ranks);
	return stays;
}

/* ---- the combined row ---- */

static const char too_large[] = "it is more than 64 bits hold";

static void bound_add_value(struct table_cell *sum, const struct table_column *column, const struct table_cell *cell)
{
	int order;

	if (!sum->has_value) {
		*sum = sum->reason == too_large ? *sum : *cell;
		return;
	}
	order = table_compare_values(column->type, cell, sum);
	if (column->more == MORE_SUM && column->type == TABLE_INT) {
		if (__builtin_add_overflow(sum->i, cell->i, &sum->i))
			*sum = (struct table_cell){.reason = too_large};
	} else if (column->more == MORE_SUM) {
		sum->d += cell->d;
	} else if (column->more == MORE_LEAST ? order < 0 : order > 0) {
		*sum = *cell;
	}
}

static void add_to_more(struct table *table, int row)
{
	for (int i = 0; i < table->column_count; i++) {
		const struct table_column *column = &table->columns[i];
		const struct table_cell *cell = &row_of(table, row)[i];

		if (column->more == MORE_NOTHING)
			continue;
		if (cell->has_value)
			bound_add_value(&table->more[i], column, cell);
		else if (!table->more[i].has_value && !table->more[i].reason && cell->reason)
			table->more[i].reason = arena_dup(&table->head, cell->reason);
	}
	table->more_count++;
}

/* ---- rows and their texts ---- */

struct moved_text {
	const char *from, *to;
};

/* Cells that shared a text with the cell above share its copy. */
static void move_text(struct table_cell *cell, struct moved_text *last, struct arena *arena)
{
	if (cell->text != last->from)
		*last = (struct moved_text){cell->text, arena_dup(arena, cell->text)};
	cell->text = last->to; /* or the reason, which is in the same place */
}

static void move_texts(struct table *table)
{
	struct moved_text last[sizeof(table->columns) / sizeof(table->columns[0])] = {{0}};
	struct arena arena;

	arena_init(&arena, 0);
	for (int row = 0; row < table->row_count; row++) {
		struct table_cell *cells = row_of(table, row);

		for (int i = 0; i < table->column_count; i++)
			if ((!cells[i].has_value || table->columns[i].type == TABLE_TEXT) && cells[i].text)
				move_text(&cells[i], &last[i], &arena);
	}
	memset(table->last_texts, 0, sizeof(table->last_texts));
	arena_release(&table->arena);
	table->arena = arena;
}

static void drop_rows(struct table *table)
{
	int kept = 0, least = -1;
	bool *stays = choose_rows(table, &least);

	for (int row = 0; row < table->row_count; row++) {
		if (!stays[row]) {
			add_to_more(table, row);
			continue;
		}
		if (row == least)
			table->least_row = kept;
		if (row != kept)
			memcpy(row_of(table, kept), row_of(table, row),
			       (size_t)table->column_count * sizeof(*table->cells));
		kept++;
	}
	table->row_count = kept;
	move_texts(table);
	free(stays);
}

/* ---- public ---- */

void bound_make_room(struct table *table)
{
	int last = table->row_count - 1;

	if (table->least_row >= 0 && last > table->least_row &&
	    bound_compare_ranks(&(struct bound_ranked){table, last}, &(struct bound_ranked){table, table->least_row}) >
	            0) {
		add_to_more(table, last);
		table->row_count--;
	}
	if (table->row_count == BOUND_ROWS || table->arena.used_bytes > BOUND_ARENA_BYTES)
		drop_rows(table);
}

void table_bound(struct table *table, int column)
{
	assert(table->row_count == 0 && table->columns[column].type != TABLE_TEXT);
	table->is_bounded = true;
	table->bound_column = column;
	table->least_row = -1;
}

int table_add_more(struct table *table, int name_column)
{
	int row;

	if (table->row_count > TABLE_ROWS_MAX || table->arena.used_bytes > TABLE_TEXT_MAX)
		drop_rows(table);
	table->is_bounded = false;
	if (!table->more_count)
		return -1;
	row = table_row(table);
	for (int i = 0; i < table->column_count; i++) {
		if (table->more[i].has_value)
			row_of(table, row)[i] = table->more[i];
		else
			table_set_missing(table, row, i,
			                  table->more[i].reason ? table->more[i].reason
			                                        : "of several rows that are shown as one row");
	}
	table_set_text(table, row, name_column, "(more names)");
	return row;
}
