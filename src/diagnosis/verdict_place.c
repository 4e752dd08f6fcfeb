/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_place.c: see verdict_place.h.
 */
#include "diagnosis/verdict_place.h"

#include "diagnosis/diagnosis.h"

#include <string.h>

static bool names_rank(const char *place, const struct table *ranks)
{
	int name = table_find_column(ranks, "process");

	for (int row = 0; row < ranks->row_count; row++)
		if (strstr(place, table_get(ranks, row, name)->text))
			return true;
	return false;
}

const char *verdict_rank_place(const struct table *findings, const char *verdict, const struct table *ranks)
{
	for (int row = 0; row < findings->row_count && verdict && ranks->row_count > 1; row++) { /* most first */
		const char *of = table_text(findings, row, FINDING_VERDICT);
		const char *place = table_text(findings, row, FINDING_PLACE);

		if (of && !strcmp(of, verdict))
			return place && names_rank(place, ranks) ? place : NULL;
	}
	return NULL;
}
