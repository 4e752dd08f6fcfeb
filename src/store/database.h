/* SPDX-License-Identifier: Apache-2.0
 *
 * database.h: statements, transactions and translation of SQLite's errors, for the files of the history. Private to
 * store/.
 */
#ifndef STORE_DATABASE_H
#define STORE_DATABASE_H

#include "store/history.h"

#include <sqlite3.h>

/* Sets STATUS_INPUT: the file is not as stepscope writes it. */
enum status database_damaged(const struct history *history, const char *said, struct error *err);
/* Translates SQLite's last error to a message for the user of a history. */
enum status database_error(const struct history *history, struct error *err);

/* Runs statements without results. */
enum status database_run(const struct history *history, const char *sql, struct error *err) MUST_CHECK;

/* Starts a transaction and takes the write lock, or fails. */
enum status database_begin(const struct history *history, struct error *err) MUST_CHECK;
/* Commits if status is STATUS_OK. Otherwise rolls back and returns status. */
enum status database_end(const struct history *history, enum status status, struct error *err) MUST_CHECK;

/* Prepares one statement and binds values to its "?" in order. Types: 'i' int64_t, 't' const char * (NULL: null), 'd'
 * double, 'n' a double that is ignored and stored as null. */
enum status database_prepare(const struct history *history, sqlite3_stmt **statement, struct error *err,
                             const char *sql, const char *types, ...) MUST_CHECK;
/* Returns true if there is a row. Returns false if there are no more rows or status is set; the statement is then
 * finished. */
bool database_step(const struct history *history, sqlite3_stmt **statement, enum status *status, struct error *err);
/* Prepares a statement, runs it to its end and finishes it. */
enum status database_change(const struct history *history, struct error *err, const char *sql, const char *types,
                            ...) MUST_CHECK;

/* Returns false and sets status if one of these columns of the row is neither a number nor NULL: the file is
 * damaged. */
bool database_has_numbers(const struct history *history, sqlite3_stmt *statement, int first, int count,
                          enum status *status, struct error *err);

/* The text is valid until the next row. */
const char *column_text(sqlite3_stmt *statement, int column); /* NULL: null */
const char *column_text_or_empty(sqlite3_stmt *statement, int column);
/* Returns "" for NULL. The text is in the history's arena. */
const char *database_text(struct history *history, sqlite3_stmt *statement, int column);

#endif
