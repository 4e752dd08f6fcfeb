/* SPDX-License-Identifier: Apache-2.0
 *
 * analysis.h: a question that is answered by a table. One file per analysis, one line in analysis/registry.c.
 */
#ifndef ANALYSIS_ANALYSIS_H
#define ANALYSIS_ANALYSIS_H

#include "model/model.h"
#include "table/table.h"

enum analysis_by {
	BY_NAME = 0,
	BY_SHAPE = 1,
	BY_THREAD = 2,
	BY_PHASE = 4,
	BY_LINE = 8,
	BY_STACK = 16,
	BY_MODULE = 32
};

struct step_times;
struct launches;
struct collective_calls;
struct flop_likeness;
struct kept_work;

struct analysis_options {
	unsigned by;    /* enum analysis_by, or-ed */
	bool has_steps; /* only these step numbers, inclusive */
	int64_t first_step, last_step;
	bool leaves_steps; /* has_steps, to leave out steps that would mislead: only time of steps is of these, what happened counts always */
	uint32_t window, last_window; /* as in struct model_filter */
	int64_t pid;
	bool keeps_recorded; /* sums are of what was recorded, also where a budget chose the steps: not multiplied to the run */
	bool with_past; /* as in struct model_filter: for tables that need it */
	const struct step_times
		*step_times; /* (optional) computed once with the same steps, for all analyses of a report */
	const struct launches *launches;                 /* (optional) of the same model */
	const struct collective_calls *collective_calls; /* (optional) of the same model */
	const struct flop_likeness *flop_likeness;       /* (optional) of the same model */
	struct kept_work *kept_work; /* (optional) of the same model: what devices did, for all analyses of a report */
};

/* Of tables that tell what happened rather than where time goes: only of the selected steps? */
static inline bool is_part_of_run(const struct analysis_options *options)
{
	return options->has_steps && !options->leaves_steps;
}

struct analysis {
	const char *name;     /* also the table's name: "ops" */
	const char *question; /* one line for --tables: "which operations take the time?" */
	/* Fills `table` (initialised by the callee with table_init()). Missing evidence is not an error: cells or the whole
	 * table say why they are empty. */
	enum status (*run)(const struct model *model, const struct analysis_options *options, struct table *table,
	                   struct error *err);
};

extern const struct analysis analysis_run, analysis_steps, analysis_step_time, analysis_phases, analysis_between_steps,
	analysis_ops, analysis_modules, analysis_top_modules, analysis_lines, analysis_stacks, analysis_memory,
	analysis_memory_peak, analysis_memory_modules, analysis_memory_lines, analysis_memory_largest,
	analysis_memory_segments, analysis_memory_failures, analysis_memory_steps, analysis_memory_growth,
	analysis_memory_totals, analysis_ranks, analysis_processes, analysis_counters, analysis_metrics, analysis_marks,
	analysis_threads, analysis_ledger, analysis_cost, analysis_facts;

extern const struct analysis analysis_step_breakdown, analysis_step_parts, analysis_device_busy, analysis_device_steps,
	analysis_kernels, analysis_copies, analysis_launches, analysis_runtime_calls, analysis_communication,
	analysis_queue_depth, analysis_device_gaps, analysis_copy_waits, analysis_sync_waits, analysis_mfu,
	analysis_critical_path, analysis_critical_steps, analysis_between_ranges;

extern const struct analysis analysis_operator_patterns, analysis_data_loader, analysis_host_waits,
	analysis_collectives, analysis_rank_phases, analysis_rank_collectives, analysis_collective_times;

extern const struct analysis analysis_functions, analysis_sampled_stacks, analysis_sampled_threads, analysis_telemetry;

/* NULL-terminated, in the order reports use. */
extern const struct analysis *const analyses[];
const struct analysis *analysis_find(const char *name);
/* How its rows can be split: enum analysis_by, or-ed. */
unsigned analysis_splits(const char *name);
/* Does it want to know, of selected steps, what was before them? It says what they began with. */
bool analysis_needs_past(const char *name);
/* Is it wrong where work of devices was lost? */
bool analysis_is_of_devices(const char *name);
/* Is it of the steps with operators alone? infers_phases: the program marks none. */
bool analysis_is_of_operators(const char *name, bool infers_phases);

#endif
