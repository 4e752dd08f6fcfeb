/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_verdict.c: the table `verdict`: one row. compare/verdict.h decides its content,
 * compare/verdict_sentences.h puts it into words.
 */
#include "compare/verdict_sentences.h"

static const struct table_column columns[COMPARISON_COLUMNS] = {
	[COMPARISON_RESULT] =
		{.name = "result",
                 .type = TABLE_TEXT,
                 .definition = "regression, improvement, no difference, inconclusive, not comparable or not "
                               "measured: the result of the first metric, or of a mean that is a regression while "
                               "the first metric is not"},
	[COMPARISON_SENTENCE] = {.name = "sentence", .type = TABLE_TEXT, .definition = "the answer in words"},
	[COMPARISON_METRIC] = {.name = "metric",
                               .type = TABLE_TEXT,
                               .definition = "the metric that decides the verdict"},
	[COMPARISON_RATIO] = {.name = "change_ratio",
                              .title = "change",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_RATIO,
                              .role = ROLE_SHARE,
                              .denominator = "the base",
                              .definition = "change of this metric"},
	[COMPARISON_LOW] = {.name = "ci95_low_ratio",
                            .title = "low",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_RATIO,
                            .role = ROLE_SHARE,
                            .denominator = "the base",
                            .definition = "lower end of the 95 % interval of the change"},
	[COMPARISON_HIGH] = {.name = "ci95_high_ratio",
                             .title = "high",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_RATIO,
                             .role = ROLE_SHARE,
                             .denominator = "the base",
                             .definition = "upper end of the 95 % interval of the change"},
	[COMPARISON_IS_COMPARABLE] = {.name = "is_comparable",
                                      .title = "comparable",
                                      .type = TABLE_BOOL,
                                      .definition = "whether hardware, software and the work per step are the same, "
                                                    "as far as both sides recorded them"},
	[COMPARISON_EXPLANATION] = {.name = "explanation",
                                    .type = TABLE_TEXT,
                                    .definition = "the differing facts that explain the change"},
	[COMPARISON_BY_CUT] = {.name = "by_cut",
                               .type = TABLE_TEXT,
                               .definition = "the largest parts of `explained_by`, and the rest that no cut explains"},
	[COMPARISON_PROMISED] = {.name = "promised",
                                 .type = TABLE_TEXT,
                                 .definition = "savings that the base promised, of costs that the new side no longer "
                                               "has, and what came of them"},
	[COMPARISON_UNEXPLAINED] = {.name = "unexplained_ns",
                                    .title = "unexplained",
                                    .type = TABLE_DOUBLE,
                                    .unit = UNIT_NS,
                                    .definition = "part of the difference of the replayed steps that no cut explains"},
	[COMPARISON_CAUSE] = {.name = "cause",
                              .type = TABLE_TEXT,
                              .definition = "the largest contributions to the difference"},
	[COMPARISON_NEEDED] = {.name = "needed",
                               .type = TABLE_TEXT,
                               .definition = "runs or data that would settle an "
                                             "inconclusive result"},
	[COMPARISON_DAMAGE] = {.name = "damage",
                               .type = TABLE_TEXT,
                               .definition = "data missing from the inputs, which may look like a difference"},
	[COMPARISON_WORK] = {.name = "work",
                             .type = TABLE_TEXT,
                             .definition = "reason that the work per step cannot be compared"},
	[COMPARISON_UNCHECKED] = {.name = "unchecked",
                                  .type = TABLE_TEXT,
                                  .definition = "work, hardware, software or definition of a step that could not be "
                                                "compared, because only one side records it"},
	[COMPARISON_NOISE] = {.name = "noise",
                              .type = TABLE_TEXT,
                              .definition = "noise from run to run, and its source"},
	[COMPARISON_METHOD] = {.name = "method", .type = TABLE_TEXT, .definition = "method that computed the interval"},
	[COMPARISON_BASE_RUNS] = {.name = "base_runs",
                                  .type = TABLE_INT,
                                  .unit = UNIT_COUNT,
                                  .definition = "runs of the base"},
	[COMPARISON_NEW_RUNS] = {.name = "new_runs",
                                 .type = TABLE_INT,
                                 .unit = UNIT_COUNT,
                                 .definition = "runs of the new side"},
	[COMPARISON_SMALLEST] = {.name = "smallest_ratio",
                                 .title = "smallest",
                                 .type = TABLE_DOUBLE,
                                 .unit = UNIT_RATIO,
                                 .role = ROLE_SHARE,
                                 .denominator = "the base",
                                 .definition = "changes below this limit count as no difference"},
	[COMPARISON_TOLERANCE] =
		{.name = "tolerance_ratio",
                 .title = "tolerance",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .denominator = "the base",
                 .definition = "size of the change that must be ruled out for the result 'no difference'"},
};

static void verdict_set_number(struct table *table, int column, bool has_value, double value, const char *reason)
{
	if (has_value)
		table_set_double(table, 0, column, value);
	else
		table_set_missing(table, 0, column, reason);
}

static void verdict_set_change(struct table *table, const struct comparison *comparison)
{
	const struct metric_result *about = &comparison->metric_results[comparison->decided.row];
	const char *reason = table_text(&comparison->metrics, comparison->decided.row, METRIC_REASON);

	verdict_set_number(table, COMPARISON_RATIO, about->has_ratio, about->ratio, reason);
	verdict_set_number(table, COMPARISON_LOW, about->has_interval, about->low, reason);
	verdict_set_number(table, COMPARISON_HIGH, about->has_interval, about->high, reason);
}

static void verdict_set_cuts(struct table *table, const struct verdict_words *words)
{
	const struct comparison_cuts *cuts = &words->comparison->cuts;

	table_set_text_or(table, 0, COMPARISON_BY_CUT, verdict_by_cut_text(words),
	                  cuts->reason ? cuts->reason : "the difference of the replayed steps is too small");
	table_set_text_or(table, 0, COMPARISON_PROMISED, verdict_promised_text(words),
	                  cuts->reason ? cuts->reason : "no cost of the base is gone");
	verdict_set_number(table, COMPARISON_UNEXPLAINED, !cuts->reason, cuts->unexplained_ns, cuts->reason);
}

/* Sets the cells about the basis of the answer. */
static void verdict_set_grounds(struct table *table, const struct verdict_words *words)
{
	const char *not_measured = "the first metric was not measured";

	table_set_text_or(table, 0, COMPARISON_WORK, verdict_work_text(words),
	                  "both sides record the work per step, or there are no operators to check");
	table_set_text_or(table, 0, COMPARISON_UNCHECKED, verdict_unchecked_text(words),
	                  "both sides record the same kinds of facts");
	table_set_text_or(table, 0, COMPARISON_NOISE, verdict_noise_text(words), not_measured);
	table_set_text_or(table, 0, COMPARISON_METHOD, verdict_method_text(words), not_measured);
}

void comparison_add_verdict(struct comparison *comparison, struct compared_sides *sides)
{
	struct table *table = &comparison->verdict;
	const struct verdict *decided = &comparison->decided;
	const struct verdict_words words = {comparison, sides, decided, &table->arena};

	table_init(table, "verdict", "Verdict", "whether the new side is slower, and how certain the result is");
	table_columns(table, columns, COMPARISON_COLUMNS);
	table_row(table);
	comparison->decided = verdict_decide(comparison, sides);
	comparison->decided.cause = verdict_find_cause(comparison, sides);
	table_set_text(table, 0, COMPARISON_RESULT, compare_result_name(decided->result));
	table_set_text(table, 0, COMPARISON_SENTENCE, verdict_sentence(&words));
	table_set_text(table, 0, COMPARISON_METRIC, compare_metric_name(decided->metric));
	verdict_set_change(table, comparison);
	table_set_bool(table, 0, COMPARISON_IS_COMPARABLE, sides->work.is_comparable);
	table_set_text_or(table, 0, COMPARISON_EXPLANATION, verdict_explanation_text(&words),
	                  "no fact recorded on both sides explains the change");
	verdict_set_cuts(table, &words);
	table_set_text_or(table, 0, COMPARISON_CAUSE, verdict_cause_text(&words), "nothing stands out");
	table_set_text_or(table, 0, COMPARISON_NEEDED, verdict_needed_text(&words), verdict_not_needed_text(&words));
	table_set_text_or(table, 0, COMPARISON_DAMAGE, verdict_damage_text(&words), "the inputs are whole");
	verdict_set_grounds(table, &words);
	table_set_int(table, 0, COMPARISON_BASE_RUNS, (int64_t)sides->count[SIDE_BASE]);
	table_set_int(table, 0, COMPARISON_NEW_RUNS, (int64_t)sides->count[SIDE_NEW]);
	table_set_double(table, 0, COMPARISON_SMALLEST, sides->options->smallest);
	table_set_double(table, 0, COMPARISON_TOLERANCE, sides->options->tolerance);
	comparison->failure = verdict_failure_text(&words);
	comparison->diverged = NULL;
	if (decided->diverged.count)
		comparison->diverged = arena_dup(&table->arena, sides->runs[SIDE_NEW][decided->diverged.first].name);
}
