/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_values.c: cells of a comparison as people read them, for all its outputs.
 */
#include "output/compare_outputs.h"

#include "base/units.h"

#include <string.h>

const char *compare_text(const struct table *table, int row, int column)
{
	const struct table_cell *cell = table_get(table, row, column);

	return cell->has_value ? cell->text : "";
}

void metric_for_people(struct buffer *out, const struct table *metrics, int row, int column)
{
	const char *unit = compare_text(metrics, row, METRIC_UNIT);
	char text[UNITS_BYTES];
	double value;

	if (!table_number(metrics, row, column, &value))
		buffer_add_text(out, "-");
	else if (!strcmp(unit, "ns"))
		buffer_add_text(out, units_time(text, value));
	else if (!strcmp(unit, "bytes"))
		buffer_add_text(out, units_bytes(text, value));
	else if (!strcmp(unit, "ratio"))
		buffer_add_text(out, units_ratio(text, value));
	else
		buffer_add_text(out, units_count(text, value));
}

void change_for_people(struct buffer *out, const struct table *metrics, int row)
{
	double ratio, low, high;

	if (!table_number(metrics, row, METRIC_RATIO, &ratio)) {
		buffer_add_text(out, "-");
		return;
	}
	buffer_printf(out, "%+.1f %%", ratio * 100);
	if (table_number(metrics, row, METRIC_LOW, &low) && table_number(metrics, row, METRIC_HIGH, &high))
		buffer_printf(out, " (%+.1f to %+.1f)", low * 100, high * 100);
}
