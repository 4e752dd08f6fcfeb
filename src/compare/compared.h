/* SPDX-License-Identifier: Apache-2.0
 *
 * compared.h: private to compare/: the parts of compared_run_init() that have their own files. Functions with a run
 * fill it; if they need its steps, these must have been read.
 */
#ifndef COMPARE_COMPARED_H
#define COMPARE_COMPARED_H

#include "compare/compared_run.h"

/* Return a cell by the name of its column; 0 or NULL if the cell has no value. */
double compared_number_at(const struct table *table, int row, const char *column);
const char *compared_text_at(const struct table *table, int row, const char *column);

/* Reads the facts about program, machine and work per step. Needs the run's steps. */
void compared_read_facts(struct compared_run *run, struct report *report);

/* Reads the number of forward and backward passes per step, as a fact. */
void compared_read_passes(struct compared_run *run, struct report *report);

/* Reads in which steps operators were recorded, and the cost of that. Needs the run's steps. */
void compared_read_operators(struct compared_run *run, struct report *report);

/* Reads the parts of a step's time, as means over the steps of the report; for a run without steps, the parts of the
 * whole run. Needs the run's steps. */
void compared_read_parts(struct compared_run *run, struct report *report);

/* Reads how long ranks wait per step, by the rank they wait for, as a mean over all ranks. Needs the run's steps. */
void compared_read_ranks(struct compared_run *run, struct report *report);

/* Reads the allocations that were alive when memory peaked, and the reserved memory, for the fullest device of a
 * process. Without a device it reads the fullest process. */
void compared_read_memory(struct compared_run *run, struct report *report);

/* Reads each quantity that was measured from outside for each GPU while the program ran. */
void compared_read_telemetry(struct compared_run *run, struct report *report);

/* Reads the functions of sampled stacks with their samples. */
void compared_read_functions(struct compared_run *run, struct report *report);

#endif
