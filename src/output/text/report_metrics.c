/* SPDX-License-Identifier: Apache-2.0
 *
 * report_metrics.c: see the header.
 */
#include "output/text/report_metrics.h"

#include "compare/canary_metrics.h"
#include "compare/canary_tables.h"
#include "output/text/json.h"
#include "output/text/text.h"

static void report_metrics_add_text(struct buffer *out, const struct table *table, const struct text_style *style,
                                    bool is_explained)
{
	const struct text_view view = {.has_heading = true, .is_explained = is_explained};

	if (out->length)
		buffer_add_text(out, "\n");
	text_heading(out, table->title, style);
	buffer_add_text(out, "\n");
	text_table(out, table, &view, style);
}

static void add_json(struct buffer *out, const struct canary_tables *tables)
{
	struct json_writer json;

	json_writer_init(&json, out, JSON_PRETTY);
	json_object_begin(&json);
	json_key(&json, "schema"), json_string(&json, "stepscope.metrics/1");
	json_key(&json, "numbers"), json_table(&json, &tables->numbers);
	json_key(&json, "facts"), json_table(&json, &tables->facts);
	json_key(&json, "operators"), json_table(&json, &tables->operators);
	json_object_end(&json);
	buffer_add_text(out, "\n");
}

enum status report_metrics_write(struct buffer *out, const char *path, const struct text_style *style, bool is_json,
                                 bool is_explained, struct error *err)
{
	struct canary_tables tables;
	struct compared_run run;
	enum status status = canary_metrics_read(&run, path, err);

	if (status)
		return status;
	canary_tables_init(&tables, &run);
	if (is_json) {
		add_json(out, &tables);
	} else {
		report_metrics_add_text(out, &tables.numbers, style, is_explained);
		report_metrics_add_text(out, &tables.facts, style, is_explained);
		report_metrics_add_text(out, &tables.operators, style, is_explained);
	}
	canary_tables_release(&tables);
	compared_run_release(&run);
	return STATUS_OK;
}
