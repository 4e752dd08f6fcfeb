/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_values.c: cells of a comparison as people read them, for all its outputs.
 */
#include "output/compare_outputs.h"

const char *compare_text(const struct table *table, int row, int column)
{
	const char *text = table_text(table, row, column);

	return text ? text : "";
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
