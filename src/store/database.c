/* SPDX-License-Identifier: Apache-2.0
 *
 * database.c: see the header.
 */
#include "store/database.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* SQLite quotes text of the file in its messages, and that text may contain any bytes. */
enum status database_damaged(const struct history *history, const char *said, struct error *err)
{
	struct buffer clean;

	if (sqlite3_errcode(history->database) == SQLITE_NOTADB) {
		error_set(err, STATUS_INPUT, "'%s' is not a run history: it is not an SQLite file", history->path);
		error_hint(err, "name another file with --history");
		return STATUS_INPUT;
	}
	buffer_init(&clean, 1 << 16);
	text_clean(&clean, said, strlen(said));
	error_set(err, STATUS_INPUT, "the run history '%s' is damaged: %.200s", history->path,
	          clean.data ? clean.data : "not readable");
	buffer_release(&clean);
	error_hint(err, "'sqlite3 FILE .recover' may save the rest; if you remove the file, a new history starts");
	return STATUS_INPUT;
}

static enum status no_access(const struct history *history, struct error *err)
{
	int number = sqlite3_system_errno(history->database);

	if (number)
		return error_errno(err, STATUS_ENVIRONMENT, number, "cannot open the run history '%s'", history->path);
	return error_set(err, STATUS_ENVIRONMENT, "cannot write the run history '%s': %s", history->path,
	                 sqlite3_errmsg(history->database));
}

enum status database_error(const struct history *history, struct error *err)
{
	switch (sqlite3_errcode(history->database) & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return error_set(err, STATUS_ENVIRONMENT,
		                 "the run history '%s' was in use by another program for more than %d s", history->path,
		                 HISTORY_WAIT_S);
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return no_access(history, err);
	case SQLITE_NOMEM:
		return error_set(err, STATUS_NO_MEMORY, "out of memory while reading the run history '%s'",
		                 history->path);
	case SQLITE_FULL:
	case SQLITE_IOERR:
		return error_set(err, STATUS_IO, "cannot write the run history '%s': %s", history->path,
		                 sqlite3_errmsg(history->database));
	default: /* no such table, wrong type: stepscope did not write this */
		return database_damaged(history, sqlite3_errmsg(history->database), err);
	}
}

enum status database_run(const struct history *history, const char *sql, struct error *err)
{
	if (sqlite3_exec(history->database, sql, NULL, NULL, NULL) != SQLITE_OK)
		return database_error(history, err);
	return STATUS_OK;
}

enum status database_begin(const struct history *history, struct error *err)
{
	return database_run(history, "BEGIN IMMEDIATE", err);
}

enum status database_end(const struct history *history, enum status status, struct error *err)
{
	if (!status)
		status = database_run(history, "COMMIT", err);
	if (status)
		sqlite3_exec(history->database, "ROLLBACK", NULL, NULL, NULL);
	return status;
}

static int bind_value(sqlite3_stmt *statement, int place, char type, va_list *values)
{
	switch (type) {
	case 'i':
		return sqlite3_bind_int64(statement, place, va_arg(*values, int64_t));
	case 'd':
		return sqlite3_bind_double(statement, place, va_arg(*values, double));
	case 'n':
		(void)va_arg(*values, double);
		return sqlite3_bind_null(statement, place);
	default:
		return sqlite3_bind_text(statement, place, va_arg(*values, const char *), -1, SQLITE_TRANSIENT);
	}
}

static enum status bind_and_prepare(const struct history *history, sqlite3_stmt **statement, struct error *err,
                                    const char *sql, const char *types, va_list *values)
{
	int result = sqlite3_prepare_v2(history->database, sql, -1, statement, NULL);

	for (int i = 0; result == SQLITE_OK && types[i]; i++)
		result = bind_value(*statement, i + 1, types[i], values);
	if (result == SQLITE_OK)
		return STATUS_OK;
	database_error(history, err);
	sqlite3_finalize(*statement);
	*statement = NULL;
	return err->status;
}

enum status database_prepare(const struct history *history, sqlite3_stmt **statement, struct error *err,
                             const char *sql, const char *types, ...)
{
	enum status status;
	va_list values;

	va_start(values, types);
	status = bind_and_prepare(history, statement, err, sql, types, &values);
	va_end(values);
	return status;
}

bool database_step(const struct history *history, sqlite3_stmt **statement, enum status *status, struct error *err)
{
	int result = *statement && !*status ? sqlite3_step(*statement) : SQLITE_DONE;

	if (result == SQLITE_ROW)
		return true;
	if (result != SQLITE_DONE)
		*status = database_error(history, err);
	sqlite3_finalize(*statement);
	*statement = NULL;
	return false;
}

enum status database_change(const struct history *history, struct error *err, const char *sql, const char *types, ...)
{
	sqlite3_stmt *statement = NULL;
	enum status status;
	va_list values;

	va_start(values, types);
	status = bind_and_prepare(history, &statement, err, sql, types, &values);
	va_end(values);
	while (database_step(history, &statement, &status, err))
		;
	return status;
}

/* Needed because SQLite stores any type in any column. */
bool database_has_numbers(const struct history *history, sqlite3_stmt *statement, int first, int count,
                          enum status *status, struct error *err)
{
	for (int column = first; column < first + count; column++) {
		int type = sqlite3_column_type(statement, column);
		char said[80];

		if (type == SQLITE_NULL || type == SQLITE_INTEGER || type == SQLITE_FLOAT)
			continue;
		snprintf(said, sizeof(said), "'%.40s' of a run is not a number",
		         sqlite3_column_name(statement, column));
		*status = database_damaged(history, said, err);
		return false;
	}
	return true;
}

const char *column_text(sqlite3_stmt *statement, int column)
{
	return (const char *)sqlite3_column_text(statement, column);
}

const char *column_text_or_empty(sqlite3_stmt *statement, int column)
{
	const char *text = column_text(statement, column);

	return text ? text : "";
}

const char *database_text(struct history *history, sqlite3_stmt *statement, int column)
{
	return arena_dup(&history->arena, column_text_or_empty(statement, column));
}
