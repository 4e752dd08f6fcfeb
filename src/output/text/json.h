/* SPDX-License-Identifier: Apache-2.0
 *
 * json.h: tables as JSON (schema stepscope.table/1): the columns with their definitions, the rows as objects. A
 * missing cell is null, with its reason under "not_measured".
 */
#ifndef OUTPUT_TEXT_JSON_H
#define OUTPUT_TEXT_JSON_H

#include "base/json_write.h"
#include "table/table.h"

/* Writes one cell as a value; null for missing cells, NaN and infinities. */
void json_cell(struct json_writer *json, const struct table *table, int row, int column);
/* Write one row as an object, and all rows as an array of objects. */
void json_row(struct json_writer *json, const struct table *table, int row);
void json_rows(struct json_writer *json, const struct table *table);
/* Writes a whole document. */
void json_table(struct json_writer *json, const struct table *table);

#endif
