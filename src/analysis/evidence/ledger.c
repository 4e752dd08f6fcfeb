/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.c: the table `ledger`: the defects of the evidence, one sentence per row. No rows is good news.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/machine/processes.h"
#include "analysis/ranks/missing_ranks.h"
#include "analysis/samples/sampled_stacks.h"
#include "analysis/shared/labels.h"
#include "model/cell_words.h"

enum {
	LEDGER_WHAT,
	LEDGER_CODE,
	LEDGER_COUNT,
	LEDGER_PROCESS,
	LEDGER_WHERE,
	LEDGER_OFFSET,
	LEDGER_SENTENCE,
	LEDGER_COLUMNS
};

static const struct table_column columns[LEDGER_COLUMNS] = {
	[LEDGER_WHAT] =
		{.name = "what",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "dropped, damaged, torn tail, rescued, open, unmatched end, missing tail, removed, clock, "
                               "repaired, other"},
	[LEDGER_CODE] =
		{.name = "code",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .is_hidden = true,
                 .definition =
                         "several writers (of one file), no events (in a snapshot of memory), ambiguous steps, uncertain steps; otherwise the same as what"},
	[LEDGER_COUNT] = {.name = "count",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "events or bytes, as the sentence says",
                          .rules = RULE_NOT_NEGATIVE},
	[LEDGER_PROCESS] = {.name = "process", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "rank, pid, or all"},
	[LEDGER_WHERE] = {.name = "where",
                          .type = TABLE_TEXT,
                          .role = ROLE_KEY,
                          .definition = "file, thread or type of event"},
	[LEDGER_OFFSET] = {.name = "first_offset",
                           .title = "at byte",
                           .type = TABLE_INT,
                           .definition = "byte offset of the first defect in the file"},
	[LEDGER_SENTENCE] = {.name = "sentence",
                             .title = "means",
                             .type = TABLE_TEXT,
                             .definition = "what happened, in one sentence"},
};

static const char *kind_name(enum ledger_kind kind)
{
	static const char *const names[] = {
		[LEDGER_DROPPED] = CELL_LEDGER_DROPPED,
		[LEDGER_DAMAGED] = CELL_LEDGER_DAMAGED,
		[LEDGER_TORN_TAIL] = CELL_LEDGER_TORN_TAIL,
		[LEDGER_RESCUED] = "rescued",
		[LEDGER_OPEN_SPANS] = "open",
		[LEDGER_UNMATCHED_END] = "unmatched end",
		[LEDGER_REMOVED] = "removed",
		[LEDGER_MISSING_TAIL] = CELL_LEDGER_MISSING_TAIL,
		[LEDGER_CLOCK] = "clock",
		[LEDGER_REPAIRED] = "repaired",
		[LEDGER_OTHER] = "other",
	};

	return names[kind];
}

static const char *code_name(const struct ledger_entry *entry)
{
	static const char *const names[] = {
		[LEDGER_CODE_WRITERS] = CELL_CODE_WRITERS,
		[LEDGER_CODE_NO_EVENTS] = CELL_CODE_NO_EVENTS,
		[LEDGER_CODE_AMBIGUOUS_STEPS] = CELL_CODE_AMBIGUOUS_STEPS,
		[LEDGER_CODE_UNCERTAIN_STEPS] = CELL_CODE_UNCERTAIN_STEPS,
	};

	return entry->code ? names[entry->code] : kind_name(entry->kind);
}

/* Adds a defect that importers cannot know before the whole input is read. */
static void add_late(struct table *table, const char *what, uint64_t count, const char *where, const char *sentence)
{
	int row;

	if (!count)
		return;
	row = table_row(table);
	table_set_text(table, row, LEDGER_WHAT, what);
	table_set_text(table, row, LEDGER_CODE, what);
	table_set_int(table, row, LEDGER_COUNT, (int64_t)count);
	table_set_text(table, row, LEDGER_PROCESS, "all");
	table_set_text(table, row, LEDGER_WHERE, where);
	table_set_missing(table, row, LEDGER_OFFSET, "not at one place in a file");
	table_set_text(table, row, LEDGER_SENTENCE, sentence);
}

static void add_launches(struct table *table, struct analysis_context *context)
{
	const struct model *model = context->model;
	const struct launches *launches = analysis_context_launches(context);

	add_late(table, "other", launches_without_work(model, launches), "launches",
	         "the trace lacks the kernels of these launches: the profiler lost them, or they ran after its end");
	add_late(table, "other", launches->unlaunched, "kernels, copies and fills",
	         "the trace lacks their launches, so their operators are unknown");
	add_late(table, "clock", launches->out_of_order, "kernels, copies and fills",
	         "they start before their launches: the clocks of device and host disagree");
}

static void add_missing_ranks(struct table *table, const struct model *model)
{
	struct missing_ranks missing = missing_ranks_find(model, &table->arena);

	add_late(table, "other", missing.count, missing.text,
	         "these ranks are missing, so the time that other ranks waited for them in communication is unknown");
}

static enum status ledger_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;

	table_init(table, "ledger", "Missing and repaired data",
	           "all gaps and defects of the evidence, over the whole recording");
	table_columns(table, columns, LEDGER_COLUMNS);
	for (uint32_t i = 0; i < model->ledger_count; i++) {
		const struct ledger_entry *entry = &model->ledger[i];
		int row;

		/* all its events were recovered, and it ended well */
		if (entry->kind == LEDGER_RESCUED && entry->process != MODEL_NONE &&
		    process_exited_well(model, entry->process))
			continue;
		row = table_row(table);

		table_set_text(table, row, LEDGER_WHAT, kind_name(entry->kind));
		table_set_text(table, row, LEDGER_CODE, code_name(entry));
		table_set_int(table, row, LEDGER_COUNT, (int64_t)entry->count);
		table_set_text(table, row, LEDGER_PROCESS, process_label(model, entry->process, &table->arena));
		if (entry->where)
			table_set_text(table, row, LEDGER_WHERE, model_text(model, entry->where));
		else
			table_set_missing(table, row, LEDGER_WHERE, "not in one place");
		if (entry->has_first_offset)
			table_set_int(table, row, LEDGER_OFFSET, (int64_t)entry->first_offset);
		else
			table_set_missing(table, row, LEDGER_OFFSET, "not at one place in a file");
		table_set_text(table, row, LEDGER_SENTENCE, model_text(model, entry->text));
	}
	add_launches(table, context);
	add_missing_ranks(table, model);
	add_late(table, "other", sampled_beyond(model), "samples",
	         "their total exceeds 9.2e18: sums that do not fit are missing, and shares refer to the total");
	if (!table->row_count)
		table->empty = "nothing was dropped, damaged or left open";
	return STATUS_OK;
}

const struct analysis analysis_ledger = {
	.name = "ledger",
	.row = "kind of problem and place",
	.question = "which data is missing, damaged or repaired?",
	.run = ledger_run,
};
