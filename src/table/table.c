/* SPDX-License-Identifier: Apache-2.0
 *
 * table.c: rows and columns in memory, sorting, and the check of the rules of columns. It formats nothing: see output/.
 */
#include "table/table.h"

#include "base/clamped.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "table/bound.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IN_PLACE_BYTES ((size_t)32 << 20) /* less than the file pages that stay resident: base/storage.h */
#define MAXIMUM_COLUMNS ((int)(sizeof(((struct table *)0)->columns) / sizeof(struct table_column)))

static const char *dup_or_null(struct arena *arena, const char *text)
{
	return text ? arena_dup(arena, text) : NULL;
}

void table_init(struct table *table, const char *name, const char *title, const char *definition)
{
	memset(table, 0, sizeof(*table));
	arena_init(&table->head, 0);
	arena_init(&table->arena, 0);
	table->name = dup_or_null(&table->head, name);
	table->title = dup_or_null(&table->head, title);
	table->definition = dup_or_null(&table->head, definition);
}

void table_release(struct table *table)
{
	storage_release(table->storage, table->cells);
	arena_release(&table->head);
	arena_release(&table->arena);
	memset(table, 0, sizeof(*table));
}

void table_keep_in(struct table *table, struct storage *storage)
{
	assert(!table->cells);
	table->storage = storage;
}

int table_column(struct table *table, const struct table_column *column)
{
	struct table_column *added = &table->columns[table->column_count];

	assert(table->row_count == 0 && table->column_count < MAXIMUM_COLUMNS);
	assert(column->name && table_find_column(table, column->name) < 0);
	*added = *column;
	added->name = arena_dup(&table->head, column->name);
	added->title = dup_or_null(&table->head, column->title);
	added->definition = dup_or_null(&table->head, column->definition);
	added->denominator = dup_or_null(&table->head, column->denominator);
	added->other = dup_or_null(&table->head, column->other);
	return table->column_count++;
}

void table_columns(struct table *table, const struct table_column *columns, int count)
{
	for (int i = 0; i < count; i++)
		table_column(table, &columns[i]);
}

void table_columns_of(struct table *table, const struct table_column *columns, int count, double total)
{
	for (int i = 0; i < count; i++) {
		struct table_column column = columns[i];

		column.total = total;
		table_column(table, &column);
	}
}

static struct table_cell *cell_at(const struct table *table, int row, int column)
{
	assert(row >= 0 && row < table->row_count && column >= 0 && column < table->column_count);
	return &table->cells[(size_t)row * (size_t)table->column_count + (size_t)column];
}

int table_row(struct table *table)
{
	size_t row_bytes = (size_t)table->column_count * sizeof(struct table_cell);

	assert(table->column_count > 0);
	if (table->is_bounded)
		bound_make_room(table);
	MEMORY_GROW_BY(table->cells, table->row_count, table->row_capacity, 8,
	               storage_resize(table->storage, table->cells, (size_t)grown_, row_bytes));
	table->row_count++;
	memset(cell_at(table, table->row_count - 1, 0), 0, row_bytes);
	return table->row_count - 1;
}

void table_set_int(struct table *table, int row, int column, int64_t value)
{
	assert(table->columns[column].type == TABLE_INT);
	*cell_at(table, row, column) = (struct table_cell){.has_value = true, .i = value};
}

void table_set_double(struct table *table, int row, int column, double value)
{
	assert(table->columns[column].type == TABLE_DOUBLE);
	*cell_at(table, row, column) = (struct table_cell){.has_value = true, .d = value};
}

void table_set_bool(struct table *table, int row, int column, bool value)
{
	assert(table->columns[column].type == TABLE_BOOL);
	*cell_at(table, row, column) = (struct table_cell){.has_value = true, .b = value};
}

/* Among millions of rows, most have the text of the row before: they share one copy. */
static const char *keep_text(struct table *table, int column, const char *text)
{
	const char **last = &table->last_texts[column];

	if (!text || !*last || strcmp(*last, text) != 0)
		*last = dup_or_null(&table->arena, text);
	return *last;
}

void table_set_text(struct table *table, int row, int column, const char *text)
{
	assert(table->columns[column].type == TABLE_TEXT);
	*cell_at(table, row, column) = (struct table_cell){.has_value = true, .text = keep_text(table, column, text)};
}

void table_set_lasting_text(struct table *table, int row, int column, const char *text)
{
	assert(table->columns[column].type == TABLE_TEXT && !table->is_bounded);
	*cell_at(table, row, column) = (struct table_cell){.has_value = true, .text = text};
}

void table_set_missing(struct table *table, int row, int column, const char *reason)
{
	*cell_at(table, row, column) = (struct table_cell){.reason = keep_text(table, column, reason)};
}

void table_set_text_or(struct table *table, int row, int column, const char *text, const char *reason)
{
	if (text)
		table_set_text(table, row, column, text);
	else
		table_set_missing(table, row, column, reason);
}

const struct table_cell *table_get(const struct table *table, int row, int column)
{
	return cell_at(table, row, column);
}

int table_find_column(const struct table *table, const char *name)
{
	for (int i = 0; i < table->column_count; i++) {
		if (!strcmp(table->columns[i].name, name))
			return i;
	}
	return -1;
}

bool table_number(const struct table *table, int row, int column, double *value)
{
	const struct table_cell *cell = cell_at(table, row, column);

	if (!cell->has_value)
		return false;
	switch (table->columns[column].type) {
	case TABLE_INT:
		*value = (double)cell->i;
		return true;
	case TABLE_DOUBLE:
		*value = cell->d;
		return true;
	case TABLE_BOOL:
		*value = cell->b;
		return true;
	default:
		return false;
	}
}

const char *table_text(const struct table *table, int row, int column)
{
	const struct table_cell *cell = cell_at(table, row, column);

	assert(table->columns[column].type == TABLE_TEXT);
	return cell->has_value ? cell->text : NULL;
}

/* ---- sorting ---- */

struct table_sort_key { /* holds its cell, because cells of a large table are far apart, and in a file */
	struct table_cell cell;
	int row;      /* row before sorting */
	uint8_t type; /* enum table_type */
	bool is_ascending;
};

int table_compare_values(enum table_type type, const struct table_cell *a, const struct table_cell *b)
{
	switch (type) {
	case TABLE_TEXT:
		return strcmp(a->text, b->text);
	case TABLE_INT:
		return (a->i > b->i) - (a->i < b->i);
	case TABLE_DOUBLE:
		return (a->d > b->d) - (a->d < b->d);
	default:
		return (int)a->b - (int)b->b;
	}
}

static int table_compare_keys(const void *left, const void *right)
{
	const struct table_sort_key *a = left, *b = right;
	int order;

	if (a->cell.has_value != b->cell.has_value)
		return a->cell.has_value ? -1 : 1;
	order = a->cell.has_value ? table_compare_values((enum table_type)a->type, &a->cell, &b->cell) : 0;
	return a->is_ascending ? order : -order;
}

static void hide_trees(struct table *table)
{
	for (int column = 1; column < table->column_count; column++) {
		if (!table->columns[column].is_tree || table->columns[column].is_hidden)
			continue;
		table->columns[column].is_hidden = true;
		table->columns[column - 1].is_hidden = false;
	}
}

struct move {
	int from, to;
};

static int compare_moves(const void *left, const void *right)
{
	const struct move *a = left, *b = right;

	return (a->from > b->from) - (a->from < b->from);
}

/* Sorts a table that may be in a file. It builds one stretch of rows after the other. Within a stretch, it reads rows
 * in file order, because sequential pages are read fast. */
static void gather_in_order(struct table *table, const struct table_sort_key *keys)
{
	size_t row_bytes = (size_t)table->column_count * sizeof(*table->cells);
	int at_once = (int)(IN_PLACE_BYTES / row_bytes);
	struct move *moves = memory_resize(NULL, (size_t)at_once, sizeof(*moves));
	struct table_cell *cells = storage_resize(table->storage, NULL, (size_t)table->row_count, row_bytes);

	for (int first = 0; first < table->row_count; first += at_once) {
		int count = table->row_count - first < at_once ? table->row_count - first : at_once;

		for (int i = 0; i < count; i++)
			moves[i] = (struct move){keys[first + i].row, first + i};
		qsort(moves, (size_t)count, sizeof(*moves), compare_moves);
		for (int i = 0; i < count; i++)
			memcpy(&cells[(size_t)moves[i].to * (size_t)table->column_count],
			       cell_at(table, moves[i].from, 0), row_bytes);
	}
	free(moves);
	storage_release(table->storage, table->cells);
	table->cells = cells;
	table->row_capacity = table->row_count;
}

/* Moves row keys[i].row to row i, along each cycle, so that a table of a million rows is not in memory twice. */
static void table_put_in_order(struct table *table, struct table_sort_key *keys)
{
	struct table_cell first[MAXIMUM_COLUMNS];
	size_t row_bytes = (size_t)table->column_count * sizeof(*table->cells);

	for (int start = 0; start < table->row_count; start++) {
		int row = start;

		memcpy(first, cell_at(table, start, 0), row_bytes);
		while (keys[row].row != start) {
			int from = keys[row].row;

			memcpy(cell_at(table, row, 0), cell_at(table, from, 0), row_bytes);
			keys[row].row = row; /* done */
			row = from;
		}
		memcpy(cell_at(table, row, 0), first, row_bytes);
		keys[row].row = row;
	}
}

void table_sort(struct table *table, int column, bool is_ascending)
{
	size_t rows = (size_t)table->row_count;
	struct table_sort_key *keys;

	hide_trees(table);
	if (rows < 2)
		return;
	keys = storage_resize(table->storage, NULL, rows, sizeof(*keys));
	for (int row = 0; row < table->row_count; row++)
		keys[row] = (struct table_sort_key){*cell_at(table, row, column), row,
		                                    (uint8_t)table->columns[column].type, is_ascending};
	merge_sort_in(table->storage, keys, rows, sizeof(*keys), table_compare_keys);
	if (table->storage && rows * (size_t)table->column_count * sizeof(*table->cells) > IN_PLACE_BYTES)
		gather_in_order(table, keys);
	else
		table_put_in_order(table, keys);
	storage_release(table->storage, keys);
}

void table_limit(struct table *table, int rows)
{
	if (rows >= 0 && rows < table->row_count)
		table->row_count = rows;
}

void table_choose(struct table *table, const int *columns, int count)
{
	struct table_column chosen[MAXIMUM_COLUMNS];
	struct table_cell cells[MAXIMUM_COLUMNS];

	assert(count > 0 && count <= table->column_count);
	for (int row = 0; row < table->row_count; row++) { /* the target cells are not needed by later rows */
		for (int i = 0; i < count; i++)
			cells[i] = *cell_at(table, row, columns[i]);
		memcpy(&table->cells[(size_t)row * (size_t)count], cells, (size_t)count * sizeof(*cells));
	}
	for (int i = 0; i < count; i++)
		chosen[i] = table->columns[columns[i]];
	memcpy(table->columns, chosen, (size_t)count * sizeof(chosen[0]));
	table->column_count = count;
}

/* ---- rules of columns ---- */

static enum status check_row(const struct table *table, int row, int column, struct error *err)
{
	const struct table_column *what = &table->columns[column];
	double value, other;
	int other_column;

	if (!table_number(table, row, column, &value))
		return STATUS_OK;
	if ((what->rules & RULE_NOT_NEGATIVE) && value < 0)
		return error_set(err, STATUS_LIMIT, "table '%s', column '%s', row %d: %.17g is negative", table->name,
		                 what->name, row, value);
	if ((what->rules & RULE_AT_MOST_ONE) && value > 1 + 1e-9)
		return error_set(err, STATUS_LIMIT, "table '%s', column '%s', row %d: %.17g is more than 1",
		                 table->name, what->name, row, value);
	if (!(what->rules & RULE_AT_MOST_OTHER))
		return STATUS_OK;
	other_column = table_find_column(table, what->other);
	assert(other_column >= 0);
	if (table_number(table, row, other_column, &other) && value > other + 1e-9 * fabs(other))
		return error_set(err, STATUS_LIMIT, "table '%s', column '%s', row %d: %.17g is more than %.17g of '%s'",
		                 table->name, what->name, row, value, other, what->other);
	return STATUS_OK;
}

/* Returns the sum of a column. False if a cell is missing or there is no row. */
static bool sum_column(const struct table *table, int column, double *sum)
{
	int64_t whole = 0;
	double parts = 0, value;

	for (int row = 0; row < table->row_count; row++) {
		if (!table_number(table, row, column, &value))
			return false;
		if (table->columns[column].type == TABLE_INT)
			whole = (int64_t)((uint64_t)whole + (uint64_t)table_get(table, row, column)->i);
		else
			parts += value;
	}
	*sum = table->columns[column].type == TABLE_INT ? (double)whole : parts;
	return table->row_count > 0;
}

/* Returns the sum of the row's parts of the column `other`. False if one of them is missing. */
static bool sum_parts(const struct table *table, int row, const char *other, int64_t *sum)
{
	*sum = 0;
	for (int i = 0; i < table->column_count; i++) {
		const struct table_column *part = &table->columns[i];
		const struct table_cell *cell = cell_at(table, row, i);

		if (!(part->rules & RULE_PART_OF_OTHER) || strcmp(part->other, other) != 0)
			continue;
		assert(part->type == TABLE_INT);
		if (!cell->has_value)
			return false;
		*sum = (int64_t)((uint64_t)*sum + (uint64_t)cell->i);
	}
	return true;
}

static enum status check_parts(const struct table *table, int column, struct error *err)
{
	const char *other = table->columns[column].other;
	int whole = table_find_column(table, other);

	assert(whole >= 0 && table->columns[whole].type == TABLE_INT);
	for (int i = 0; i < column; i++) { /* checks each whole once, at its first part */
		if ((table->columns[i].rules & RULE_PART_OF_OTHER) && !strcmp(table->columns[i].other, other))
			return STATUS_OK;
	}
	for (int row = 0; row < table->row_count; row++) {
		const struct table_cell *cell = cell_at(table, row, whole);
		int64_t sum;

		if (cell->has_value && sum_parts(table, row, other, &sum) && sum != cell->i)
			return error_set(err, STATUS_LIMIT,
			                 "table '%s', row %d: the parts of '%s' together are %" PRId64 ", not %" PRId64,
			                 table->name, row, other, sum, cell->i);
	}
	return STATUS_OK;
}

static enum status check_sum(const struct table *table, int column, struct error *err)
{
	const struct table_column *what = &table->columns[column];
	double total = what->rules & RULE_SUMS_TO_ONE ? 1 : what->total;
	double allowed = what->type == TABLE_INT ? 0 : 1e-9 * fmax(fabs(total), 1e-3);
	double sum;

	if (!(what->rules & (RULE_SUMS_TO_ONE | RULE_SUMS_TO_TOTAL)) || !sum_column(table, column, &sum))
		return STATUS_OK;
	/* !(<=) instead of >, to catch NaN */
	if (!(fabs(sum - total) <= allowed + 1e-12 * (double)table->row_count))
		return error_set(err, STATUS_LIMIT,
		                 "table '%s', column '%s': all %d rows together are %.17g, not %.17g", table->name,
		                 what->name, table->row_count, sum, total);
	return STATUS_OK;
}

enum status table_check(const struct table *table, struct error *err)
{
	for (int column = 0; column < table->column_count; column++) {
		enum status status = STATUS_OK;

		if (!table->columns[column].rules)
			continue;
		for (int row = 0; row < table->row_count && !status; row++)
			status = check_row(table, row, column, err);
		if (!status)
			status = check_sum(table, column, err);
		if (!status && (table->columns[column].rules & RULE_PART_OF_OTHER))
			status = check_parts(table, column, err);
		if (status)
			return status;
	}
	return STATUS_OK;
}
