/* SPDX-License-Identifier: Apache-2.0
 *
 * compared.h: private to compare/: the parts of compared_run_init() that have files of their own.
 */
#ifndef COMPARE_COMPARED_H
#define COMPARE_COMPARED_H

#include "compare/compared_run.h"

/* Cells by the name of their column; 0, or NULL, where there is no value. */
double compared_number_at(const struct table *table, int row, const char *column);
const char *compared_text_at(const struct table *table, int row, const char *column);

/* What was run, where, with which work per step; the run's steps are read. */
void compared_read_facts(struct compared_run *run, struct report *report);

/* How often a step goes forward and back, a fact. */
void compared_read_passes(struct compared_run *run, struct report *report);

/* In which of its steps operators were recorded, and what that cost; the run's steps are read. */
void compared_read_operators(struct compared_run *run, struct report *report);

/* Where a step's time goes, as means over the steps of the report; the run's steps are read. Of a run without steps: what the whole
 * of it takes. */
void compared_read_parts(struct compared_run *run, struct report *report);

/* How long ranks wait in a step, mean over all of them, by whom they wait for; the run's steps are read. */
void compared_read_ranks(struct compared_run *run, struct report *report);

/* What was alive when memory peaked, of the fullest device of a process, else of the fullest process; and what is reserved of it. */
void compared_read_memory(struct compared_run *run, struct report *report);

/* Of each quantity of each GPU, as it was measured from outside while the run ran. */
void compared_read_telemetry(struct compared_run *run, struct report *report);

/* What samples of stacks count of each function. */
void compared_read_functions(struct compared_run *run, struct report *report);

#endif
