/* SPDX-License-Identifier: Apache-2.0
 *
 * query.h: SQL over a run. Every analysis is a table of the database under its name. The trace itself is in `spans` and
 * the tables of query/model_tables.c. Nothing is copied: SQLite reads them in place. The table of an analysis is
 * computed when a statement first names it. Missing cells are NULL.
 *
 *     struct query query;
 *     if (query_init(&query, &report, &limits, err))
 *             return err->status;
 *     status = query_begin(&query, "SELECT name, self_ns FROM ops", err);
 *     while (!status && !query.is_done) {
 *             status = query_fetch(&query, &rows, 10000, err);
 *             ...
 *             table_release(&rows);
 *     }
 *     query_release(&query);
 *
 * Only one SELECT (or WITH, VALUES, EXPLAIN) at a time: an authorizer refuses statements that could write, attach or
 * load. The report must outlive the query. SQLite's memory limit applies to the whole process.
 */
#ifndef QUERY_QUERY_H
#define QUERY_QUERY_H

#include "analysis/report.h"

struct sqlite3;
struct sqlite3_stmt;

struct query_limits {
	double seconds;       /* of one statement; 0: no limit */
	int64_t memory_bytes; /* of SQLite's memory; 0: no limit; larger sorts use temporary files */
};

struct query {
	struct sqlite3 *database;
	struct sqlite3_stmt *statement;
	struct query_limits limits;
	struct report *report;
	double deadline;
	bool is_declaring; /* private */
	bool is_done;      /* no more rows */
	struct arena arena;
};

enum status query_init(struct query *query, struct report *report, const struct query_limits *limits,
                       struct error *err) MUST_CHECK;
void query_release(struct query *query); /* accepts a query whose query_init() failed */

/* STATUS_USAGE: the statement is wrong or not allowed. */
enum status query_begin(struct query *query, const char *sql, struct error *err) MUST_CHECK;

/* Binds a number to a parameter of the statement, such as :share. Returns false if there is no such parameter. */
bool query_bind(struct query *query, const char *parameter, double value);

/* Returns a parameter of the statement that is not in `names` (NULL-terminated), or NULL if all are. Valid until the
 * next query_begin(). */
const char *query_other_parameter(const struct query *query, const char *const *names);

/* Initialises `rows` and fills it with at most `limit` rows. A column of integers and real numbers becomes real
 * numbers; a column with texts becomes texts. STATUS_LIMIT: a limit is exceeded. On failure nothing needs to be
 * released. */
enum status query_fetch(struct query *query, struct table *rows, int limit, struct error *err) MUST_CHECK;

/* Tables that a statement can read besides those of analyses. */
struct query_table {
	const char *name;
	const char *question;
};
extern const struct query_table query_model_tables[]; /* ends with an empty entry */

/* Fills `columns` with one row per column of a table: name, type, unit, definition, and how many values it has or why
 * none. Returns false if there is no such table. */
bool query_schema(struct query *query, const char *name, struct table *columns);

#endif
