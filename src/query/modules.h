/* SPDX-License-Identifier: Apache-2.0
 *
 * modules.h: the modules that query.c registers with SQLite. All are virtual tables that exist without CREATE and
 * cannot be written. Private to query/.
 */
#ifndef QUERY_MODULES_H
#define QUERY_MODULES_H

#include "query/query.h"

#include <sqlite3.h>

/* Client data of a module. */
struct query_source {
	struct query *query;
	const char *name;             /* of the table */
	const char *const *processes; /* labels, by number */
	const char *const *tracks;
	const uint32_t *series_ends; /* by series: number of values in all series up to and including it */
};

/* Returns the time since the recording of its process started, as in tables of analyses. */
int64_t query_since_start(const struct model *model, uint32_t process, int64_t time_ns);

/* A column of a table of the model. */
struct query_column {
	const char *name;
	const char *type; /* SQL name of the type */
	const char *definition;
};

/* Rows of an analysis. */
extern const sqlite3_module query_analysis_module;

/* All spans. query_span_columns ends with an empty column. */
extern const sqlite3_module query_span_module;
extern const struct query_column query_span_columns[];

/* All other data of the model: arrays by number, with one function that fills a cell. */
struct query_array {
	const char *name;
	const struct query_column *columns;
	uint32_t (*count)(const struct model *model);
	void (*cell)(const struct query_source *source, uint32_t row, int column, sqlite3_context *out);
};
extern const sqlite3_module query_array_module;
extern const struct query_array query_arrays[];
const struct query_array *query_array_find(const char *name);

/* Declares "CREATE TABLE x(name type, ...)" of the columns. */
int query_declare(const struct query_source *source, const struct query_column *columns);
int query_declare_sql(const struct query_source *source, const char *sql);

/* Sets a text that lives as long as the model; NULL for string 0. */
void query_result_string(sqlite3_context *out, const struct model *model, uint32_t string);
void query_result_text(sqlite3_context *out, const char *text);

/* Converts SQLite's last error. */
enum status query_failure(struct query *query, struct error *err);

/* Shared by all modules: there is nothing to do. */
int query_disconnect(sqlite3_vtab *table);
int query_close(sqlite3_vtab_cursor *cursor);

/* A cursor over numbered rows. The module's xFilter begins with query_numbered_begin(). */
struct query_numbered {
	sqlite3_vtab_cursor base;
	uint32_t row, count;
};
int query_numbered_open(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor);
int query_numbered_begin(sqlite3_vtab_cursor *cursor, uint32_t count);
uint32_t query_numbered_row(const sqlite3_vtab_cursor *cursor);
int query_numbered_next(sqlite3_vtab_cursor *cursor);
int query_numbered_is_at_end(sqlite3_vtab_cursor *cursor);
int query_numbered_id(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id);

#endif
