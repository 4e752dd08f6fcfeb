/* SPDX-License-Identifier: Apache-2.0
 *
 * canary_tables.h: the contents of a metrics.json of rlhf-canary as tables: its numbers, the facts about the run, and
 * the operators that its writer's profiler lists.
 */
#ifndef COMPARE_CANARY_TABLES_H
#define COMPARE_CANARY_TABLES_H

#include "compare/compared_run.h"

struct canary_tables {
	struct table numbers, facts, operators;
};

/* Fills the tables from a run that canary_metrics_read() has read. The tables keep nothing of the run. */
void canary_tables_init(struct canary_tables *tables, const struct compared_run *run);
void canary_tables_release(struct canary_tables *tables);

#endif
