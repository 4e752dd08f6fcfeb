/* SPDX-License-Identifier: Apache-2.0
 *
 * analysis_module.c: the table of an analysis as a virtual table, computed when a statement first names it.
 */
#include "base/buffer.h"
#include "query/modules.h"

#include <string.h>

struct analysis_table {
	sqlite3_vtab base;
	const struct table *table;
};

static const struct table *table_of(const sqlite3_vtab_cursor *cursor)
{
	return ((const struct analysis_table *)cursor->pVtab)->table;
}

static int declare(const struct query_source *source, const struct table *table)
{
	static const char *const types[] = {"TEXT", "INTEGER", "REAL", "INTEGER"};
	struct buffer sql;
	int result;

	buffer_init(&sql, 1 << 16);
	buffer_add_text(&sql, "CREATE TABLE x(");
	for (int i = 0; i < table->column_count; i++)
		buffer_printf(&sql, "%s\"%s\" %s", i ? ", " : "", table->columns[i].name,
		              types[table->columns[i].type]);
	buffer_add_text(&sql, table->column_count ? ")" : "nothing)"); /* an analysis that failed has no columns */
	result = query_declare_sql(source, sql.data);
	buffer_release(&sql);
	return result;
}

static int analysis_module_connect_table(sqlite3 *database, void *client, int argc, const char *const *argv,
                                         sqlite3_vtab **table, char **message)
{
	const struct query_source *source = client;
	const struct table *computed = report_table(source->query->report, source->name);
	struct analysis_table *added;
	int result = declare(source, computed);

	if (result != SQLITE_OK)
		return result;
	added = sqlite3_malloc(sizeof(*added));
	if (!added)
		return SQLITE_NOMEM;
	*added = (struct analysis_table){.table = computed};
	*table = &added->base;
	return SQLITE_OK;
}

static int analysis_module_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	info->estimatedRows = ((struct analysis_table *)table)->table->row_count + 1;
	info->estimatedCost = (double)info->estimatedRows;
	return SQLITE_OK;
}

static int analysis_module_filter(sqlite3_vtab_cursor *cursor, int plan, const char *plan_text, int argc,
                                  sqlite3_value **argv)
{
	return query_numbered_begin(cursor, (uint32_t)table_of(cursor)->row_count);
}

static int analysis_module_column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int number)
{
	const struct table *table = table_of(cursor);
	const struct table_cell *cell = table_get(table, (int)query_numbered_row(cursor), number);

	if (!cell->has_value)
		return SQLITE_OK; /* NULL */
	switch (table->columns[number].type) {
	case TABLE_TEXT:
		query_result_text(out, cell->text);
		break;
	case TABLE_INT:
		sqlite3_result_int64(out, cell->i);
		break;
	case TABLE_DOUBLE:
		sqlite3_result_double(out, cell->d);
		break;
	case TABLE_BOOL:
		sqlite3_result_int(out, cell->b);
		break;
	}
	return SQLITE_OK;
}

const sqlite3_module query_analysis_module = {
	.xConnect = analysis_module_connect_table,
	.xBestIndex = analysis_module_best_index,
	.xDisconnect = query_disconnect,
	.xOpen = query_numbered_open,
	.xClose = query_close,
	.xFilter = analysis_module_filter,
	.xNext = query_numbered_next,
	.xEof = query_numbered_is_at_end,
	.xColumn = analysis_module_column,
	.xRowid = query_numbered_id,
};
