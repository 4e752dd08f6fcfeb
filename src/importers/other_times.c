/* SPDX-License-Identifier: Apache-2.0
 *
 * other_times.c: see the header.
 */
#include "importers/other_times.h"

#include "base/memory.h"
#include "base/units.h"
#include "importers/text_lines.h"
#include "model/leave_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOCKS_DIFFER_NS 60000000000 /* largest difference between the clocks of two machines */

struct other_times_run { /* the steps of a trainer */
	bool has_steps, is_left_out;
	int64_t start_ns, end_ns;
};

static void other_times_find_times(const struct model *model, struct other_times_run *runs)
{
	for (uint32_t i = 0; i < model->steps_count; i++) {
		const struct model_step *step = &model->steps[i];
		struct other_times_run *run = &runs[step->process];
		int64_t end_ns = step->is_open ? step->start_ns : step->end_ns;

		if (model->processes[step->process].role != STEPSCOPE_ROLE_IMPORTED)
			continue;
		run->start_ns = !run->has_steps || step->start_ns < run->start_ns ? step->start_ns : run->start_ns;
		run->end_ns = !run->has_steps || end_ns > run->end_ns ? end_ns : run->end_ns;
		run->has_steps = true;
	}
}

/* Returns the time between two runs; negative if they overlap. */
static int64_t gap_of(const struct other_times_run *one, const struct other_times_run *other)
{
	return one->start_ns > other->end_ns ? one->start_ns - other->end_ns : other->start_ns - one->end_ns;
}

/* Adds a line to the ledger. A process that has a rank stays, because its machine's clock may be wrong. A process
 * without a rank is left out. */
static void other_times_tell(struct model *model, uint32_t number, struct other_times_run *run, int64_t gap_ns)
{
	const struct process *process = &model->processes[number];
	char text[256], where[64], gap[UNITS_BYTES];

	run->is_left_out = process->rank < 0;
	snprintf(where, sizeof where, "pid %lld", (long long)process->pid);
	snprintf(text, sizeof text,
	         "the trace is %s apart from the first trace, so it is from another run and not "
	         "a rank of the same job%s",
	         units_time(gap, (double)gap_ns),
	         run->is_left_out ? ": it was left out; pass it separately"
	                          : " (unless clocks are wrong): numbers of steps are means over both");
	if (run->is_left_out) /* the process will be removed, also from the ledger, so the entry names its file */
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE,
		                 process->file ? file_name_of(model_text(model, process->file)) : where, 1, text);
	else
		model_add_ledger(model, LEDGER_OTHER, number, "", 1, text);
}

/* Drops the left-out processes and all other processes of their files. */
static void other_times_drop(struct model *model, const struct other_times_run *runs)
{
	bool *is_left_out = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof *is_left_out);

	for (uint32_t i = 0; i < model->processes_count; i++) {
		is_left_out[i] = runs[i].is_left_out;
		for (uint32_t k = 0; k < model->processes_count && model->processes[i].file && !is_left_out[i]; k++)
			is_left_out[i] = runs[k].is_left_out && model->processes[k].file == model->processes[i].file;
	}
	model_leave_out(model, is_left_out);
	free(is_left_out);
}

void other_times_leave_out(struct model *model)
{
	size_t bytes = ((size_t)model->processes_count + 1) * sizeof(struct other_times_run);
	struct other_times_run *runs = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof *runs),
			       *first = NULL;
	bool is_any = false;

	memset(runs, 0, bytes);
	other_times_find_times(model, runs);
	for (uint32_t i = 0; i < model->processes_count; i++) {
		if (!runs[i].has_steps)
			continue;
		first = first ? first : &runs[i];
		if (gap_of(first, &runs[i]) > CLOCKS_DIFFER_NS)
			other_times_tell(model, i, &runs[i], gap_of(first, &runs[i]));
		is_any |= runs[i].is_left_out;
	}
	if (is_any)
		other_times_drop(model, runs);
	free(runs);
}
