/* SPDX-License-Identifier: Apache-2.0
 *
 * array_module.c: arrays of the model as virtual tables. model_tables.c defines the arrays and their cells.
 */
#include "base/buffer.h"
#include "query/modules.h"

#include <string.h>

struct array_table {
	sqlite3_vtab base;
	const struct query_source *source;
	const struct query_array *array;
};

int query_declare_sql(const struct query_source *source, const char *sql)
{
	int result;

	source->query->is_declaring = true;
	result = sqlite3_declare_vtab(source->query->database, sql);
	source->query->is_declaring = false;
	return result;
}

int query_declare(const struct query_source *source, const struct query_column *columns)
{
	struct buffer sql;
	int result;

	buffer_init(&sql, 1 << 16);
	buffer_add_text(&sql, "CREATE TABLE x(");
	for (const struct query_column *column = columns; column->name; column++)
		buffer_printf(&sql, "%s\"%s\" %s", column == columns ? "" : ", ", column->name, column->type);
	buffer_add_text(&sql, ")");
	result = query_declare_sql(source, sql.data);
	buffer_release(&sql);
	return result;
}

void query_result_string(sqlite3_context *out, const struct model *model, uint32_t string)
{
	if (string)
		sqlite3_result_text(out, model_text(model, string), (int)intern_length(&model->strings, string),
		                    SQLITE_STATIC);
}

void query_result_text(sqlite3_context *out, const char *text)
{
	if (text)
		sqlite3_result_text(out, text, -1, SQLITE_STATIC);
}

int query_disconnect(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

int query_close(sqlite3_vtab_cursor *cursor)
{
	sqlite3_free(cursor);
	return SQLITE_OK;
}

int query_numbered_open(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
	struct query_numbered *opened = sqlite3_malloc(sizeof(*opened));

	if (!opened)
		return SQLITE_NOMEM;
	*opened = (struct query_numbered){.row = 0};
	*cursor = &opened->base;
	return SQLITE_OK;
}

int query_numbered_begin(sqlite3_vtab_cursor *cursor, uint32_t count)
{
	struct query_numbered *at = (struct query_numbered *)cursor;

	at->row = 0;
	at->count = count;
	return SQLITE_OK;
}

uint32_t query_numbered_row(const sqlite3_vtab_cursor *cursor)
{
	return ((const struct query_numbered *)cursor)->row;
}

int query_numbered_next(sqlite3_vtab_cursor *cursor)
{
	((struct query_numbered *)cursor)->row++;
	return SQLITE_OK;
}

int query_numbered_is_at_end(sqlite3_vtab_cursor *cursor)
{
	const struct query_numbered *at = (const struct query_numbered *)cursor;

	return at->row >= at->count;
}

int query_numbered_id(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id)
{
	*id = query_numbered_row(cursor);
	return SQLITE_OK;
}

static int array_module_connect_table(sqlite3 *database, void *client, int argc, const char *const *argv,
                                      sqlite3_vtab **table, char **message)
{
	const struct query_source *source = client;
	const struct query_array *array = query_array_find(source->name);
	struct array_table *added;
	int result = query_declare(source, array->columns);

	if (result != SQLITE_OK)
		return result;
	added = sqlite3_malloc(sizeof(*added));
	if (!added)
		return SQLITE_NOMEM;
	*added = (struct array_table){.source = source, .array = array};
	*table = &added->base;
	return SQLITE_OK;
}

static int array_module_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	const struct array_table *which = (const struct array_table *)table;

	info->estimatedRows = (sqlite3_int64)which->array->count(which->source->query->report->model) + 1;
	info->estimatedCost = (double)info->estimatedRows;
	return SQLITE_OK;
}

static int array_module_filter(sqlite3_vtab_cursor *cursor, int plan, const char *plan_text, int argc,
                               sqlite3_value **argv)
{
	const struct array_table *which = (const struct array_table *)cursor->pVtab;

	return query_numbered_begin(cursor, which->array->count(which->source->query->report->model));
}

static int array_module_column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int number)
{
	const struct array_table *which = (const struct array_table *)cursor->pVtab;

	which->array->cell(which->source, query_numbered_row(cursor), number, out);
	return SQLITE_OK;
}

const sqlite3_module query_array_module = {
	.xConnect = array_module_connect_table,
	.xBestIndex = array_module_best_index,
	.xDisconnect = query_disconnect,
	.xOpen = query_numbered_open,
	.xClose = query_close,
	.xFilter = array_module_filter,
	.xNext = query_numbered_next,
	.xEof = query_numbered_is_at_end,
	.xColumn = array_module_column,
	.xRowid = query_numbered_id,
};
