/* SPDX-License-Identifier: Apache-2.0
 *
 * history_read.c: finds runs in the history and returns their data as tables.
 */
#include "store/database.h"
#include "store/kept_run.h"
#include "store/key_numbers.h"

#include <stdlib.h>
#include <string.h>

/* ---- finding ---- */

#define RUN_COLUMNS "SELECT runs.run, runs.series, runs.name, path, identity, added FROM runs "
#define IN_SERIES "(?1 IS NULL OR runs.series = ?1) "

/* In the order in which history_find() tries them. ?1 is the series, ?2 the word. */
static const char by_number[] = RUN_COLUMNS "WHERE " IN_SERIES "AND runs.run = ?2";
static const char by_baseline[] = RUN_COLUMNS "JOIN baselines USING(run) WHERE " IN_SERIES
					      "AND baselines.name = ?2 ORDER BY runs.run DESC LIMIT 2";
static const char by_name[] = RUN_COLUMNS "WHERE " IN_SERIES "AND runs.name = ?2 ORDER BY runs.run DESC LIMIT 1";
static const char by_age[] = RUN_COLUMNS "WHERE " IN_SERIES "ORDER BY runs.run DESC";
static const char by_speed[] = RUN_COLUMNS
	"LEFT JOIN numbers AS rate ON rate.run = runs.run AND rate.key = 'tokens_per_s' "
	"LEFT JOIN numbers AS median ON median.run = runs.run AND median.key = 'step_time_p50_ns' "
	"WHERE " IN_SERIES "AND coalesce(rate.value, median.value) IS NOT NULL "
	"ORDER BY rate.value DESC NULLS LAST, median.value, runs.run DESC";

static struct history_run run_of(struct history *history, sqlite3_stmt *statement)
{
	return (struct history_run){
		.run = sqlite3_column_int64(statement, 0),
		.series = database_text(history, statement, 1),
		.name = database_text(history, statement, 2),
		.path = database_text(history, statement, 3),
		.identity = database_text(history, statement, 4),
		.added = database_text(history, statement, 5),
	};
}

bool history_is_excepted(const char *identity, const struct history_except *except)
{
	for (int i = 0; except && i < except->count; i++) {
		if (!strcmp(except->identities[i], identity))
			return true;
	}
	return false;
}

/* Finds the first run of an ordered list after skipping wanted->skip others; count is 0 if there is none. */
static enum status pick(struct history *history, const char *sql, const struct history_wanted *wanted,
                        struct history_run *found, int *count, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err, sql, "t", wanted->series);
	int skip = wanted->skip;

	*count = 0;
	while (!*count && database_step(history, &statement, &status, err)) {
		const char *identity = column_text(statement, 4);

		if (history_is_excepted(identity ? identity : "", wanted->except) || skip-- > 0)
			continue;
		*found = run_of(history, statement);
		*count = 1;
	}
	sqlite3_finalize(statement);
	return status;
}

/* Counts the matching runs and returns the first. Two matches are enough to know that the word is ambiguous. */
static enum status search(struct history *history, const char *sql, const struct history_wanted *wanted,
                          struct history_run *found, int *count, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err, sql, "tt", wanted->series, wanted->word);

	*count = 0;
	while (database_step(history, &statement, &status, err)) {
		if (!(*count)++)
			*found = run_of(history, statement);
	}
	return status;
}

static bool history_read_is_number(const char *word)
{
	return word[0] && strspn(word, "0123456789") == strlen(word);
}

static enum status not_found(const struct history *history, const struct history_wanted *wanted, struct error *err)
{
	const char *series = wanted->series;

	error_set(err, STATUS_INPUT, "there is no run '%s' in the history '%s'%s%s%s", wanted->word, history->path,
	          series ? " in the series '" : "", series ? series : "", series ? "'" : "");
	error_hint(err, "'stepscope history list' shows the number, name and baselines of each run");
	return STATUS_INPUT;
}

/* Reports that `last` or `best` found no run: the excepted runs may be the only ones of the series. */
static enum status no_other(struct history *history, const struct history_wanted *wanted, struct error *err)
{
	const struct history_wanted any = {.word = wanted->word, .series = wanted->series};
	struct history_run kept;
	int count;
	enum status status = pick(history, by_age, &any, &kept, &count, err);

	if (status)
		return status;
	if (!count || wanted->skip)
		return not_found(history, wanted, err);
	error_set(err, STATUS_INPUT, "the history '%s' has no other run of the series '%s' than the compared run",
	          history->path, kept.series);
	error_hint(err, "first add the runs to compare with: 'stepscope history add RUN...'");
	return STATUS_INPUT;
}

static enum status ambiguous(const char *word, struct error *err)
{
	error_set(err, STATUS_INPUT, "several series have a baseline '%s'", word);
	error_hint(err, "select one with --series");
	return STATUS_INPUT;
}

enum status history_find(struct history *history, const struct history_wanted *wanted, struct history_run *found,
                         struct error *err)
{
	bool is_last = !strcmp(wanted->word, "last"), is_best = !strcmp(wanted->word, "best");
	int count = 0;
	enum status status = STATUS_OK;

	if (is_last || is_best) {
		status = pick(history, is_last ? by_age : by_speed, wanted, found, &count, err);
		if (!status && !count && is_best) {
			status = pick(history, by_age, wanted, found, &count, err);
			found->has_no_speed = count;
		}
		return status || count ? status : no_other(history, wanted, err);
	}
	if (history_read_is_number(wanted->word))
		status = search(history, by_number, wanted, found, &count, err);
	if (!status && !count)
		status = search(history, by_baseline, wanted, found, &count, err);
	if (!status && count > 1)
		return ambiguous(wanted->word, err);
	if (!status && !count)
		status = search(history, by_name, wanted, found, &count, err);
	return status || count ? status : not_found(history, wanted, err);
}

/* ---- lists ---- */

enum {
	LIST_RUN,
	LIST_SERIES,
	LIST_NAME,
	LIST_BASELINE,
	LIST_ADDED,
	LIST_CREATED,
	LIST_PATH,
	LIST_COLUMNS /* the key numbers follow */
};

static const struct table_column list_columns[LIST_COLUMNS] = {
	[LIST_RUN] = {.name = "run",
                      .type = TABLE_INT,
                      .role = ROLE_KEY,
                      .definition = "number of the run in the history"},
	[LIST_SERIES] = {.name = "series",
                         .type = TABLE_TEXT,
                         .definition = "series of runs that are compared with each other"},
	[LIST_NAME] = {.name = "name", .type = TABLE_TEXT, .definition = "name of the run"},
	[LIST_BASELINE] = {.name = "baseline",
                           .type = TABLE_TEXT,
                           .definition = "names of the series' baselines that select this run"},
	[LIST_ADDED] = {.name = "added", .type = TABLE_TEXT, .definition = "when it was added to the history, UTC"},
	[LIST_CREATED] = {.name = "created",
                          .title = "started",
                          .type = TABLE_TEXT,
                          .definition = "wall clock time at the start of the recording, UTC",
                          .is_hidden = true},
	[LIST_PATH] = {.name = "path",
                       .type = TABLE_TEXT,
                       .definition = "path from which it was read",
                       .is_hidden = true},
};

static const char
	list_sql[] = "SELECT run, series, name, "
		     "(SELECT group_concat(baselines.name, ', ') FROM baselines WHERE baselines.run = runs.run), "
		     "added, created, path FROM runs WHERE (?1 IS NULL OR series = ?1) AND (?2 = 0 OR run = ?2) "
		     "ORDER BY run DESC LIMIT ?3";

static const char *const missing_texts[LIST_COLUMNS] = {
	[LIST_BASELINE] = "no baseline is set",
	[LIST_CREATED] = "the recording has no wall clock",
};

static enum status add_numbers(struct history *history, struct table *runs, int row, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err,
	                                      "SELECT key, value, reason FROM numbers WHERE run = ?", "i",
	                                      table_get(runs, row, LIST_RUN)->i);

	for (int column = LIST_COLUMNS; column < runs->column_count; column++)
		table_set_missing(runs, row, column,
		                  "the stepscope version that added the run did not keep this number");
	while (database_step(history, &statement, &status, err)) {
		const char *key = column_text(statement, 0);
		const char *reason = column_text(statement, 2);
		int column = key ? table_find_column(runs, key) : -1;

		if (!database_has_numbers(history, statement, 1, 1, &status, err) || column < LIST_COLUMNS)
			continue;
		if (sqlite3_column_type(statement, 1) != SQLITE_NULL)
			table_set_double(runs, row, column, sqlite3_column_double(statement, 1));
		else
			table_set_missing(runs, row, column, reason ? reason : "not recorded");
	}
	return status;
}

static enum status history_read_add_run(struct history *history, struct table *runs, sqlite3_stmt *statement,
                                        struct error *err)
{
	int row = table_row(runs);

	table_set_int(runs, row, LIST_RUN, sqlite3_column_int64(statement, LIST_RUN));
	for (int column = LIST_RUN + 1; column < LIST_COLUMNS; column++)
		table_set_text_or(runs, row, column, column_text(statement, column), missing_texts[column]);
	return add_numbers(history, runs, row, err);
}

enum status history_list(struct history *history, const char *series, int64_t run, int64_t limit, struct table *runs,
                         struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err, list_sql, "tii", series, run,
	                                      limit > 0 ? limit : (int64_t)-1);

	table_init(runs, "history", "Run history", "runs of the history, newest first");
	table_columns(runs, list_columns, LIST_COLUMNS);
	key_numbers_columns(runs);
	while (database_step(history, &statement, &status, err))
		status = history_read_add_run(history, runs, statement, err);
	if (!runs->row_count)
		runs->empty = series ? "the series has no runs" : "the history has no runs";
	return status;
}

enum status history_baselines(struct history *history, const char *series, struct table *baselines, struct error *err)
{
	static const struct table_column columns[] = {
		{.name = "baseline", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name of the baseline"},
		{.name = "series", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "series of the baseline"},
		{.name = "run", .type = TABLE_INT, .definition = "number of its run"},
		{.name = "name", .type = TABLE_TEXT, .definition = "name of that run"},
	};
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(
		history, &statement, err,
		"SELECT baselines.name, baselines.series, run, runs.name FROM baselines JOIN runs USING(run) "
		"WHERE (?1 IS NULL OR baselines.series = ?1) ORDER BY baselines.series, baselines.name",
		"t", series);

	table_init(baselines, "baselines", "Baselines", "named runs that other runs are compared with");
	table_columns(baselines, columns, 4);
	baselines->empty = "no baselines are set; set one with 'stepscope history baseline set NAME RUN'";
	while (database_step(history, &statement, &status, err)) {
		int row = table_row(baselines);

		table_set_text_or(baselines, row, 0, column_text(statement, 0), NULL);
		table_set_text_or(baselines, row, 1, column_text(statement, 1), NULL);
		table_set_int(baselines, row, 2, sqlite3_column_int64(statement, 2));
		table_set_text_or(baselines, row, 3, column_text(statement, 3), NULL);
	}
	return status;
}

/* ---- one run ---- */

enum status history_facts(struct history *history, int64_t run, struct table *facts, struct error *err)
{
	static const struct table_column columns[] = {
		{.name = "kind",
	         .type = TABLE_TEXT,
	         .role = ROLE_KEY,
	         .definition = "work (of a step), hardware, software, settings or recording"},
		{.name = "fact", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name of the fact"},
		{.name = "value", .type = TABLE_TEXT, .definition = "value in the recording"},
	};
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(
		history, &statement, err, "SELECT kind, name, value FROM facts WHERE run = ? ORDER BY place", "i", run);

	table_init(facts, "facts", "Facts", "facts that comparisons check before they compare");
	table_columns(facts, columns, 3);
	facts->empty = "the recording has no such facts";
	while (database_step(history, &statement, &status, err)) {
		int row = table_row(facts);

		for (int column = 0; column < 3; column++)
			table_set_text_or(facts, row, column, column_text(statement, column), NULL);
	}
	return status;
}

enum status history_load(struct history *history, const struct history_run *found, struct compared_run *run,
                         struct error *err)
{
	enum status status = kept_run_read(history, found->run, run, err);

	if (status)
		return status;
	run->name = arena_dup(&run->arena, found->name);
	run->path = arena_dup(&run->arena, found->path);
	return STATUS_OK;
}
