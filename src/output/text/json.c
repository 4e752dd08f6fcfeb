/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c: see the header. The summary of a run is written by summary.c.
 */
#include "output/text/json.h"

#include <stdio.h>

void json_cell(struct json_writer *json, const struct table *table, int row, int column)
{
	const struct table_cell *cell = table_get(table, row, column);

	if (!cell->has_value) {
		json_null(json);
		return;
	}
	switch (table->columns[column].type) {
	case TABLE_TEXT:
		json_string(json, cell->text);
		return;
	case TABLE_INT:
		json_int(json, cell->i);
		return;
	case TABLE_DOUBLE:
		json_double(json, cell->d);
		return;
	case TABLE_BOOL:
		json_bool(json, cell->b);
		return;
	}
}

static const char *unit_word(enum table_unit unit)
{
	static const char *const words[] = {
		[UNIT_NONE] = NULL,
		[UNIT_NS] = "ns",
		[UNIT_BYTES] = "bytes",
		[UNIT_COUNT] = "1",
		[UNIT_RATIO] = "ratio",
		[UNIT_PER_SECOND] = "1/s",
		[UNIT_FLOP] = "FLOP",
		[UNIT_FLOP_PER_SECOND] = "FLOP/s",
		[UNIT_BYTES_PER_SECOND] = "bytes/s",
		[UNIT_NS_SINCE_START] = "ns since start",
	};

	return words[unit];
}

static void add_optional(struct json_writer *json, const char *key, const char *text)
{
	if (!text)
		return;
	json_key(json, key);
	json_string(json, text);
}

static void add_column(struct json_writer *json, const struct table_column *column)
{
	static const char *const types[] = {"text", "integer", "number", "boolean"};
	static const char *const roles[] = {"value", "key", "share", "evidence"};

	json_object_begin(json);
	add_optional(json, "name", column->name);
	add_optional(json, "type", types[column->type]);
	add_optional(json, "role", roles[column->role]);
	add_optional(json, "unit", unit_word(column->unit));
	add_optional(json, "definition", column->definition);
	add_optional(json, "denominator", column->denominator);
	json_object_end(json);
}

static void json_add_missing(struct json_writer *json, const struct table *table)
{
	char path[160];

	json_key(json, "not_measured");
	json_object_begin(json);
	for (int row = 0; row < table->row_count; row++) {
		for (int column = 0; column < table->column_count; column++) {
			const struct table_cell *cell = table_get(table, row, column);

			if (cell->has_value)
				continue;
			snprintf(path, sizeof(path), "rows[%d].%s", row, table->columns[column].name);
			add_optional(json, path, cell->reason ? cell->reason : "not recorded");
		}
		buffer_flow(json->out);
	}
	json_object_end(json);
}

void json_row(struct json_writer *json, const struct table *table, int row)
{
	json_object_begin(json);
	for (int column = 0; column < table->column_count; column++) {
		json_key(json, table->columns[column].name);
		json_cell(json, table, row, column);
	}
	json_object_end(json);
}

void json_rows(struct json_writer *json, const struct table *table)
{
	json_array_begin(json);
	for (int row = 0; row < table->row_count; row++) {
		json_row(json, table, row);
		buffer_flow(json->out);
	}
	json_array_end(json);
}

void json_table(struct json_writer *json, const struct table *table)
{
	json_object_begin(json);
	add_optional(json, "schema", "stepscope.table/1");
	add_optional(json, "name", table->name);
	add_optional(json, "title", table->title);
	add_optional(json, "definition", table->definition);
	add_optional(json, "note", table->note);
	add_optional(json, "empty", table->empty);
	json_key(json, "columns");
	json_array_begin(json);
	for (int column = 0; column < table->column_count; column++)
		add_column(json, &table->columns[column]);
	json_array_end(json);
	json_key(json, "rows");
	json_rows(json, table);
	json_add_missing(json, table);
	json_object_end(json);
}
