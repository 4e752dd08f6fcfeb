/* SPDX-License-Identifier: Apache-2.0
 *
 * what_if_table.c: see what_if_table.h.
 */
#include "analysis/what_if/what_if_table.h"

#include "model/cell_words.h"
#include "replay/loading.h"

#include <math.h>

enum {
	WHAT_IF_CUT,
	WHAT_IF_PLACE,
	WHAT_IF_STEP,
	WHAT_IF_SAVING,
	WHAT_IF_RATIO,
	WHAT_IF_LOW,
	WHAT_IF_HIGH,
	WHAT_IF_CHOICE,
	WHAT_IF_BOUND,
	WHAT_IF_USUAL,
	WHAT_IF_AGAINST,
	WHAT_IF_WITHOUT,
	WHAT_IF_COLUMNS,
};

#define SAVING_OF "the mean step with it, without the profiler's own cost and waits for processors that others have"

static const struct table_column what_if_columns[WHAT_IF_COLUMNS] = {
	[WHAT_IF_CUT] = {.name = "cut",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "the cost that the replay leaves out"},
	[WHAT_IF_PLACE] = {.name = "place",
                           .type = TABLE_TEXT,
                           .role = ROLE_KEY,
                           .definition = "where, if the cut is only of one place"},
	[WHAT_IF_STEP] = {.name = "step_ns",
                          .title = "step",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_NS,
                          .definition = "the mean step without it",
                          .rules = RULE_NOT_NEGATIVE},
	[WHAT_IF_SAVING] = {.name = "saving_ns",
                            .title = "saves",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_NS,
                            .definition = "how much shorter the mean step is without it",
                            .rules = RULE_NOT_NEGATIVE},
	[WHAT_IF_RATIO] = {.name = "saving_ratio",
                           .title = "saves %",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_RATIO,
                           .role = ROLE_SHARE,
                           .definition = "the same as share of a step",
                           .denominator = SAVING_OF,
                           .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[WHAT_IF_LOW] = {.name = "saving_low_ratio",
                         .title = "from %",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_RATIO,
                         .role = ROLE_EVIDENCE,
                         .definition = "lower end of its interval",
                         .denominator = SAVING_OF,
                         .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[WHAT_IF_HIGH] = {.name = "saving_high_ratio",
                          .title = "to %",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_RATIO,
                          .role = ROLE_EVIDENCE,
                          .definition = "upper end of its interval",
                          .denominator = SAVING_OF,
                          .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[WHAT_IF_CHOICE] = {.name = "is_choice",
                            .title = "choice",
                            .type = TABLE_BOOL,
                            .role = ROLE_EVIDENCE,
                            .definition = "removing it changes results or memory, so it is no waste"},
	[WHAT_IF_BOUND] = {.name = "is_bound",
                           .title = "at most",
                           .type = TABLE_BOOL,
                           .role = ROLE_EVIDENCE,
                           .definition = "it is part of the model, so the saving is an upper bound"},
	[WHAT_IF_USUAL] =
		{.name = "usual_error_ratio",
                 .title = "usual lags",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_EVIDENCE,
                 .definition = "row 'nothing removed': difference of the step with usual lags on all edges to the "
                               "measured step. It shows whether the graph explains the time",
                 .denominator = "the measured step"},
	[WHAT_IF_AGAINST] =
		{.name = "against_order_ratio",
                 .title = "against the order",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_EVIDENCE,
                 .definition = "row 'nothing removed': edges that end before what they wait for: clocks or ids are "
                               "wrong",
                 .denominator = "all edges",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[WHAT_IF_WITHOUT] = {.name = "without",
                             .type = TABLE_TEXT,
                             .role = ROLE_EVIDENCE,
                             .definition = "what is removed"},
};

#define ONLY_BASELINE "only of the row 'nothing removed'"

/* What is removed from all replays. */
static const char *without_in_all(const struct what_if *what_if)
{
	bool is_quiet = what_if->is_quiet && what_if->cuts[CUT_PROCESSORS].is_there;

	if (what_if->has_profiler)
		return "the profiler's own cost";
	if (!what_if->has_cost)
		return is_quiet ? "waits for processors that others have" : "nothing";
	return is_quiet ? "the recorder's own cost, and waits for processors that others have"
	                : "the recorder's own cost";
}

static void add_baseline(struct table *table, const struct what_if *what_if)
{
	int row = table_row(table);

	table_set_text(table, row, WHAT_IF_CUT, CELL_CUT_NOTHING);
	table_set_missing(table, row, WHAT_IF_PLACE, "nothing is removed");
	table_set_double(table, row, WHAT_IF_STEP, what_if->step_ns);
	for (int column = WHAT_IF_SAVING; column <= WHAT_IF_BOUND; column++)
		table_set_missing(table, row, column, "nothing is removed");
	table_set_double(table, row, WHAT_IF_USUAL, what_if->usual_ratio);
	table_set_double(table, row, WHAT_IF_AGAINST, what_if->against_ratio);
	table_set_text(table, row, WHAT_IF_WITHOUT, without_in_all(what_if));
}

static void set_numbers(struct table *table, int row, const struct what_if_cut *cut)
{
	table_set_double(table, row, WHAT_IF_STEP, cut->step_ns);
	table_set_double(table, row, WHAT_IF_SAVING, cut->saving_ns);
	table_set_double(table, row, WHAT_IF_RATIO, cut->saving_ratio);
	table_set_double(table, row, WHAT_IF_LOW, cut->low_ratio);
	table_set_double(table, row, WHAT_IF_HIGH, cut->high_ratio);
	table_set_missing(table, row, WHAT_IF_USUAL, ONLY_BASELINE);
	table_set_missing(table, row, WHAT_IF_AGAINST, ONLY_BASELINE);
}

/* Returns the next cut after `last` in the order of savings, the largest first; CUT_COUNT: it was the last. */
static enum replay_cut next_cut(const struct what_if *what_if, enum replay_cut last)
{
	enum replay_cut found = CUT_COUNT;

	for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++) {
		double saving_ns = what_if->cuts[cut].saving_ns;
		double last_ns = last < CUT_COUNT ? what_if->cuts[last].saving_ns : INFINITY;

		if (!what_if->cuts[cut].is_there || saving_ns > last_ns || (saving_ns == last_ns && cut <= last))
			continue;
		if (found == CUT_COUNT || saving_ns > what_if->cuts[found].saving_ns)
			found = cut;
	}
	return found;
}

/* "with 4 workers in place of 2" of the rank with most. */
static const char *without_workers(struct table *table, const struct what_if *what_if)
{
	const struct replay_loading *most = NULL;

	for (uint32_t rank = 0; rank < what_if->ranks; rank++) {
		const struct replay_loading *loading = what_if_graph(what_if, rank)->loading;

		if (loading && (!most || loading->enough > most->enough))
			most = loading;
	}
	if (!most || most->enough == most->loader.workers)
		return "with more workers";
	return arena_printf(&table->arena, "with %u workers in place of %u", most->enough, most->loader.workers);
}

void what_if_table_add_cuts(struct table *table, const struct what_if *what_if)
{
	enum replay_cut number = what_if->problem ? CUT_COUNT : next_cut(what_if, CUT_COUNT);

	for (; number < CUT_COUNT; number = next_cut(what_if, number)) {
		const struct cut_kind *kind = &replay_cuts[number];
		int row = table_row(table);

		table_set_text(table, row, WHAT_IF_CUT, kind->name);
		table_set_text_or(table, row, WHAT_IF_PLACE, kind->place, "everywhere");
		set_numbers(table, row, &what_if->cuts[number]);
		table_set_bool(table, row, WHAT_IF_CHOICE, kind->is_choice);
		table_set_bool(table, row, WHAT_IF_BOUND, kind->is_bound);
		table_set_text(table, row, WHAT_IF_WITHOUT,
		               number == CUT_WORKERS ? without_workers(table, what_if) : kind->without);
	}
}

void what_if_table_add_together(struct table *table, const char *cut, const struct what_if_cut *saving)
{
	int row = table_row(table);

	table_set_text(table, row, WHAT_IF_CUT, cut);
	table_set_missing(table, row, WHAT_IF_PLACE, "several cuts");
	set_numbers(table, row, saving);
	table_set_missing(table, row, WHAT_IF_CHOICE, "several cuts");
	table_set_missing(table, row, WHAT_IF_BOUND, "several cuts");
	table_set_text(table, row, WHAT_IF_WITHOUT, "all of them at once");
}

void what_if_table_init(struct table *table, const struct what_if *what_if)
{
	table_init(table, "what_if", "A step without each cost",
	           "the mean step of a replay that leaves a cost out, and what that saves");
	table_columns(table, what_if_columns, WHAT_IF_COLUMNS);
	if (what_if->problem)
		table->empty = what_if->problem;
	else
		add_baseline(table, what_if);
}
