/* SPDX-License-Identifier: Apache-2.0
 *
 * query_schema.c: the tables that SQL can read besides those of analyses, and the meaning of a table's columns.
 */
#include "query/modules.h"
#include "query/query.h"

#include <string.h>

const struct query_table query_model_tables[] = {
	{"spans", "what ran when (operators, calls of modules, phases, steps, kernels, ...)?"},
	{"tracks", "which threads and streams exist?"},
	{"links", "which launch belongs to which device work, and which forward to which backward?"},
	{"span_args", "which further arguments do spans have?"},
	{"frames", "which Python frames are in the stacks of spans and samples?"},
	{"memory_events", "when was which memory allocated and freed?"},
	{"allocator_segments", "which segments of memory did allocators take from devices?"},
	{"series_values", "which values did counters and metrics have?"},
	{"samples", "which samples were taken?"},
	{"thread_readings", "how much CPU time had threads used, and how long had they waited for a processor?"},
	{NULL, NULL},
};

enum {
	SCHEMA_COLUMN,
	SCHEMA_TYPE,
	SCHEMA_MEASURED,
	SCHEMA_DEFINITION,
	SCHEMA_COLUMNS,
};

static const struct table_column schema_columns[SCHEMA_COLUMNS] = {
	[SCHEMA_COLUMN] = {.name = "column", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name of the column"},
	[SCHEMA_TYPE] = {.name = "type", .type = TABLE_TEXT, .definition = "SQL type of its values"},
	[SCHEMA_MEASURED] = {.name = "measured",
                             .type = TABLE_INT,
                             .unit = UNIT_COUNT,
                             .definition = "number of rows in which it is not NULL"},
	[SCHEMA_DEFINITION] = {.name = "definition", .type = TABLE_TEXT, .definition = "definition of the column"},
};

static int query_schema_add_row(struct table *schema, const char *name, const char *type, const char *definition)
{
	int row = table_row(schema);

	table_set_text(schema, row, SCHEMA_COLUMN, name);
	table_set_text(schema, row, SCHEMA_TYPE, type);
	table_set_missing(schema, row, SCHEMA_MEASURED, "rows are counted only in tables of the report");
	if (definition)
		table_set_text(schema, row, SCHEMA_DEFINITION, definition);
	return row;
}

static void query_schema_add_columns(struct table *schema, const struct query_column *columns)
{
	for (; columns->name; columns++)
		query_schema_add_row(schema, columns->name, columns->type[0] ? columns->type : "any",
		                     columns->definition);
}

static int64_t count_measured(const struct table *table, int column)
{
	int64_t count = 0;

	for (int row = 0; row < table->row_count; row++)
		count += table_get(table, row, column)->has_value;
	return count;
}

static void add_analysis(struct table *schema, const struct table *table)
{
	static const char *const types[] = {"TEXT", "INTEGER", "REAL", "INTEGER"};

	for (int i = 0; i < table->column_count; i++) {
		const struct table_column *column = &table->columns[i];
		int row = query_schema_add_row(schema, column->name, types[column->type], column->definition);

		table_set_int(schema, row, SCHEMA_MEASURED, count_measured(table, i));
	}
	schema->note = table->row_count || !table->empty ? NULL
	                                                 : arena_printf(&schema->arena, "no rows: %s", table->empty);
}

bool query_schema(struct query *query, const char *name, struct table *columns)
{
	const struct query_array *array = query_array_find(name);
	const struct table *table = report_table(query->report, name);

	if (!array && !table && strcmp(name, "spans") != 0)
		return false;
	table_init(columns, name, name, "columns of a table");
	table_columns(columns, schema_columns, SCHEMA_COLUMNS);
	if (array)
		query_schema_add_columns(columns, array->columns);
	else if (table)
		add_analysis(columns, table);
	else
		query_schema_add_columns(columns, query_span_columns);
	return true;
}
