/* SPDX-License-Identifier: Apache-2.0
 *
 * history_write.c: adds and removes runs of the history and names baselines. Every change is one transaction.
 */
#include "store/database.h"
#include "store/kept_run.h"

#include <string.h>
#include <time.h>

/* ---- adding ---- */

static enum status find_identity(struct history *history, const char *identity, struct history_added *added,
                                 struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err,
	                                      "SELECT run, series FROM runs WHERE identity = ?", "t", identity);

	*added = (struct history_added){0};
	while (database_step(history, &statement, &status, err))
		*added = (struct history_added){sqlite3_column_int64(statement, 0), true,
		                                database_text(history, statement, 1)};
	return status;
}

/* Deletes the rows of a known run, but keeps its number and the baselines that refer to it. */
static enum status forget_run(const struct history *history, int64_t run, struct error *err)
{
	static const char *const statements[] = {
		"DELETE FROM numbers WHERE run = ?",  "DELETE FROM facts WHERE run = ?",
		"DELETE FROM metrics WHERE run = ?",  "DELETE FROM steps WHERE run = ?",
		"DELETE FROM parts WHERE run = ?",    "DELETE FROM functions WHERE run = ?",
		"DELETE FROM telemetry WHERE run = ?"};
	enum status status = STATUS_OK;

	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]) && !status; i++)
		status = database_change(history, err, statements[i], "i", run);
	return status;
}

static enum status insert_run(const struct history *history, const struct history_entry *entry, int64_t *run,
                              struct error *err)
{
	time_t now = time(NULL);
	char added[32] = "";
	struct tm tm;
	enum status status;

	if (gmtime_r(&now, &tm))
		strftime(added, sizeof(added), "%Y-%m-%dT%H:%M:%SZ", &tm);
	status = database_change(history, err,
	                         "INSERT INTO runs(series, name, path, identity, added) VALUES('', '', '', ?, ?)", "tt",
	                         entry->identity, added);
	*run = sqlite3_last_insert_rowid(history->database);
	return status;
}

static enum status update_run(const struct history *history, const struct history_entry *entry, int64_t run,
                              struct error *err)
{
	const struct compared_run *kept = entry->run;
	enum status status = database_change(
		history, err,
		"UPDATE runs SET series = ?, name = ?, path = ?, created = ?, no_steps = ?, warm_up = ?, "
		"warm_up_reason = ? WHERE run = ?",
		"tttttiti", entry->series, entry->name, entry->path, kept->created, kept->no_steps, kept->warm_up,
		kept->warm_up_reason, run);

	if (!status && kept->has_created)
		status = database_change(history, err, "UPDATE runs SET created_ns = ? WHERE run = ?", "ii",
		                         kept->created_ns, run);
	if (!status && kept->summary.steps)
		status = database_change(history, err,
		                         "UPDATE runs SET summary_steps = ?, summary_median_ns = ?, summary_error = ?, "
		                         "summary_tokens = ? WHERE run = ?",
		                         "idddi", kept->summary.steps, kept->summary.median_ns, kept->summary.error,
		                         kept->summary.tokens, run);
	return status;
}

static enum status insert_numbers(const struct history *history, const struct table *numbers, int64_t run,
                                  struct error *err)
{
	enum status status = STATUS_OK;

	for (int column = 0; column < numbers->column_count && !status; column++) {
		const struct table_cell *cell = table_get(numbers, 0, column);

		status = database_change(history, err, "INSERT INTO numbers VALUES(?, ?, ?, ?)",
		                         cell->has_value ? "itdt" : "itnt", run, numbers->columns[column].name,
		                         cell->has_value ? cell->d : 0.0, cell->has_value ? NULL : cell->reason);
	}
	return status;
}

/* Fails if the run is a baseline, because a baseline must stay in its series. */
static enum status refuse_baseline(const struct history *history, int64_t run, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err,
	                                      "SELECT name, series FROM baselines WHERE run = ? LIMIT 1", "i", run);

	if (database_step(history, &statement, &status, err)) {
		status = error_set(err, STATUS_USAGE, "run %lld is the baseline '%s' of series '%s'", (long long)run,
		                   (const char *)sqlite3_column_text(statement, 0),
		                   (const char *)sqlite3_column_text(statement, 1));
		error_hint(err, "first remove it with 'stepscope history baseline remove NAME', or set it to another "
		                "run");
		sqlite3_finalize(statement);
	}
	return status;
}

/* Fails if the run is a baseline of another series, because adding it would move it to the entry's series. */
static enum status leave_series(const struct history *history, const struct history_entry *entry,
                                const struct history_added *added, struct error *err)
{
	if (!added->from || strcmp(added->from, entry->series) == 0)
		return STATUS_OK;
	return refuse_baseline(history, added->run, err);
}

static enum status add_locked(struct history *history, const struct history_entry *entry, struct history_added *added,
                              struct error *err)
{
	enum status status = find_identity(history, entry->identity, added, err);

	if (!status)
		status = leave_series(history, entry, added, err);
	if (!status)
		status = added->is_known ? forget_run(history, added->run, err)
		                         : insert_run(history, entry, &added->run, err);
	if (!status)
		status = update_run(history, entry, added->run, err);
	if (!status)
		status = insert_numbers(history, entry->numbers, added->run, err);
	return status ? status : kept_run_write(history, added->run, entry->run, err);
}

enum status history_add(struct history *history, const struct history_entry *entry, struct history_added *added,
                        struct error *err)
{
	enum status status = database_begin(history, err);

	return status ? status : database_end(history, add_locked(history, entry, added, err), err);
}

/* ---- removing, baselines ---- */

static enum status remove_locked(const struct history *history, int64_t run, struct error *err)
{
	enum status status = refuse_baseline(history, run, err);

	return status ? status : database_change(history, err, "DELETE FROM runs WHERE run = ?", "i", run);
}

enum status history_remove(struct history *history, int64_t run, struct error *err)
{
	enum status status = database_begin(history, err);

	return status ? status : database_end(history, remove_locked(history, run, err), err);
}

enum status history_set_baseline(struct history *history, const char *name, int64_t run, struct error *err)
{
	enum status status = database_begin(history, err);

	if (status)
		return status;
	status = database_change(history, err,
	                         "INSERT OR REPLACE INTO baselines SELECT series, ?, run FROM runs WHERE run = ?", "ti",
	                         name, run);
	return database_end(history, status, err);
}

enum status history_remove_baseline(struct history *history, const char *series, const char *name, struct error *err)
{
	enum status status = database_begin(history, err);

	if (status)
		return status;
	status = database_change(history, err, "DELETE FROM baselines WHERE name = ?1 AND series = ifnull(?2, series)",
	                         "tt", name, series);
	if (!status && !sqlite3_changes(history->database))
		status = error_set(err, STATUS_INPUT, "there is no baseline '%s'", name);
	return database_end(history, status, err);
}
