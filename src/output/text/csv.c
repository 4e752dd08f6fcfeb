/* SPDX-License-Identifier: Apache-2.0
 *
 * csv.c: quotes fields that need quotes. Bytes that are not UTF-8 become U+FFFD; control characters other than tab
 * become blanks, so that one record is one line.
 */
#include "output/text/csv.h"

#include "base/text.h"
#include "output/text/cells.h"

#include <string.h>

static void add_field(struct buffer *out, const char *text)
{
	struct buffer clean;

	buffer_init(&clean, 16 << 20);
	text_clean(&clean, text, strlen(text));
	if (!clean.length || !strpbrk(clean.data, ",\"")) {
		buffer_add(out, clean.data, clean.length);
		buffer_release(&clean);
		return;
	}
	buffer_add_text(out, "\"");
	for (const char *c = clean.data; *c; c++) {
		if (*c == '"')
			buffer_add_text(out, "\"");
		buffer_add(out, c, 1);
	}
	buffer_add_text(out, "\"");
	buffer_release(&clean);
}

void csv_heading(struct buffer *out, const struct table *table)
{
	for (int column = 0; column < table->column_count; column++) {
		buffer_add_text(out, column ? "," : "");
		add_field(out, table->columns[column].name);
	}
	buffer_add_text(out, "\r\n");
}

void csv_rows(struct buffer *out, const struct table *table)
{
	struct buffer cell;

	buffer_init(&cell, 16 << 20);
	for (int row = 0; row < table->row_count; row++) {
		for (int column = 0; column < table->column_count; column++) {
			buffer_clear(&cell);
			cell_for_programs(&cell, table, row, column);
			buffer_add_text(out, column ? "," : "");
			if (cell.length)
				add_field(out, cell.data);
		}
		buffer_add_text(out, "\r\n");
		buffer_flow(out);
	}
	buffer_release(&cell);
}

void csv_table(struct buffer *out, const struct table *table)
{
	csv_heading(out, table);
	csv_rows(out, table);
}
