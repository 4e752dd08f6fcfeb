/* SPDX-License-Identifier: Apache-2.0
 *
 * facts.c: the table `facts`: the facts that programs, the recorder and `stepscope run` noted about the run,
 * unchanged.
 */
#include "analysis/analysis_context.h"
#include "analysis/shared/labels.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

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
	[FACT_VALUE] = {.name = "value", .type = TABLE_TEXT, .definition = "last value of the fact"},
	[FACT_PROCESS] = {.name = "process",
                          .type = TABLE_TEXT,
                          .role = ROLE_KEY,
                          .definition = "rank or pid; \"all\" is the whole input"},
};

/* Sorts facts of the whole input first, then those of processes in the model's order, in which trainers come first, by
 * rank. Facts of one process are sorted by key. */
static int facts_compare(const void *left, const void *right, void *context)
{
	const struct model *model = context;
	const struct model_meta *a = *(const struct model_meta *const *)left,
				*b = *(const struct model_meta *const *)right;
	uint32_t first = a->process + 1, second = b->process + 1; /* MODEL_NONE: 0 */

	if (first != second)
		return first < second ? -1 : 1;
	return strcmp(model_text(model, a->key), model_text(model, b->key));
}

static enum status facts_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct model_meta **sorted = memory_resize(NULL, (size_t)model->meta_count + 1, sizeof(*sorted));

	table_init(table, "facts", "Facts", "facts recorded about the run, by process");
	table_columns(table, columns, FACT_COLUMNS);
	for (uint32_t i = 0; i < model->meta_count; i++)
		sorted[i] = &model->meta[i];
	qsort_r(sorted, model->meta_count, sizeof(*sorted), facts_compare, (void *)model);
	for (uint32_t i = 0; i < model->meta_count; i++) {
		int row = table_row(table);

		table_set_text(table, row, FACT_KEY, model_text(model, sorted[i]->key));
		table_set_text(table, row, FACT_VALUE, model_text(model, sorted[i]->value));
		table_set_text(table, row, FACT_PROCESS, process_label(model, sorted[i]->process, &table->arena));
	}
	free(sorted);
	if (!table->row_count)
		table->empty = "no facts were recorded";
	return STATUS_OK;
}

const struct analysis analysis_facts = {
	.name = "facts",
	.row = "key and process",
	.question = "which facts were recorded about the run?",
	.run = facts_run,
};
