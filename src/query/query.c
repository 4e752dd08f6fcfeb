/* SPDX-License-Identifier: Apache-2.0
 *
 * query.c: an empty database with virtual tables: registers the tables, permissions and limits. query_rows.c turns
 * results into tables.
 */
#include "query/query.h"

#include "analysis/shared/labels.h"
#include "base/options.h"
#include "base/time_now.h"
#include "base/units.h"
#include "query/modules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_MODEL_TABLES 32 /* including spans */
#define MAXIMUM_TABLES (MOST_MODEL_TABLES + ANALYSIS_COUNT)
#define OPERATIONS_BETWEEN_LOOKS 1000

static double now(void)
{
	return (double)time_now_ns(CLOCK_MONOTONIC) * 1e-9;
}

/* ---- permissions ---- */

static int authorize(void *context, int action, const char *first, const char *second, const char *database,
                     const char *trigger)
{
	const struct query *query = context;

	if (query->is_declaring) /* SQLite declares a module's table */
		return SQLITE_OK;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return second && !sqlite3_stricmp(second, "load_extension") ? SQLITE_DENY : SQLITE_OK;
	default:
		return SQLITE_DENY;
	}
}

static int query_on_progress(void *context)
{
	struct query *query = context;

	return query->limits.seconds > 0 && now() > query->deadline;
}

static void set_limits(struct query *query)
{
	static const struct {
		int limit, value;
	} limits[] = {{SQLITE_LIMIT_LENGTH, 64 << 20},     {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
	              {SQLITE_LIMIT_COLUMN, 64},           {SQLITE_LIMIT_EXPR_DEPTH, 200},
	              {SQLITE_LIMIT_ATTACHED, 0},          {SQLITE_LIMIT_WORKER_THREADS, 0},
	              {SQLITE_LIMIT_COMPOUND_SELECT, 100}, {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000}};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		sqlite3_limit(query->database, limits[i].limit, limits[i].value);
	sqlite3_db_config(query->database, SQLITE_DBCONFIG_DQS_DML, 0, NULL); /* "x" is a column, never a text */
	sqlite3_db_config(query->database, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	sqlite3_db_config(query->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(query->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(query->database, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_hard_heap_limit64(query->limits.memory_bytes);
	sqlite3_progress_handler(query->database, OPERATIONS_BETWEEN_LOOKS, query_on_progress, query);
	sqlite3_set_authorizer(query->database, authorize, query);
}

/* ---- functions ---- */

struct query_writer {
	const char *name;
	char *(*write)(char *, double);
};

/* as_time(ns), as_bytes(bytes), as_share(ratio): write values as reports do. NULL stays NULL. */
static const struct query_writer writers[] = {{"as_time", units_time},
                                              {"as_bytes", units_bytes},
                                              {"as_share", units_ratio}};

static void as_people_read(sqlite3_context *out, int argc, sqlite3_value **argv)
{
	const struct query_writer *writer = sqlite3_user_data(out);
	char text[UNITS_BYTES];

	if (sqlite3_value_type(argv[0]) != SQLITE_NULL)
		sqlite3_result_text(out, writer->write(text, sqlite3_value_double(argv[0])), -1, SQLITE_TRANSIENT);
}

/* as_count(n, 'call') gives "1 call", "2 calls". It also knows batches and copies. */
static void as_count(sqlite3_context *out, int argc, sqlite3_value **argv)
{
	const char *word = (const char *)sqlite3_value_text(argv[1]);
	int length = word ? (int)strlen(word) : 0;
	bool is_one = sqlite3_value_double(argv[0]) == 1;
	bool is_copy = length > 1 && word[length - 1] == 'y' && !strchr("aeiou", word[length - 2]);
	bool is_batch = length > 1 && (word[length - 1] == 's' || !strcmp(word + length - 2, "ch"));
	char *text;

	if (sqlite3_value_type(argv[0]) == SQLITE_NULL || !length)
		return;
	if (is_one)
		text = sqlite3_mprintf("1 %s", word);
	else
		text = sqlite3_mprintf("%.15g %.*s%s", sqlite3_value_double(argv[0]), length - is_copy, word,
		                       is_copy    ? "ies"
		                       : is_batch ? "es"
		                                  : "s");
	sqlite3_result_text(out, text, -1, sqlite3_free);
}

static int query_add_functions(struct query *query)
{
	int result = sqlite3_create_function_v2(query->database, "as_count", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
	                                        NULL, as_count, NULL, NULL, NULL);

	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]) && result == SQLITE_OK; i++)
		result = sqlite3_create_function_v2(query->database, writers[i].name, 1,
		                                    SQLITE_UTF8 | SQLITE_DETERMINISTIC, (void *)&writers[i],
		                                    as_people_read, NULL, NULL, NULL);
	return result;
}

/* ---- tables ---- */

static const char *const *all_labels(struct query *query, uint32_t count,
                                     const char *(*label)(const struct model *, uint32_t, struct arena *))
{
	const char **labels = arena_array(&query->arena, (size_t)count + 1, sizeof(*labels));

	for (uint32_t i = 0; i < count; i++)
		labels[i] = label(query->report->model, i, &query->arena);
	return labels;
}

static const uint32_t *series_ends(struct query *query)
{
	const struct model *model = query->report->model;
	uint32_t *ends = arena_array(&query->arena, (size_t)model->series_count + 1, sizeof(*ends));

	for (uint32_t i = 0; i < model->series_count; i++)
		ends[i] = (i ? ends[i - 1] : 0) + model->series[i]->count;
	return ends;
}

static int query_add_table(struct query *query, struct query_source *source, const char *name,
                           const sqlite3_module *module)
{
	source->name = name;
	return sqlite3_create_module_v2(query->database, name, module, source, NULL);
}

static int add_tables(struct query *query)
{
	const struct model *model = query->report->model;
	struct query_source *sources = arena_array(&query->arena, MAXIMUM_TABLES, sizeof(*sources));
	const struct query_source common = {.query = query,
	                                    .processes = all_labels(query, model->processes_count, process_label),
	                                    .tracks = all_labels(query, model->tracks_count, track_label),
	                                    .series_ends = series_ends(query)};
	int count = 0, result;

	for (int i = 0; i < MAXIMUM_TABLES; i++)
		sources[i] = common;
	result = query_add_table(query, &sources[count++], "spans", &query_span_module);
	for (int i = 0; query_arrays[i].name && result == SQLITE_OK; i++)
		result = query_add_table(query, &sources[count++], query_arrays[i].name, &query_array_module);
	assert(count <= MOST_MODEL_TABLES);
	for (int i = 0; analyses[i] && result == SQLITE_OK; i++)
		result = query_add_table(query, &sources[count++], analyses[i]->name, &query_analysis_module);
	return result;
}

enum status query_init(struct query *query, struct report *report, const struct query_limits *limits, struct error *err)
{
	memset(query, 0, sizeof(*query));
	arena_init(&query->arena, 0);
	query->report = report;
	query->limits = *limits;
	if (sqlite3_open_v2(":memory:", &query->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) !=
	            SQLITE_OK ||
	    query_add_functions(query) != SQLITE_OK || add_tables(query) != SQLITE_OK) {
		error_set(err, STATUS_ENVIRONMENT, "cannot start SQLite: %s", sqlite3_errmsg(query->database));
		query_release(query);
		return STATUS_ENVIRONMENT;
	}
	set_limits(query);
	return STATUS_OK;
}

void query_release(struct query *query)
{
	sqlite3_finalize(query->statement);
	sqlite3_close(query->database);
	arena_release(&query->arena);
	memset(query, 0, sizeof(*query));
}

/* ---- statements ---- */

/* For "no such table: opss", hints at the nearest table. */
static void hint_table(const char *message, struct error *err)
{
	static const char start[] = "no such table: ";
	const char *names[MAXIMUM_TABLES + 1];
	const char *nearest;
	int count = 0;

	if (strncmp(message, start, sizeof(start) - 1) != 0)
		return;
	for (; analyses[count]; count++)
		names[count] = analyses[count]->name;
	for (int i = 0; query_model_tables[i].name; i++)
		names[count++] = query_model_tables[i].name;
	names[count] = NULL;
	nearest = nearest_name(message + sizeof(start) - 1, names);
	if (nearest)
		error_hint(err, "did you mean '%s'?", nearest);
	else
		error_hint(err, "'stepscope query --tables' lists the tables");
}

/* Returns the nearest name among the columns of a table, if the statement names the table. */
static const char *nearest_column(struct query *query, const char *sql, const char *table, const char *word)
{
	struct table schema;
	const char **names, *nearest;

	if (!strcasestr(sql, table) || !query_schema(query, table, &schema))
		return NULL;
	names = arena_alloc(&query->arena, ((size_t)schema.row_count + 1) * sizeof(*names));
	for (int row = 0; row < schema.row_count; row++)
		names[row] = table_get(&schema, row, 0)->text;
	names[schema.row_count] = NULL;
	nearest = nearest_name(word, names);
	if (nearest)
		nearest = arena_printf(&query->arena, "%s", nearest);
	table_release(&schema);
	return nearest;
}

/* For "no such column: s.dur", hints at the nearest column of the tables in the statement. */
static void hint_column(struct query *query, const char *sql, struct error *err)
{
	static const char start[] = "no such column: ";
	const char *message = sqlite3_errmsg(query->database), *word, *nearest = NULL;

	if (strncmp(message, start, sizeof(start) - 1) != 0)
		return;
	word = arena_printf(&query->arena, "%s", message + sizeof(start) - 1);
	if (strrchr(word, '.'))
		word = strrchr(word, '.') + 1;
	for (int i = 0; query_model_tables[i].name && !nearest; i++)
		nearest = nearest_column(query, sql, query_model_tables[i].name, word);
	for (int i = 0; analyses[i] && !nearest; i++)
		nearest = nearest_column(query, sql, analyses[i]->name, word);
	if (nearest)
		error_hint(err, "did you mean '%s'?", nearest);
	else
		error_hint(err, "'stepscope query RUN --schema TABLE' lists the columns of a table");
}

enum status query_failure(struct query *query, struct error *err)
{
	const char *message = sqlite3_errmsg(query->database);

	switch (sqlite3_errcode(query->database) & 0xff) {
	case SQLITE_INTERRUPT:
		error_set(err, STATUS_LIMIT, "the query took longer than %g s", query->limits.seconds);
		error_hint(err, "'--time-limit SECONDS' allows a longer time; 0 sets no limit");
		return STATUS_LIMIT;
	case SQLITE_NOMEM:
		return error_set(err, STATUS_LIMIT, "the query needs more than %lld MiB of memory",
		                 (long long)(query->limits.memory_bytes >> 20));
	case SQLITE_TOOBIG:
		return error_set(err, STATUS_LIMIT, "the query, or a value that it computes, is too large");
	case SQLITE_AUTH:
		return error_set(err, STATUS_USAGE, "queries may only read: %s", message);
	default:
		error_set(err, STATUS_USAGE, "the query is wrong: %s", message);
		hint_table(message, err);
		return STATUS_USAGE;
	}
}

enum status query_begin(struct query *query, const char *sql, struct error *err)
{
	const char *rest = sql;
	sqlite3_stmt *second = NULL;
	bool is_alone;

	sqlite3_finalize(query->statement);
	query->statement = NULL;
	query->is_done = false;
	query->deadline = now() + query->limits.seconds;
	if (sqlite3_prepare_v3(query->database, sql, -1, 0, &query->statement, &rest) != SQLITE_OK) {
		query_failure(query, err);
		hint_column(query, sql, err);
		return err->status;
	}
	if (!query->statement)
		return error_set(err, STATUS_USAGE, "the query is empty");
	is_alone = sqlite3_prepare_v3(query->database, rest, -1, 0, &second, NULL) == SQLITE_OK && !second;
	sqlite3_finalize(second); /* comments and blanks are no statement; an invalid second one is an error */
	if (!is_alone)
		return error_set(err, STATUS_USAGE, "the query has several statements; give one");
	if (!sqlite3_stmt_readonly(query->statement) || !sqlite3_column_count(query->statement))
		return error_set(err, STATUS_USAGE,
		                 "queries may only read: start the query with SELECT, WITH or VALUES");
	return STATUS_OK;
}

bool query_bind(struct query *query, const char *parameter, double value)
{
	int number = sqlite3_bind_parameter_index(query->statement, parameter);

	return number && sqlite3_bind_double(query->statement, number, value) == SQLITE_OK;
}

const char *query_other_parameter(const struct query *query, const char *const *names)
{
	for (int number = 1; number <= sqlite3_bind_parameter_count(query->statement); number++) {
		const char *name = sqlite3_bind_parameter_name(query->statement, number);
		int i = 0;

		while (name && names[i] && strcmp(names[i], name) != 0)
			i++;
		if (!name || !names[i])
			return name ? name : "?";
	}
	return NULL;
}
