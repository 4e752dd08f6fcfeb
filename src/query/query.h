/* SPDX-License-Identifier: Apache-2.0
 *
 * query.h: SQL over a run. Every analysis is a table of the database under its name, and the trace itself is the tables of
 * query/model_tables.c and `spans`; nothing is copied: SQLite reads them where they are, and a table of an analysis is
 * computed when a statement first names it. What was not measured is NULL.
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
 * Only one SELECT (or WITH, VALUES, EXPLAIN) at a time: an authorizer refuses whatever could write, attach or load. The
 * report must outlive the query. SQLite's limit of memory holds for the whole process.
 */
#ifndef QUERY_QUERY_H
#define QUERY_QUERY_H

#include "analysis/report.h"

struct sqlite3;
struct sqlite3_stmt;

struct query_limits {
	double seconds;       /* of one statement, 0: none */
	int64_t memory_bytes; /* of SQLite's, 0: none; sorting beyond it uses temporary files */
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
void query_release(struct query *query); /* accepts one whose query_init() failed */

/* STATUS_USAGE when the statement is wrong or not allowed. */
enum status query_begin(struct query *query, const char *sql, struct error *err) MUST_CHECK;

/* A number for a parameter such as :share of the statement; false when it has none of that name. */
bool query_bind(struct query *query, const char *parameter, double value);

/* A parameter of the statement that is not one of the names, which end with NULL; NULL: all are. Valid until the next query_begin(). */
const char *query_other_parameter(const struct query *query, const char *const *names);

/* Initialises `rows` and fills it with at most `limit` rows. A column of integers and real numbers is one of real numbers,
 * of anything else besides text one of text. STATUS_LIMIT when a limit is broken. On failure nothing needs to be released. */
enum status query_fetch(struct query *query, struct table *rows, int limit, struct error *err) MUST_CHECK;

/* What a statement can read besides the tables of analyses. */
struct query_table {
	const char *name;
	const char *question;
};
extern const struct query_table query_model_tables[]; /* ends with an empty one */

/* One row per column of a table: name, type, unit, definition, whether anything was measured and why not. False: there is
 * no such table. */
bool query_schema(struct query *query, const char *name, struct table *columns);

#endif
