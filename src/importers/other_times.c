/* SPDX-License-Identifier: Apache-2.0
 *
 * other_times.c: see the header.
 */
#include "importers/other_times.h"

#include "base/memory.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOCKS_DIFFER_NS 60000000000 /* between machines, at most */

/* Between them; negative: both ran at some time. */
static int64_t gap_of(const struct process *one, const struct process *other)
{
	return one->first_ns > other->last_ns ? one->first_ns - other->last_ns : other->first_ns - one->last_ns;
}

static bool is_trainer(const struct model *model, const bool *has_steps, uint32_t process)
{
	const struct process *is = &model->processes[process];

	return has_steps[process] && is->role == STEPSCOPE_ROLE_IMPORTED && is->has_times;
}

static void tell(struct model *model, uint32_t process, int64_t gap_ns)
{
	char text[256], gap[UNITS_BYTES];

	snprintf(text, sizeof text,
	         "it ran %s apart from the first trace: another run, and no rank of its job, so that numbers of steps "
	         "are means over both; give each by itself",
	         units_time(gap, (double)gap_ns));
	model_add_ledger(model, LEDGER_OTHER, process, "", 1, text);
}

void other_times_tell(struct model *model)
{
	bool *has_steps = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof *has_steps);
	uint32_t first = MODEL_NONE;

	memset(has_steps, 0, ((size_t)model->processes_count + 1) * sizeof *has_steps);
	for (uint32_t i = 0; i < model->steps_count; i++)
		has_steps[model->steps[i].process] = true;
	for (uint32_t i = 0; i < model->processes_count; i++) {
		if (!is_trainer(model, has_steps, i))
			continue;
		first = first == MODEL_NONE ? i : first;
		int64_t gap_ns = gap_of(&model->processes[first], &model->processes[i]);
		if (gap_ns > CLOCKS_DIFFER_NS)
			tell(model, i, gap_ns);
	}
	free(has_steps);
}
