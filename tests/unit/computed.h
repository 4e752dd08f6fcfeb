/* SPDX-License-Identifier: Apache-2.0
 *
 * computed.h: tables of analyses, for tests of them.
 */
#ifndef UNIT_COMPUTED_H
#define UNIT_COMPUTED_H

#include "analysis/analysis_context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct analysis_options all_steps;

/* The table, which must keep its columns' promises. */
static inline void compute(const char *name, const struct model *model, const struct analysis_options *options,
                           struct table *table)
{
	struct analysis_context context;
	struct error err = {0};

	analysis_context_init(&context, model, options);
	assert_int_equal(analysis_find(name)->run(&context, table, &err), STATUS_OK);
	analysis_context_release(&context);
	if (table_check(table, &err))
		fail_msg("%s", err.text);
}

/* The row with this text in the column; where none has it, the first whose text begins so. */
static inline int find_row(const struct table *table, const char *column, const char *text)
{
	int number = table_find_column(table, column), begins = -1;

	for (int row = 0; row < table->row_count; row++) {
		const struct table_cell *cell = table_get(table, row, number);

		if (!cell->has_value || strncmp(cell->text, text, strlen(text)) != 0)
			continue;
		if (!cell->text[strlen(text)])
			return row;
		begins = begins < 0 ? row : begins;
	}
	if (begins < 0)
		fail_msg("no row '%s' in table '%s'", text, table->name);
	return begins;
}

/* Returns the number in the cell; fails if it was not measured. */
static inline double number(const struct table *table, int row, const char *column)
{
	double value;

	if (!table_number(table, row, table_find_column(table, column), &value))
		fail_msg("'%s' of row %d of table '%s' was not measured", column, row, table->name);
	return value;
}

#endif
