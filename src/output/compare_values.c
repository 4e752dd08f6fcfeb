/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_values.c: cells of a comparison as people read them, for all its outputs.
 */
#include "output/compare_outputs.h"

#include "base/units.h"

const char *compare_text(const struct table *table, int row, int column)
{
	const char *text = table_text(table, row, column);

	return text ? text : "";
}

void change_for_people(struct buffer *out, const struct table *metrics, int row)
{
	char text[UNITS_BYTES], to[UNITS_BYTES];
	double ratio, low, high;

	if (!table_number(metrics, row, METRIC_RATIO, &ratio)) {
		buffer_add_text(out, "-");
		return;
	}
	buffer_add_text(out, units_change(text, ratio));
	if (table_number(metrics, row, METRIC_LOW, &low) && table_number(metrics, row, METRIC_HIGH, &high))
		buffer_printf(out, " (%s to %s)", units_change(text, low), units_change(to, high));
}
