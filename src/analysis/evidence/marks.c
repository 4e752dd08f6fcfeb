/* SPDX-License-Identifier: Apache-2.0
 *
 * marks.c: the table `marks`: events at single instants, in the order of time.
 */
#include "analysis/analysis_context.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_times.h"
#include "model/reasons.h"

enum {
	MARK_TIME,
	MARK_NAME,
	MARK_PROCESS,
	MARK_THREAD,
	MARK_STEP,
	MARK_COLUMNS
};

static const struct table_column columns[MARK_COLUMNS] = {
	[MARK_TIME] = {.name = "time_ns",
                       .title = "time",
                       .type = TABLE_INT,
                       .unit = UNIT_NS_SINCE_START,
                       .role = ROLE_KEY,
                       .definition = "time of the mark, since the first known instant of its process"},
	[MARK_NAME] = {.name = "name", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name given by the program"},
	[MARK_PROCESS] = PROCESS_COLUMN,
	[MARK_THREAD] = {.name = "thread",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "thread that set the mark"},
	[MARK_STEP] = {.name = "step",
                       .type = TABLE_INT,
                       .role = ROLE_EVIDENCE,
                       .definition = "number of the step that was open in the process"},
};

static enum status marks_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	struct labels labels;

	table_init(table, "marks", "Marks", "single instants that the program marked");
	table_columns(table, columns, MARK_COLUMNS);
	table_keep_in(table, model->storage);
	labels_init(&labels, model, &table->arena);
	for (uint32_t i = 0; i < model->marks_count; i++) {
		const struct mark *mark = &model->marks[i];
		uint32_t process = model->tracks[mark->track]->process;
		const struct model_step *step = step_times_step_at(model, process, mark->time_ns);
		int row;

		if (is_part_of_run(&context->options) && (!step || !times->steps[step - model->steps].is_selected))
			continue;
		row = table_row(table);
		table_set_int(table, row, MARK_TIME, mark->time_ns - model->processes[process].origin_ns);
		table_set_lasting_text(table, row, MARK_NAME, model_text(model, mark->name));
		table_set_lasting_text(table, row, MARK_PROCESS, labels_process(&labels, process));
		table_set_lasting_text(table, row, MARK_THREAD, labels_track(&labels, mark->track));
		if (step)
			table_set_int(table, row, MARK_STEP, step->number);
		else
			table_set_missing(table, row, MARK_STEP, "outside every step");
	}
	labels_release(&labels);
	table_sort(table, MARK_NAME, true);
	table_sort(table, MARK_TIME, true);
	if (!table->row_count)
		table->empty = model_reason(context->model, REASON_NO_MARKS);
	return STATUS_OK;
}

const struct analysis analysis_marks = {
	.name = "marks",
	.row = "mark",
	.question = "which marks did the program set, and when?",
	.run = marks_run,
};
