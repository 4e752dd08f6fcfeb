/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.h: tables that keep at most a given number of rows.
 */
#ifndef TABLE_BOUND_H
#define TABLE_BOUND_H

#include "table/table.h"

/* So much is there before rows are compared and go. */
#define BOUND_ROWS 131072
#define BOUND_ARENA_BYTES ((size_t)192 << 20)

/* For table.c. Before a row is added: what does not stay, as far as it is known, goes into table->more. */
void bound_make_room(struct table *table);

/* Of this table TABLE_ROWS_MAX rows stay, or as many as have TABLE_TEXT_MAX bytes of text: those with the largest values in the column (an
 * integer or real number), of equal ones those whose keys come first, wherever they came. Before the first row. */
#define TABLE_ROWS_MAX 100000
#define TABLE_TEXT_MAX ((size_t)64 << 20)
void table_bound(struct table *table, int column);
/* Behind the last row: what did not stay is one more row, "(more names)" in the column, with what table_column.more says. Its number, -1: all stayed.
 * Only then texts in the arena stay where they are. */
int table_add_more(struct table *table, int name_column);

#endif
