/* SPDX-License-Identifier: Apache-2.0
 *
 * text_template.c: one line of a report from a template and a row of a table. The template is ours, never the
 * user's: an unknown column is an assert.
 */
#include "base/demangle.h"
#include "output/text/cells.h"
#include "output/text/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void text_template_add_value(struct buffer *out, const struct table *table, int row, int column)
{
	struct demangler demangler = DEMANGLER_NONE;
	const struct table_cell *cell = table_get(table, row, column);

	if (cell->has_value && table->columns[column].type == TABLE_TEXT)
		names_for_people(out, &demangler, cell->text);
	else
		cell_for_people(out, table, row, column);
	demangler_release(&demangler);
}

/* The cell of "{name}", "{name:thing}" or "{name|instead}"; false when it was not measured, or for "{?name:thing}" when
 * there is none. */
static bool add_cell(struct buffer *out, const struct table *table, int row, const char *text, size_t length)
{
	bool is_left_out_at_zero = *text == '?';
	size_t name_length;
	char name[64];
	double value;
	int column;

	text += is_left_out_at_zero;
	length -= is_left_out_at_zero;
	name_length = strcspn(text, ":|}");
	assert(name_length < sizeof(name) && name_length <= length);
	snprintf(name, sizeof(name), "%.*s", (int)name_length, text);
	column = table_find_column(table, name);
	assert(column >= 0);
	if (!table_get(table, row, column)->has_value && text[name_length] == '|')
		return buffer_add(out, text + name_length + 1, length - name_length - 1);
	if (!table_get(table, row, column)->has_value)
		return false;
	if (is_left_out_at_zero && table_number(table, row, column, &value) && value == 0)
		return false;
	text_template_add_value(out, table, row, column);
	if (name_length < length && text[name_length] == ':') {
		bool is_one = table_number(table, row, column, &value) && value == 1;
		bool is_hissing = text[length - 1] == 's'; /* process, processes */

		buffer_printf(out, " %.*s%s", (int)(length - name_length - 1), text + name_length + 1,
		              is_one       ? ""
		              : is_hissing ? "es"
		                           : "s");
	}
	return true;
}

/* Writes until `end` or the end of the template; false when a cell was missing. */
static bool text_template_add_part(struct buffer *out, const struct table *table, int row, const char **at, char end,
                                   const struct text_style *style)
{
	bool is_whole = true;

	while (**at && **at != end) {
		if (**at == '{') {
			size_t length = strcspn(++*at, "}");

			if (!add_cell(out, table, row, *at, length)) {
				is_whole = false;
				buffer_add_text(out, "not measured");
			}
			*at += length + 1;
		} else if (**at == '[') {
			size_t before = out->length;

			++*at;
			if (!text_template_add_part(out, table, row, at, ']', style)) {
				out->length = before;
				out->data[before] = '\0';
			}
			++*at;
		} else if (!strncmp(*at, "±", strlen("±"))) {
			buffer_add_text(out, style->is_utf8 ? "±" : "+-");
			*at += strlen("±");
		} else {
			buffer_add(out, (*at)++, 1);
		}
	}
	return is_whole;
}

void text_template(struct buffer *out, const struct table *table, int row, const char *template,
                   const struct text_style *style)
{
	assert(row < table->row_count);
	text_template_add_part(out, table, row, &template, '\0', style);
}
