/* SPDX-License-Identifier: Apache-2.0
 *
 * finding_cut.c: see finding_cut.h.
 */
#include "diagnosis/finding_cut.h"

#define PROBLEM_RATIO 0.05 /* of a step: a cut that saves less is a hint */

static const char *text_called(const struct table *table, int row, const char *name)
{
	int column = table_find_column(table, name);

	return column >= 0 && table->columns[column].type == TABLE_TEXT ? table_text(table, row, column) : NULL;
}

enum replay_cut finding_cut_called(const struct diagnosis *diagnosis, const struct table *rows, int row)
{
	const char *name = text_called(rows, row, "cut");

	return name && diagnosis->what_if ? replay_cut_find(name, text_called(rows, row, "cut_place")) : CUT_COUNT;
}

void finding_cut_set(struct diagnosis *diagnosis, int row, enum replay_cut number)
{
	const struct what_if_cut *cut = &diagnosis->what_if->cuts[number];
	struct table *findings = &diagnosis->findings;

	table_set_text(findings, row, FINDING_CUT, replay_cuts[number].name);
	table_set_text_or(findings, row, FINDING_CUT_PLACE, replay_cuts[number].place, "everywhere");
	table_set_double(findings, row, FINDING_SAVING, cut->saving_ns);
	table_set_double(findings, row, FINDING_RATIO, cut->saving_ratio);
	table_set_double(findings, row, FINDING_LOW, cut->low_ratio);
	table_set_double(findings, row, FINDING_HIGH, cut->high_ratio);
	if (cut->saving_ratio < PROBLEM_RATIO)
		table_set_text(findings, row, FINDING_SEVERITY, rule_severity_name(RULE_HINT));
}

enum replay_cut finding_cut_of(const struct table *findings, int row)
{
	const char *name = table_text(findings, row, FINDING_CUT);

	return name ? replay_cut_find(name, table_text(findings, row, FINDING_CUT_PLACE)) : CUT_COUNT;
}

double finding_cut_confidence(const struct table *findings, int row)
{
	double low, ratio;

	if (!table_number(findings, row, FINDING_LOW, &low) || !table_number(findings, row, FINDING_RATIO, &ratio))
		return 0.5;
	return low > 0.5 * ratio ? 0.9 : 0.6;
}

void finding_cut_set_none(struct table *findings, int row, const char *reason)
{
	for (int column = FINDING_CUT; column <= FINDING_HIGH; column++)
		table_set_missing(findings, row, column, reason);
}
