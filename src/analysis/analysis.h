/* SPDX-License-Identifier: Apache-2.0
 *
 * analysis.h: an analysis answers one question with a table. Each analysis is one file and one line in
 * analysis/analyses.h.
 */
#ifndef ANALYSIS_ANALYSIS_H
#define ANALYSIS_ANALYSIS_H

#include "analysis/analyses.h"
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

struct analysis_context;

struct analysis_options {
	unsigned by; /* enum analysis_by, or-ed */
	struct model_filter filter;
	bool leaves_steps;   /* steps were selected to leave out misleading ones: only times are restricted */
	bool keeps_recorded; /* sums cover only the recorded steps, even if a budget chose them: no scaling to runs */
};

/* Returns true if tables of events, rather than of time, are restricted to the selected steps. */
static inline bool is_part_of_run(const struct analysis_options *options)
{
	return options->filter.has_steps && !options->leaves_steps;
}

struct analysis {
	const char *name;     /* also the table's name: "ops" */
	const char *row;      /* one row per ROW, for the list of tables: "operation or range" */
	const char *question; /* one line for --tables: "which operations take the time?" */
	/* Fills `table` (initialised by the callee with table_init()). Missing evidence is not an error: cells or the
	 * whole table say why they are empty. */
	enum status (*run)(struct analysis_context *context, struct table *table, struct error *err);
	unsigned splits;      /* how its rows can be split: enum analysis_by, or-ed */
	bool with_past;       /* also reads the time before the selected steps, for the state at their start */
	bool is_of_devices;   /* wrong if work of devices was lost; only of the steps with operators */
	bool is_of_operators; /* only of the steps with operators */
	bool is_of_phases;    /* only of the steps with operators, unless the program marks phases */
};

#define ANALYSIS_DECLARE(name) extern const struct analysis analysis_##name;
ANALYSES(ANALYSIS_DECLARE)
#undef ANALYSIS_DECLARE

extern const struct analysis *const analyses[ANALYSIS_COUNT + 1]; /* NULL-terminated, in the order reports use */
/* Returns NULL if there is no analysis of that name. */
const struct analysis *analysis_find(const char *name);

#endif
