/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_reasons.c: see trace_reasons.h.
 */
#include "analysis/trace_reasons.h"

#include <string.h>

/* The first row whose words are in a reason replaces it. */
static const struct {
	const char *words, *reason;
} rules[] = {
	{"have a formula", "the trace does not say it, and no formula is known for it"},
	{"the program must give them", "the trace does not say it"},
	{"--with memory", "the trace has no allocations: torch.profiler writes them with profile_memory=True"},
	{"--with shapes", "the trace has no sizes of inputs: torch.profiler writes them with record_shapes=True"},
	{"--with lines", "the trace has no stacks of Python: torch.profiler writes them with with_stack=True"},
	{"calls of modules were recorded",
         "the trace has no calls of modules: torch.profiler writes them with with_stack=True"},
	{"stepscope_step_begin", "the trace has no steps: torch.profiler writes them with a schedule and step()"},
	{"stepscope_phase", "the trace names no phases"},
	{"stepscope_metric", "the trace has no metrics"},
	{"stepscope_mark", "the trace has no marks"},
	{"stepscope_", "the trace does not say it"},
	{"stepscope run", "the trace does not say it"},
	{"the recorder", "another tool recorded this"},
};

/* NULL: it is true of a trace, too. */
static const char *reason_of_trace(const char *reason)
{
	for (size_t i = 0; reason && i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strstr(reason, rules[i].words))
			return rules[i].reason;
	return NULL;
}

const char *trace_reason(const char *reason)
{
	const char *other = reason_of_trace(reason);

	return other ? other : reason;
}

void trace_reasons_apply(struct table *table)
{
	table->empty = trace_reason(table->empty);
	table->note = trace_reason(table->note);
	for (int row = 0; row < table->row_count; row++) {
		for (int column = 0; column < table->column_count; column++) {
			const struct table_cell *cell = table_get(table, row, column);
			const char *reason = cell->has_value ? NULL : reason_of_trace(cell->reason);

			if (reason)
				table_set_missing(table, row, column, reason);
		}
	}
}
