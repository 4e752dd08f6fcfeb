/* SPDX-License-Identifier: Apache-2.0
 *
 * cells.h: one cell of a table as text: for people (units, groups of three) or for programs (digits only).
 */
#ifndef OUTPUT_TEXT_CELLS_H
#define OUTPUT_TEXT_CELLS_H

#include "table/table.h"

struct demangler;

/* Appends text for a terminal as valid UTF-8: control characters and marks of direction become \x01 and \u202e, and what
 * would be invisible stands in quotes. */
void text_for_people(struct buffer *out, const char *text);

/* The same, with mangled names of C++ in it as people write them. */
void names_for_people(struct buffer *out, struct demangler *demangler, const char *text);

/* Appends "412.3 ms", "33.3 %", "1 234", "yes"; "-" for what was not measured; texts with text_for_people(). */
void cell_for_people(struct buffer *out, const struct table *table, int row, int column);

/* Appends digits, true/false or the text as it is; nothing for what was not measured. NaN and infinities: nan, inf, -inf. */
void cell_for_programs(struct buffer *out, const struct table *table, int row, int column);

/* True when the table has rows and none has a value in the column. */
bool column_is_missing(const struct table *table, int column);

/* Why cells of the column were not measured: the reason of most of them. */
const char *column_reason(const struct table *table, int column);

#endif
