/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.c: all analyses, in the order reports use. One line each.
 */
#include "analysis/analysis.h"

#include <string.h>

const struct analysis *const analyses[] = {
	&analysis_run,
	&analysis_step_time,
	&analysis_phases,
	&analysis_between_steps,
	&analysis_between_ranges,
	&analysis_steps,
	&analysis_step_breakdown,
	&analysis_step_parts,
	&analysis_critical_path,
	&analysis_critical_steps,
	&analysis_device_busy,
	&analysis_device_steps,
	&analysis_device_gaps,
	&analysis_ops,
	&analysis_mfu,
	&analysis_kernels,
	&analysis_copies,
	&analysis_copy_waits,
	&analysis_sync_waits,
	&analysis_launches,
	&analysis_queue_depth,
	&analysis_runtime_calls,
	&analysis_communication,
	&analysis_modules,
	&analysis_top_modules,
	&analysis_lines,
	&analysis_stacks,
	&analysis_functions,
	&analysis_sampled_stacks,
	&analysis_sampled_threads,
	&analysis_memory,
	&analysis_memory_totals,
	&analysis_memory_peak,
	&analysis_memory_modules,
	&analysis_memory_lines,
	&analysis_memory_largest,
	&analysis_memory_segments,
	&analysis_memory_failures,
	&analysis_memory_steps,
	&analysis_memory_growth,
	&analysis_operator_patterns,
	&analysis_data_loader,
	&analysis_host_waits,
	&analysis_collectives,
	&analysis_ranks,
	&analysis_rank_phases,
	&analysis_rank_collectives,
	&analysis_collective_times,
	&analysis_processes,
	&analysis_metrics,
	&analysis_counters,
	&analysis_telemetry,
	&analysis_marks,
	&analysis_threads,
	&analysis_ledger,
	&analysis_cost,
	&analysis_facts,
	NULL,
};

const struct analysis *analysis_find(const char *name)
{
	for (int i = 0; analyses[i]; i++) {
		if (!strcmp(analyses[i]->name, name))
			return analyses[i];
	}
	return NULL;
}

unsigned analysis_splits(const char *name)
{
	static const struct {
		const char *name;
		unsigned by;
	} splits[] = {
		{"ops", BY_SHAPE | BY_THREAD | BY_PHASE},
		{"kernels", BY_SHAPE | BY_LINE | BY_STACK | BY_MODULE},
		{"functions", BY_THREAD},
		{"sampled_stacks", BY_THREAD},
		{"sampled_threads", BY_THREAD}, /* their rows are that, with and without */
		{"threads", BY_THREAD},
	};

	for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++)
		if (strcmp(splits[i].name, name) == 0)
			return splits[i].by;
	return 0;
}

bool analysis_needs_past(const char *name)
{
	static const char *const names[] = {"memory",       "memory_steps",   "memory_peak",  "memory_modules",
	                                    "memory_lines", "memory_largest", "memory_growth"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

bool analysis_is_of_devices(const char *name)
{
	static const char *const names[] = {"step_breakdown", "step_parts",     "device_busy",  "device_steps",
	                                    "device_gaps",    "kernels",        "copies",       "copy_waits",
	                                    "sync_waits",     "launches",       "queue_depth",  "mfu",
	                                    "critical_path",  "critical_steps", "communication"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

bool analysis_is_of_operators(const char *name, bool infers_phases)
{
	static const char *const always[] = {"ops",         "modules",           "top_modules",      "lines",
	                                     "stacks",      "operator_patterns", "host_waits",       "data_loader",
	                                     "collectives", "collective_times",  "rank_collectives", "runtime_calls",
	                                     NULL};
	static const char *const of_phases[] = {"phases", "rank_phases", "ranks", NULL};

	return is_one_of(name, always) || (infers_phases && is_one_of(name, of_phases)) || analysis_is_of_devices(name);
}
