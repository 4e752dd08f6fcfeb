/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_reasons.c: see trace_reasons.h.
 */
#include "analysis/trace_reasons.h"

#include <string.h>

struct trace_reasons_rule { /* the first rule whose words occur in a reason replaces the reason */
	const char *words, *reason;
};

static const struct trace_reasons_rule of_traces[] = {
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
	{NULL, NULL},
};

static const struct trace_reasons_rule of_stacks[] = {
	{"stepscope_step_begin", "stacks are not of steps: a trace or a recording has those"},
	{"stepscope_range", "a profile of stacks has no operators: its functions are in the table functions"},
	{"stepscope", "a profile of stacks does not have it"},
	{"--with ", "a profile of stacks does not have it"},
	{"have a formula", "a profile of stacks has no operators"},
	{"nothing it recorded has a time", "the file has no times, only how often stacks were seen"},
	{"recorded a time", "the file has no times, only how often stacks were seen"},
	{"the recorder", "another tool recorded this"},
	{NULL, NULL},
};

static const struct trace_reasons_rule of_telemetry[] = {
	{"stepscope_step_begin", "telemetry has no steps: a trace or a recording of the run has those"},
	{"stepscope", "telemetry does not have it"},
	{"--with ", "telemetry does not have it"},
	{"have a formula", "telemetry has no operators"},
	{"recorded a time", "the file has no times"},
	{"the recorder", "another tool recorded this"},
	{NULL, NULL},
};

static const struct trace_reasons_rule of_snapshots[] = {
	{"stepscope_step_begin", "the snapshot has no steps: annotations ProfilerStep#N make them"},
	{"stepscope_phase", "the snapshot names no phases"},
	{"--with memory", "the snapshot has no allocations: torch.cuda.memory._record_memory_history() records them"},
	{"stepscope", "a snapshot of memory does not have it"},
	{"--with ", "a snapshot of memory does not have it"},
	{"have a formula", "a snapshot of memory has no operators"},
	{"calls of modules were recorded", "a snapshot of memory has no calls of modules"},
	{"the recorder", "another tool recorded this"},
	{NULL, NULL},
};

static const struct trace_reasons_rule of_nsys[] = {
	{"stepscope_step_begin",
         "no range of NVTX is a step: name them 'step N', torch.cuda.nvtx.range(f\"step {n}\")"},
	{"stepscope_phase", "the export names no phases"},
	{"--with ", "an export of nsys does not have it"},
	{"calls of modules were recorded", "an export of nsys has no calls of modules"},
	{"stepscope", "an export of nsys does not have it"},
	{"have a formula", "an export of nsys does not have it"},
	{"the recorder", "another tool recorded this"},
	{NULL, NULL},
};

static const struct {
	const char *format;
	const struct trace_reasons_rule *rules;
} formats[] = {
	{"folded", of_stacks},
	{"speedscope", of_stacks},
	{"nvidia-smi", of_telemetry},
	{"cuda memory snapshot", of_snapshots},
	{"nsys", of_nsys},
};

static const struct trace_reasons_rule *rules_of(const char *format)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(format, formats[i].format))
			return formats[i].rules;
	return of_traces;
}

/* Returns the reason to show instead, NULL if the given one also fits such a file. */
static const char *other_reason(const char *reason, const char *format)
{
	for (const struct trace_reasons_rule *rule = rules_of(format); reason && rule->words; rule++)
		if (strstr(reason, rule->words))
			return rule->reason;
	return NULL;
}

const char *trace_reason(const char *reason, const char *format)
{
	const char *other = other_reason(reason, format);

	return other ? other : reason;
}

void trace_reasons_apply(struct table *table, const char *format)
{
	table->empty = trace_reason(table->empty, format);
	table->note = trace_reason(table->note, format);
	for (int row = 0; row < table->row_count; row++) {
		for (int column = 0; column < table->column_count; column++) {
			const struct table_cell *cell = table_get(table, row, column);
			const char *reason = cell->has_value ? NULL : other_reason(cell->reason, format);

			if (reason)
				table_set_missing(table, row, column, reason);
		}
	}
}
