/* SPDX-License-Identifier: Apache-2.0
 *
 * text_template.c: one line of a report: a template (base/template.h) with columns of a row in its gaps.
 */
#include "base/demangle.h"
#include "base/template.h"
#include "output/text/cells.h"
#include "output/text/text.h"

#include <assert.h>

struct template_row {
	const struct table *table;
	int row;
};

static void text_template_add_value(struct buffer *out, const struct table *table, int row, int column)
{
	struct demangler demangler = DEMANGLER_NONE;
	const struct table_cell *cell = table_get(table, row, column);

	if (table->columns[column].type == TABLE_TEXT)
		names_for_people(out, &demangler, cell->text);
	else
		cell_for_people(out, table, row, column);
	demangler_release(&demangler);
}

static bool text_template_add_cell(struct buffer *out, const void *context, const char *name, double *number)
{
	const struct template_row *of = context;
	int column = table_find_column(of->table, name);

	assert(column >= 0);
	if (!table_get(of->table, of->row, column)->has_value)
		return false;
	table_number(of->table, of->row, column, number);
	text_template_add_value(out, of->table, of->row, column);
	return true;
}

void text_template(struct buffer *out, const struct table *table, int row, const char *template,
                   const struct text_style *style)
{
	const struct template_row of = {table, row};

	assert(row < table->row_count);
	template_add(
		out, template,
		&(struct template_values){.add = text_template_add_cell, .context = &of, .is_ascii = !style->is_utf8});
}
