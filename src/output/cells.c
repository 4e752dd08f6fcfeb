/* SPDX-License-Identifier: Apache-2.0
 *
 * cells.c: see the header. Units are those of the column; base/units.h decides how numbers read.
 */
#include "output/cells.h"

#include "base/json_write.h"
#include "base/text.h"
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void add_flops(struct buffer *out, double value, enum table_unit unit)
{
	char text[UNITS_BYTES];
	size_t length;

	units_rate(text, value, "FLOP");
	length = strlen(text);
	/* the same steps for an amount, without the "/s" of the rate */
	buffer_add(out, text, unit == UNIT_FLOP && length > 2 ? length - 2 : length);
}

/* Rates and plain numbers: whole from 100 on, else four digits. */
static char *plain(char *text, double value)
{
	return units_count(text, fabs(value) >= 100 && fabs(value) < 1e15 ? round(value) : value);
}

static void add_number(struct buffer *out, double value, enum table_unit unit)
{
	char text[UNITS_BYTES];

	switch (unit) {
	case UNIT_NS:
	case UNIT_NS_SINCE_START:
		buffer_add_text(out, units_time(text, value));
		return;
	case UNIT_BYTES:
		buffer_add_text(out, units_bytes(text, value));
		return;
	case UNIT_RATIO:
		/* a little is not nothing */
		buffer_add_text(out, value > 0 && value < 0.0005 ? "<0.1 %" : units_ratio(text, value));
		return;
	case UNIT_FLOP:
	case UNIT_FLOP_PER_SECOND:
		add_flops(out, value, unit);
		return;
	default:
		buffer_add_text(out, plain(text, value));
	}
}

void cell_for_people(struct buffer *out, const struct table *table, int row, int column)
{
	const struct table_cell *cell = table_get(table, row, column);
	const struct table_column *what = &table->columns[column];

	if (!cell->has_value) {
		buffer_add_text(out, "-");
		return;
	}
	switch (what->type) {
	case TABLE_TEXT:
		text_clean(out, cell->text, strlen(cell->text));
		return;
	case TABLE_BOOL:
		buffer_add_text(out, cell->b ? "yes" : "no");
		return;
	case TABLE_INT:
		if (what->unit == UNIT_NONE) /* a name in digits (step, pid), not an amount */
			buffer_printf(out, "%" PRId64, cell->i);
		else
			add_number(out, (double)cell->i, what->unit);
		return;
	case TABLE_DOUBLE:
		if (isfinite(cell->d))
			add_number(out, cell->d, what->unit);
		else
			buffer_add_text(out, isnan(cell->d) ? "NaN" : cell->d < 0 ? "-inf" : "inf");
		return;
	}
}

void cell_for_programs(struct buffer *out, const struct table *table, int row, int column)
{
	const struct table_cell *cell = table_get(table, row, column);

	if (!cell->has_value)
		return;
	switch (table->columns[column].type) {
	case TABLE_TEXT:
		buffer_add_text(out, cell->text);
		return;
	case TABLE_BOOL:
		buffer_add_text(out, cell->b ? "true" : "false");
		return;
	case TABLE_INT:
		buffer_printf(out, "%" PRId64, cell->i);
		return;
	case TABLE_DOUBLE:
		if (isfinite(cell->d))
			json_number(out, cell->d);
		else
			buffer_add_text(out, isnan(cell->d) ? "nan" : cell->d < 0 ? "-inf" : "inf");
		return;
	}
}

const char *column_reason(const struct table *table, int column)
{
	const char *candidate = NULL;
	int lead = 0;

	/* majority vote: one odd row (a rest, a total) must not speak for all */
	for (int row = 0; row < table->row_count; row++) {
		const struct table_cell *cell = table_get(table, row, column);
		bool is_same;

		if (cell->has_value || !cell->reason)
			continue;
		is_same = lead > 0 && !strcmp(candidate, cell->reason);
		candidate = lead > 0 ? candidate : cell->reason;
		lead += lead == 0 || is_same ? 1 : -1;
	}
	return candidate ? candidate : "not recorded";
}

bool column_is_missing(const struct table *table, int column)
{
	for (int row = 0; row < table->row_count; row++) {
		if (table_get(table, row, column)->has_value)
			return false;
	}
	return table->row_count > 0;
}
