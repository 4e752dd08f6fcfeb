/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict.c: one word for the run, from the shares of a step that findings would save. A run is bound by what takes a fifth
 * of its steps; where two things take about as much it is mixed; without steps nothing is known.
 */
#include "diagnosis/diagnosis.h"

#include "base/units.h"

#include <string.h>

#define BOUND_SHARE 0.20 /* guide 001's engine: waiting for data above 20 % is the cause */
#define MIXED_PART 0.75  /* the second takes at least this part of the first */
#define COMPUTE_SHARE 0.50
#define VERDICTS 16

static const struct table_column columns[VERDICT_COLUMNS] = {
	[VERDICT_VERDICT] =
		{.name = "verdict",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "data-bound, host-bound, communication-bound, ..., mixed, healthy or unknown"},
	[VERDICT_RATIO] = {.name = "ratio",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_RATIO,
                           .role = ROLE_SHARE,
                           .definition = "what its cause takes of a step",
                           .denominator = "the mean step",
                           .rules = RULE_NOT_NEGATIVE},
	[VERDICT_MARGIN] = {.name = "margin_ratio",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_RATIO,
                            .role = ROLE_EVIDENCE,
                            .definition = "how far that is from another verdict"},
	[VERDICT_SENTENCE] = {.name = "sentence", .type = TABLE_TEXT, .definition = "the same in words"},
};

struct share {
	const char *verdict;
	double ratio;
};

struct shares {
	struct share of[VERDICTS];
	int count;
};

static void add_share(struct shares *shares, const char *verdict, double ratio)
{
	int i = 0;

	while (i < shares->count && strcmp(shares->of[i].verdict, verdict) != 0)
		i++;
	if (i == VERDICTS)
		return;
	if (i == shares->count)
		shares->of[shares->count++] = (struct share){verdict, 0};
	shares->of[i].ratio += ratio;
}

static struct shares collect(const struct table *findings)
{
	struct shares shares = {.count = 0};
	double ratio;

	for (int row = 0; row < findings->row_count; row++) {
		const struct table_cell *verdict = table_get(findings, row, FINDING_VERDICT);

		if (verdict->has_value && table_number(findings, row, FINDING_RATIO, &ratio))
			add_share(&shares, verdict->text, ratio);
	}
	return shares;
}

/* The largest two, {NULL, 0} where there are none. */
static void find_largest(const struct shares *shares, struct share *first, struct share *second)
{
	*first = *second = (struct share){0};
	for (int i = 0; i < shares->count; i++) {
		struct share share = shares->of[i];

		if (share.ratio > first->ratio) {
			*second = *first;
			*first = share;
		} else if (share.ratio > second->ratio) {
			*second = share;
		}
	}
}

/* How many rules about time could tell, and how many could not. */
static void count_checks(const struct table *checks, const struct rule_set *rules, int *told, int *silent)
{
	*told = *silent = 0;
	for (int row = 0; row < checks->row_count; row++) { /* in the order of the rules */
		bool can_tell = strcmp(table_get(checks, row, CHECK_RESULT)->text, CHECK_CANNOT_TELL) != 0;

		if (rules->rules[row].verdict)
			*(can_tell ? told : silent) += 1;
	}
}

static void decide(struct table *table, const char *verdict, double ratio, double margin, const char *sentence)
{
	int row = table_row(table);

	table_set_text(table, row, VERDICT_VERDICT, verdict);
	table_set_double(table, row, VERDICT_RATIO, ratio);
	table_set_double(table, row, VERDICT_MARGIN, margin);
	table_set_text(table, row, VERDICT_SENTENCE, sentence);
}

static void decide_unknown(struct table *table, const char *why)
{
	int row = table_row(table);

	table_set_text(table, row, VERDICT_VERDICT, "unknown");
	table_set_missing(table, row, VERDICT_RATIO, why);
	table_set_missing(table, row, VERDICT_MARGIN, why);
	table_set_text(table, row, VERDICT_SENTENCE, why);
}

static bool has_problem(const struct table *findings)
{
	for (int row = 0; row < findings->row_count; row++) {
		if (!strcmp(table_get(findings, row, FINDING_SEVERITY)->text, "problem"))
			return true;
	}
	return false;
}

/* Share of a step in forward, backward and optimizer; 0 where phases are not known. */
static double compute_share(struct report *report)
{
	static const char *const names[] = {"forward", "backward", "optimizer"};
	const struct table *phases = report_table(report, "phases");
	int name = table_find_column(phases, "name"), ratio = table_find_column(phases, "ratio");
	double sum = 0, share;

	for (int row = 0; row < phases->row_count; row++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			if (!strcmp(table_get(phases, row, name)->text, names[i]) &&
			    table_number(phases, row, ratio, &share))
				sum += share;
		}
	}
	return sum;
}

/* No single thing takes much of a step. */
static void decide_unbound(struct diagnosis *diagnosis, struct report *report, const struct share *first, int told,
                           int silent)
{
	struct table *table = &diagnosis->verdict;
	double margin = BOUND_SHARE - first->ratio, compute = compute_share(report);
	char a[UNITS_BYTES], b[UNITS_BYTES];
	const char *most = first->verdict
	                           ? arena_printf(&table->arena, "no cause takes a fifth of a step; the most is %s, %s",
	                                          units_ratio(a, first->ratio), first->verdict)
	                           : "no rule found time to save";

	if (silent)
		most = arena_printf(&table->arena, "%s; %d of the causes could not be looked for", most, silent);
	if (silent > told)
		decide_unknown(table,
		               arena_printf(&table->arena, "no cause was found, but %d of %d could not be looked for",
		                            silent, silent + told));
	else if (!has_problem(&diagnosis->findings))
		decide(table, "healthy", first->ratio, margin, most);
	else if (compute >= COMPUTE_SHARE)
		decide(table, "compute-bound", compute, margin,
		       arena_printf(&table->arena, "forward, backward and optimizer take %s of a step; %s",
		                    units_ratio(b, compute), most));
	else
		decide(table, "mixed", first->ratio, margin, most);
}

static void decide_by_shares(struct diagnosis *diagnosis, struct report *report, const struct shares *shares, int told,
                             int silent)
{
	struct table *table = &diagnosis->verdict;
	struct share first, second;
	char a[UNITS_BYTES], b[UNITS_BYTES];

	find_largest(shares, &first, &second);
	if (first.ratio < BOUND_SHARE) {
		decide_unbound(diagnosis, report, &first, told, silent);
		return;
	}
	if (second.ratio >= BOUND_SHARE && second.ratio >= MIXED_PART * first.ratio) {
		decide(table, "mixed", first.ratio, second.ratio - MIXED_PART * first.ratio,
		       arena_printf(&table->arena, "%s (%s of a step) and %s (%s)", first.verdict,
		                    units_ratio(a, first.ratio), second.verdict, units_ratio(b, second.ratio)));
		return;
	}
	decide(table, first.verdict, first.ratio,
	       first.ratio - (second.ratio > BOUND_SHARE ? second.ratio : BOUND_SHARE),
	       arena_printf(&table->arena, "%s of a step%s%s%s%s", units_ratio(a, first.ratio),
	                    second.verdict ? "; next " : "", second.verdict ? second.verdict : "",
	                    second.verdict ? " " : "", second.verdict ? units_ratio(b, second.ratio) : ""));
}

void diagnosis_decide(struct diagnosis *diagnosis, struct report *report, const struct rule_set *rules)
{
	const struct table *times = report_table(report, "step_time");
	const struct shares shares = collect(&diagnosis->findings);
	int told, silent;
	double mean_ns;

	table_columns(&diagnosis->verdict, columns, VERDICT_COLUMNS);
	count_checks(&diagnosis->checks, rules, &told, &silent);
	if (!times->row_count || !table_number(times, 0, table_find_column(times, "mean_ns"), &mean_ns))
		decide_unknown(&diagnosis->verdict, times->empty ? times->empty : "no complete step was recorded");
	else if (!told)
		decide_unknown(&diagnosis->verdict, "no rule about time could tell");
	else
		decide_by_shares(diagnosis, report, &shares, told, silent);
}
