/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h: the tables of one run. Each is computed when a reader first asks for it, checked against the promises of
 * its columns, and kept. Every output of a run (text, JSON, CSV) reads its numbers only here.
 *
 *     struct report report;
 *     report_init(&report, &model, &options, "runs/a");
 *     const struct table *ops = report_table(&report, "ops");
 *     report_release(&report);
 */
#ifndef ANALYSIS_REPORT_H
#define ANALYSIS_REPORT_H

#include "analysis/analysis_context.h"
#include "analysis/step_times/start_up.h"
#include "analysis/step_times/whole_steps.h"

#define REPORT_DEFECTS 32

struct report {
	const struct model *model;
	const char *path;                /* of the run, as given */
	const char *format;              /* format of a file that another tool wrote: "kineto"; NULL: a recording */
	const char *name;                /* last part of the path */
	struct analysis_context context; /* with the results that tables share */
	struct arena arena;
	struct {
		struct table table;
		bool is_ready;
		int64_t cpu_ns;              /* to compute this table, without shared results */
	} tables[ANALYSIS_COUNT];            /* in the order of analyses[] */
	const char *defects[REPORT_DEFECTS]; /* broken promises of columns: bugs in stepscope */
	int defect_count;
};

/* The model and the path must outlive the report. */
void report_init(struct report *report, const struct model *model, const struct analysis_options *options,
                 const char *path);
void report_release(struct report *report);

/* Returns the table of the analysis of that name, NULL if there is none. An analysis that fails gives a table without
 * rows, which says why. */
const struct table *report_table(struct report *report, const char *name);

/* Restricts times of steps to the steady state. Call it before the first table. If the user chose steps, no start-up
 * is left out. */
struct start_up report_leave_out_start_up(struct report *report);

/* For a damaged input, restricts times to steps whose device work is complete. Call it before
 * report_leave_out_start_up(). */
struct whole_steps report_leave_out_damage(struct report *report);

/* Returns the CPU time of all tables and of their shared results. */
int64_t report_cpu_ns(const struct report *report);

const struct step_times *report_step_times(struct report *report);

/* Returns the same table as report_table(), for callers that sort or truncate it. */
struct table *report_table_mutable(struct report *report, const char *name);

#endif
