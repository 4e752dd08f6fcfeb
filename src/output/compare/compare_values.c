/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_values.c: cells of a comparison in readable form, for all its outputs.
 */
#include "base/units.h"
#include "output/compare/compare_outputs.h"

#include <math.h>

#define LEAST_SELF 0.001 /* smallest change of a share that is shown */
#define LEAST_TOTAL 0.01

const char *compare_text(const struct table *table, int row, int column)
{
	const char *text = table_text(table, row, column);

	return text ? text : "";
}

bool function_has_changed(const struct table *functions, int row)
{
	return fabs(table_get(functions, row, FUNCTIONS_SELF_CHANGE)->d) >= LEAST_SELF ||
	       fabs(table_get(functions, row, FUNCTIONS_TOTAL_CHANGE)->d) >= LEAST_TOTAL;
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
