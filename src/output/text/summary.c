/* SPDX-License-Identifier: Apache-2.0
 *
 * summary.c: walks the layout and writes JSON; collects the reasons of null values under "not_measured", by their
 * path.
 */
#include "output/text/summary.h"

#include "output/text/cells.h"
#include "output/text/json.h"

#include <assert.h>
#include <stdio.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define MAXIMUM_REASONS 256

struct summary_state {
	struct report *report;
	struct json_writer json;
	char prefix[64]; /* of the open object: "window." */
	struct {
		const char *path, *reason;
	} reasons[MAXIMUM_REASONS];
	int reason_count;
};

static void add_reason(struct summary_state *summary, const char *path, const char *reason)
{
	if (summary->reason_count == MAXIMUM_REASONS)
		return;
	summary->reasons[summary->reason_count].path = arena_dup(&summary->report->arena, path);
	summary->reasons[summary->reason_count++].reason = arena_dup(&summary->report->arena,
	                                                             reason ? reason : "not recorded");
}

static const char *path_of(struct summary_state *summary, const char *key, const char *rest)
{
	return arena_printf(&summary->report->arena, "%s%s%s", summary->prefix, key, rest);
}

/* Writes a column of the first row. Returns false if it wrote null, because of `reason`: no value, or no row. */
static bool write_cell(struct summary_state *summary, const struct table *table, const char *name, const char **reason)
{
	int column = table_find_column(table, name);

	assert(column >= 0);
	if (!table->row_count) {
		json_null(&summary->json);
		*reason = table->empty;
		return false;
	}
	json_cell(&summary->json, table, 0, column);
	const struct table_cell *cell = table_get(table, 0, column);
	*reason = cell->has_value ? NULL : cell->reason;
	return cell->has_value;
}

static void write_value(struct summary_state *summary, const struct summary_entry *entry)
{
	const char *reason;

	if (!write_cell(summary, report_table(summary->report, entry->table), entry->column, &reason))
		add_reason(summary, path_of(summary, entry->key, ""), reason);
}

static void write_pair(struct summary_state *summary, const struct summary_entry *entry)
{
	const struct table *table = report_table(summary->report, entry->table);
	int first = table_find_column(table, entry->column);
	const char *reason = table->empty;

	assert(first >= 0);
	if (!table->row_count || !table_get(table, 0, first)->has_value) {
		if (table->row_count)
			reason = table_get(table, 0, first)->reason;
		json_null(&summary->json);
		add_reason(summary, path_of(summary, entry->key, ""), reason);
		return;
	}
	json_array_begin(&summary->json);
	write_cell(summary, table, entry->column, &reason);
	write_cell(summary, table, entry->second, &reason);
	json_array_end(&summary->json);
}

/* ---- rows ---- */

struct summary_member {
	int column;
	char key[64];
	bool is_missed; /* a reason was added */
};

static int list_members(const struct table *table, const char *columns, struct summary_member *members)
{
	int count = 0;

	if (!columns) {
		for (; count < table->column_count; count++) {
			members[count] = (struct summary_member){.column = count};
			snprintf(members[count].key, sizeof(members[count].key), "%s", table->columns[count].name);
		}
		return count;
	}
	while (*columns) {
		size_t length = strcspn(columns, ","), name_length = strcspn(columns, ",=");
		const char *key = name_length < length ? columns + name_length + 1 : columns;
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)name_length, columns);
		members[count] = (struct summary_member){.column = table_find_column(table, name)};
		assert(members[count].column >= 0);
		snprintf(members[count].key, sizeof(members[count].key), "%.*s", (int)(columns + length - key), key);
		columns += length + (columns[length] == ',');
		count++;
	}
	return count;
}

static void write_row(struct summary_state *summary, const struct summary_entry *entry, const struct table *table,
                      int row, struct summary_member *members, int count)
{
	json_object_begin(&summary->json);
	for (int i = 0; i < count; i++) {
		const struct table_cell *cell = table_get(table, row, members[i].column);

		json_key(&summary->json, members[i].key);
		json_cell(&summary->json, table, row, members[i].column);
		if (cell->has_value || members[i].is_missed)
			continue;
		members[i].is_missed = true; /* one reason per column */
		add_reason(summary,
		           path_of(summary, entry->key, arena_printf(&summary->report->arena, "[].%s", members[i].key)),
		           column_reason(table, members[i].column));
	}
	json_object_end(&summary->json);
}

static void write_rows(struct summary_state *summary, const struct summary_entry *entry)
{
	const struct table *table = report_table(summary->report, entry->table);
	struct summary_member members[64];
	int count = list_members(table, entry->column, members);

	json_array_begin(&summary->json);
	for (int row = 0; row < table->row_count; row++)
		write_row(summary, entry, table, row, members, count);
	json_array_end(&summary->json);
	if (!table->row_count && table->empty)
		add_reason(summary, path_of(summary, entry->key, ""), table->empty);
}

/* ---- the document ---- */

static void write_entry(struct summary_state *summary, const struct summary_entry *entry)
{
	if (entry->form == SUMMARY_CLOSE) {
		json_object_end(&summary->json);
		summary->prefix[0] = '\0';
		return;
	}
	json_key(&summary->json, entry->key);
	switch (entry->form) {
	case SUMMARY_VALUE:
		write_value(summary, entry);
		break;
	case SUMMARY_PAIR:
		write_pair(summary, entry);
		break;
	case SUMMARY_OBJECT:
		snprintf(summary->prefix, sizeof(summary->prefix), "%s.", entry->key);
		json_object_begin(&summary->json);
		break;
	case SUMMARY_ROWS:
		write_rows(summary, entry);
		break;
	default:
		json_null(&summary->json);
		add_reason(summary, path_of(summary, entry->key, ""), entry->reason);
	}
}

static void write_head(struct summary_state *summary)
{
	json_key(&summary->json, "schema");
	json_string(&summary->json, "stepscope.summary/1");
	json_key(&summary->json, "run_id");
	json_string(&summary->json, summary->report->name);
	json_key(&summary->json, "tool");
	json_string(&summary->json, "stepscope " STEPSCOPE_VERSION);
}

/* Writes the caveats in the notes of tables. */
static void write_caveats(struct summary_state *summary)
{
	static const char *const tables[] = {"step_time", "ops", "memory"};

	json_key(&summary->json, "caveats");
	json_array_begin(&summary->json);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct table *table = report_table(summary->report, tables[i]);

		if (table->note)
			json_string(&summary->json, table->note);
	}
	json_array_end(&summary->json);
}

static void write_tail(struct summary_state *summary)
{
	write_caveats(summary);
	json_key(&summary->json, "not_measured");
	json_object_begin(&summary->json);
	for (int i = 0; i < summary->reason_count; i++) {
		json_key(&summary->json, summary->reasons[i].path);
		json_string(&summary->json, summary->reasons[i].reason);
	}
	json_object_end(&summary->json);
	if (!summary->report->defect_count)
		return;
	json_key(&summary->json, "defects");
	json_array_begin(&summary->json);
	for (int i = 0; i < summary->report->defect_count; i++)
		json_string(&summary->json, summary->report->defects[i]);
	json_array_end(&summary->json);
}

void summary_write(struct buffer *out, struct report *report)
{
	struct summary_state summary = {.report = report};

	json_writer_init(&summary.json, out, JSON_PRETTY);
	json_object_begin(&summary.json);
	write_head(&summary);
	for (const struct summary_entry *entry = summary_layout; entry->form != SUMMARY_END; entry++)
		write_entry(&summary, entry);
	write_tail(&summary);
	json_object_end(&summary.json);
	buffer_add_text(out, "\n");
}
