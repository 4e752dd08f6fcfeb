/* SPDX-License-Identifier: Apache-2.0
 *
 * cells.h: one cell of a table as text: for people (units, groups of three) or for programs (digits only).
 */
#ifndef OUTPUT_CELLS_H
#define OUTPUT_CELLS_H

#include "table/table.h"

/* Appends "412.3 ms", "33.3 %", "1 234", "yes"; "-" for what was not measured. Control characters become blanks. */
void cell_for_people(struct buffer *out, const struct table *table, int row, int column);

/* Appends digits, true/false or the text as it is; nothing for what was not measured. NaN and infinities: nan, inf, -inf. */
void cell_for_programs(struct buffer *out, const struct table *table, int row, int column);

/* True when the column has rows and none of them was measured; `reason` (may be NULL) is that of most rows. */
bool column_is_missing(const struct table *table, int column, const char **reason);

#endif
