/* SPDX-License-Identifier: Apache-2.0
 *
 * facts.c: the table `facts`: what programs, the recorder and `stepscope run` noted about the run, as it stands.
 */
#include "analysis/analysis.h"
#include "analysis/labels.h"

enum {
	FACT_KEY,
	FACT_VALUE,
	FACT_PROCESS,
	FACT_COLUMNS
};

static const struct table_column columns[FACT_COLUMNS] = {
	[FACT_KEY] = {.name = "key",
                      .type = TABLE_TEXT,
                      .role = ROLE_KEY,
                      .definition = "name of the fact; programs add theirs with stepscope_metadata()"},
	[FACT_VALUE] = {.name = "value", .type = TABLE_TEXT, .definition = "its last value"},
	[FACT_PROCESS] = {.name = "process",
                          .type = TABLE_TEXT,
                          .role = ROLE_KEY,
                          .definition = "rank, pid, or all of the input"},
};

static enum status run(const struct model *model, const struct analysis_options *options, struct table *table,
                       struct error *err)
{
	table_init(table, "facts", "Facts", "what was noted about the run, by process");
	table_columns(table, columns, FACT_COLUMNS);
	for (uint32_t i = 0; i < model->meta_count; i++) {
		int row = table_row(table);

		table_set_text(table, row, FACT_KEY, model_text(model, model->meta[i].key));
		table_set_text(table, row, FACT_VALUE, model_text(model, model->meta[i].value));
		table_set_text(table, row, FACT_PROCESS, process_label(model, model->meta[i].process, &table->arena));
	}
	table_sort(table, FACT_KEY, true);
	table_sort(table, FACT_PROCESS, true);
	if (!table->row_count)
		table->empty = "nothing was noted";
	return STATUS_OK;
}

const struct analysis analysis_facts = {"facts", "what was noted about the run?", run};
