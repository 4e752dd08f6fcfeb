/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h: the tables of one run, computed when a reader first asks for them and kept, each checked against what its
 * columns promise. Every output of a run (text, JSON, CSV) reads its numbers here and nowhere else.
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
	const char *format;              /* of a file that another tool wrote: "kineto"; NULL: a recording */
	const char *name;                /* last part of it */
	struct analysis_context context; /* with what tables share */
	struct arena arena;
	struct {
		struct table table;
		bool is_ready;
		int64_t cpu_ns;              /* what computing it took */
	} tables[ANALYSIS_COUNT];            /* like analyses[] */
	const char *defects[REPORT_DEFECTS]; /* broken promises of columns: mistakes of ours */
	int defect_count;
};

/* The model and the path must outlive the report. */
void report_init(struct report *report, const struct model *model, const struct analysis_options *options,
                 const char *path);
void report_release(struct report *report);

/* The table of the analysis of that name, NULL when there is none. An analysis that fails gives a table without rows,
 * which says why. */
const struct table *report_table(struct report *report, const char *name);

/* Before the first table: from here on time of steps is that of the steady state. No start-up is left out of steps that the user chose. */
struct start_up report_leave_out_start_up(struct report *report);

/* The same, before that: of a damaged input only steps that have all that devices did count from here on. */
struct whole_steps report_leave_out_damage(struct report *report);

/* CPU time that tables took, and what they share. */
int64_t report_cpu_ns(const struct report *report);

const struct step_times *report_step_times(struct report *report);

/* The same, to sort and cut. */
struct table *report_table_mutable(struct report *report, const char *name);

#endif
