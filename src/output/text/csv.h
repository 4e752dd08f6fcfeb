/* SPDX-License-Identifier: Apache-2.0
 *
 * csv.h: a table as CSV (RFC 4180, UTF-8, first record: names of the columns). Missing cells are empty.
 */
#ifndef OUTPUT_TEXT_CSV_H
#define OUTPUT_TEXT_CSV_H

#include "table/table.h"

void csv_table(struct buffer *out, const struct table *table);

/* The parts of csv_table(), for tables that come in pieces. */
void csv_heading(struct buffer *out, const struct table *table);
void csv_rows(struct buffer *out, const struct table *table);

#endif
