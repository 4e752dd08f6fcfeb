/* SPDX-License-Identifier: Apache-2.0
 *
 * cells.h: one cell of a table as text: for people (units, digits in groups of three) or for programs (digits only).
 */
#ifndef OUTPUT_TEXT_CELLS_H
#define OUTPUT_TEXT_CELLS_H

#include "table/table.h"

struct demangler;

/* Appends text for a terminal as valid UTF-8. Control characters and direction marks become \x01 and \u202e. An
 * invisible text is quoted. */
void text_for_people(struct buffer *out, const char *text);

/* As text_for_people(), with mangled C++ names demangled. */
void names_for_people(struct buffer *out, struct demangler *demangler, const char *text);

/* Appends "412.3 ms", "33.3 %", "1 234", "yes", or "-" for a missing cell; texts with text_for_people(). */
void cell_for_people(struct buffer *out, const struct table *table, int row, int column);

/* Appends digits, true/false or the unchanged text; nothing for a missing cell. NaN and infinities: nan, inf, -inf. */
void cell_for_programs(struct buffer *out, const struct table *table, int row, int column);

/* Returns true if the table has rows but no value in the column. */
bool column_is_missing(const struct table *table, int column);

/* Returns why the column's cells are missing: the reason of most of them. */
const char *column_reason(const struct table *table, int column);

#endif
