/* SPDX-License-Identifier: Apache-2.0
 *
 * marks.c: the table `marks`: what happened at single instants, in order of time.
 */
#include "analysis/labels.h"
#include "analysis/step_times.h"

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
                       .definition = "instant, since the first recorded instant of its process"},
	[MARK_NAME] = {.name = "name", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name the program gave it"},
	[MARK_PROCESS] = {.name = "process", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "rank, or pid"},
	[MARK_THREAD] = {.name = "thread", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "thread that set it"},
	[MARK_STEP] = {.name = "step",
                       .type = TABLE_INT,
                       .role = ROLE_EVIDENCE,
                       .definition = "number of the step of its process that was open then"},
};

/* The step of the process that is open at the time, -1: none. Steps are in order of process and start. */
static int64_t find_step(const struct model *model, uint32_t process, int64_t time_ns)
{
	uint32_t low = 0, high = model->steps_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct model_step *step = &model->steps[middle];

		if (step->process < process || (step->process == process && step->start_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || model->steps[low - 1].process != process || model->steps[low - 1].end_ns < time_ns)
		return -1;
	return (int64_t)low - 1;
}

static enum status run(const struct model *model, const struct analysis_options *options, struct table *table,
                       struct error *err)
{
	struct step_times own = {0};
	const struct step_times *times = step_times_get(&own, model, options);

	table_init(table, "marks", "Marks", "what the program marked as happening at one instant");
	table_columns(table, columns, MARK_COLUMNS);
	for (uint32_t i = 0; i < model->marks_count; i++) {
		const struct mark *mark = &model->marks[i];
		uint32_t process = model->tracks[mark->track]->process;
		int64_t step = find_step(model, process, mark->time_ns);
		int row;

		if (options->has_steps && (step < 0 || !times->steps[step].is_selected))
			continue;
		row = table_row(table);
		table_set_int(table, row, MARK_TIME, mark->time_ns - model->processes[process].first_ns);
		table_set_text(table, row, MARK_NAME, model_text(model, mark->name));
		table_set_text(table, row, MARK_PROCESS, process_label(model, process, &table->arena));
		table_set_text(table, row, MARK_THREAD, track_label(model, mark->track, &table->arena));
		if (step >= 0)
			table_set_int(table, row, MARK_STEP, model->steps[step].number);
		else
			table_set_missing(table, row, MARK_STEP, "outside the steps");
	}
	table_sort(table, MARK_NAME, true);
	table_sort(table, MARK_TIME, true);
	if (!table->row_count)
		table->empty = "the program set no marks: stepscope_mark()";
	step_times_release(&own);
	return STATUS_OK;
}

const struct analysis analysis_marks = {"marks", "what happened at single instants?", run};
