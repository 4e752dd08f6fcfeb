/* SPDX-License-Identifier: Apache-2.0
 *
 * query_rows.c: turns results of statements into tables. SQL types values, tables type columns: a column gets the
 * narrowest type that holds all its values. Units come from the ends of names (_ns, _bytes, _ratio), as in all tables.
 */
#include "base/memory.h"
#include "query/modules.h"
#include "query/query.h"

#include <stdlib.h>
#include <string.h>

struct value {
	int type; /* type code of SQLite */
	union {
		int64_t i;
		double d;
		const char *text;
	};
};

struct collected {
	struct arena texts;
	struct value *values; /* row by row */
	size_t columns, rows, capacity;
};

static const char *hexadecimal(struct arena *arena, const unsigned char *bytes, int length)
{
	char *text = arena_alloc(arena, (size_t)length * 2 + 1);

	for (int i = 0; i < length; i++)
		snprintf(text + (ptrdiff_t)i * 2, 3, "%02x", bytes[i]);
	return text;
}

static struct value take_value(struct collected *all, sqlite3_stmt *statement, int column)
{
	struct value value = {.type = sqlite3_column_type(statement, column)};

	if (value.type == SQLITE_INTEGER)
		value.i = sqlite3_column_int64(statement, column);
	else if (value.type == SQLITE_FLOAT)
		value.d = sqlite3_column_double(statement, column);
	else if (value.type == SQLITE_TEXT)
		value.text = arena_dup_n(&all->texts, (const char *)sqlite3_column_text(statement, column),
		                         (size_t)sqlite3_column_bytes(statement, column));
	else if (value.type == SQLITE_BLOB)
		value = (struct value){SQLITE_TEXT,
		                       {.text = hexadecimal(&all->texts, sqlite3_column_blob(statement, column),
		                                            sqlite3_column_bytes(statement, column))}};
	return value;
}

static void take_row(struct collected *all, sqlite3_stmt *statement)
{
	MEMORY_GROW_BY(all->values, all->rows, all->capacity, 64,
	               memory_resize(all->values, grown_ * all->columns, sizeof(*all->values)));
	for (size_t i = 0; i < all->columns; i++)
		all->values[all->rows * all->columns + i] = take_value(all, statement, (int)i);
	all->rows++;
}

/* ---- columns ---- */

static enum table_type query_rows_type_of(const struct collected *all, size_t column)
{
	bool has_integer = false, has_real = false, has_text = false;

	for (size_t row = 0; row < all->rows; row++) {
		int type = all->values[row * all->columns + column].type;

		has_integer = has_integer || type == SQLITE_INTEGER;
		has_real = has_real || type == SQLITE_FLOAT;
		has_text = has_text || type == SQLITE_TEXT;
	}
	return has_real && !has_text ? TABLE_DOUBLE : has_integer && !has_text ? TABLE_INT : TABLE_TEXT;
}

static bool is_null(const struct collected *all, size_t column)
{
	for (size_t row = 0; row < all->rows; row++) {
		if (all->values[row * all->columns + column].type != SQLITE_NULL)
			return false;
	}
	return true;
}

static enum table_unit query_rows_unit_of(const char *name)
{
	static const struct {
		const char *end;
		enum table_unit unit;
	} ends[] = {{"bytes_per_s", UNIT_BYTES_PER_SECOND},
	            {"flops_per_s", UNIT_FLOP_PER_SECOND},
	            {"_per_s", UNIT_PER_SECOND},
	            {"_ns", UNIT_NS},
	            {"bytes", UNIT_BYTES},
	            {"_ratio", UNIT_RATIO},
	            {"flops", UNIT_FLOP}};
	size_t length = strlen(name);

	if (!strcmp(name, "ratio"))
		return UNIT_RATIO;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end = strlen(ends[i].end);

		if (length >= end && !strcmp(name + length - end, ends[i].end))
			return ends[i].unit;
	}
	return UNIT_NONE;
}

/* Columns of a join may share a name: the second becomes name_2. */
static const char *unique_name(struct table *table, const char *name)
{
	const char *unique = name;

	for (int number = 2; table_find_column(table, unique) >= 0; number++)
		unique = arena_printf(&table->arena, "%s_%d", name, number);
	return unique;
}

static void add_column(struct table *table, const struct collected *all, size_t column, const char *name)
{
	enum table_type type = query_rows_type_of(all, column);

	table_column(table, &(struct table_column){.name = unique_name(table, name),
	                                           .type = type,
	                                           .unit = type == TABLE_TEXT ? UNIT_NONE : query_rows_unit_of(name)});
}

static void set_cell(struct table *table, int row, int column, const struct value *value)
{
	if (value->type == SQLITE_NULL)
		return;
	switch (table->columns[column].type) {
	case TABLE_INT:
		table_set_int(table, row, column, value->i);
		break;
	case TABLE_DOUBLE:
		table_set_double(table, row, column, value->type == SQLITE_INTEGER ? (double)value->i : value->d);
		break;
	default:
		table_set_text(table, row, column,
		               value->type == SQLITE_TEXT ? value->text
		               : value->type == SQLITE_INTEGER
		                       ? arena_printf(&table->arena, "%lld", (long long)value->i)
		                       : arena_printf(&table->arena, "%.17g", value->d));
	}
}

static void make_table(struct table *table, const struct collected *all, sqlite3_stmt *statement)
{
	table_init(table, "query", "Query", NULL);
	for (size_t column = 0; column < all->columns; column++)
		add_column(table, all, column, sqlite3_column_name(statement, (int)column));
	for (size_t row = 0; row < all->rows; row++) {
		int added = table_row(table);

		for (size_t column = 0; column < all->columns; column++)
			set_cell(table, added, (int)column, &all->values[row * all->columns + column]);
	}
	for (int column = 0; column < table->column_count && table->row_count; column++) {
		if (is_null(all, (size_t)column))
			table_set_missing(table, 0, column, "NULL in all rows");
	}
	if (!all->rows)
		table->empty = "no rows";
}

enum status query_fetch(struct query *query, struct table *rows, int limit, struct error *err)
{
	struct collected all = {.columns = (size_t)sqlite3_column_count(query->statement)};
	enum status status = STATUS_OK;
	int result = SQLITE_ROW;

	arena_init(&all.texts, 0);
	while (all.rows < (size_t)limit && (result = sqlite3_step(query->statement)) == SQLITE_ROW)
		take_row(&all, query->statement);
	query->is_done = result == SQLITE_DONE;
	if (result == SQLITE_DONE || result == SQLITE_ROW)
		make_table(rows, &all, query->statement);
	else
		status = query_failure(query, err);
	free(all.values);
	arena_release(&all.texts);
	return status;
}
