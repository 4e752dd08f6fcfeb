/* SPDX-License-Identifier: Apache-2.0
 *
 * what_if_table.h: the form of the table `what_if`, for the analysis and for the command, which adds rows of its own.
 */
#ifndef ANALYSIS_WHAT_IF_WHAT_IF_TABLE_H
#define ANALYSIS_WHAT_IF_WHAT_IF_TABLE_H

#include "replay/what_if.h"
#include "table/table.h"

/* Adds the row "nothing removed"; if there is a problem, no row and the reason. */
void what_if_table_init(struct table *table, const struct what_if *what_if);
/* Adds the rows of all cuts that have something to remove, the largest saving first. */
void what_if_table_add_cuts(struct table *table, const struct what_if *what_if);
/* Adds a row for several cuts at once; `cut` names them. */
void what_if_table_add_together(struct table *table, const char *cut, const struct what_if_cut *saving);

#endif
