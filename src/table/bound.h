/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.h: tables that keep at most a given number of rows.
 */
#ifndef TABLE_BOUND_H
#define TABLE_BOUND_H

#include "table/table.h"

/* Rows are compared and dropped once a table has this many rows or bytes of text. */
#define BOUND_ROWS 131072
#define BOUND_ARENA_BYTES ((size_t)192 << 20)

/* For table.c, before it adds a row: moves rows that are known not to stay into table->more. */
void bound_make_room(struct table *table);

/* Limits the table to TABLE_ROWS_MAX rows, or to the rows whose texts have TABLE_TEXT_MAX bytes. The rows with the
 * largest values in the column (an integer or real number) stay. Among equal values, those whose keys sort first stay,
 * whatever the order in which they were added. Call it before the first row. */
#define TABLE_ROWS_MAX 100000
#define TABLE_TEXT_MAX ((size_t)64 << 20)
void table_bound(struct table *table, int column);
/* After the last row: adds one row, "(more names)" in the column, for all rows that did not stay. Its values follow
 * table_column.more. Returns its number, or -1 if all rows stayed. Texts in the arena move until this call. */
int table_add_more(struct table *table, int name_column);

#endif
