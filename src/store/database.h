/* SPDX-License-Identifier: Apache-2.0
 *
 * database.h: what the files of the history have in common: statements, transactions, and SQLite's errors as ours. Private to
 * store/.
 */
#ifndef STORE_DATABASE_H
#define STORE_DATABASE_H

#include "store/history.h"

#include <sqlite3.h>

/* The file is not as we wrote it: STATUS_INPUT. */
enum status database_damaged(const struct history *history, const char *said, struct error *err);
/* What SQLite's last error means to the user of a history. */
enum status database_error(const struct history *history, struct error *err);

/* Statements without results. */
enum status database_run(const struct history *history, const char *sql, struct error *err) MUST_CHECK;

/* With the lock of the only writer, or not at all. */
enum status database_begin(const struct history *history, struct error *err) MUST_CHECK;
/* Commits when status is STATUS_OK, else takes everything back and returns it. */
enum status database_end(const struct history *history, enum status status, struct error *err) MUST_CHECK;

/* One statement with values for its ?, in their order: 'i' int64_t, 't' const char * (NULL: null), 'd' double, 'n' a double that is not stored:
 * null. */
enum status database_prepare(const struct history *history, sqlite3_stmt **statement, struct error *err,
                             const char *sql, const char *types, ...) MUST_CHECK;
/* True: there is a row. False: no more rows, or status is set and the statement is finished in both cases. */
bool database_step(const struct history *history, sqlite3_stmt **statement, enum status *status, struct error *err);
/* Prepares, runs to the end, finishes. */
enum status database_change(const struct history *history, struct error *err, const char *sql, const char *types,
                            ...) MUST_CHECK;

/* False: one of these columns of the row is neither a number nor NULL, which is damage; status is set. */
bool database_has_numbers(const struct history *history, sqlite3_stmt *statement, int first, int count,
                          enum status *status, struct error *err);

/* Until the next row. */
const char *column_text(sqlite3_stmt *statement, int column); /* NULL: null */
const char *column_text_or_empty(sqlite3_stmt *statement, int column);
/* "" for NULL; in the history's arena. */
const char *database_text(struct history *history, sqlite3_stmt *statement, int column);

#endif
