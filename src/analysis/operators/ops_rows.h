/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_rows.h: the rows of the table `ops`.
 */
#ifndef ANALYSIS_OPERATORS_OPS_ROWS_H
#define ANALYSIS_OPERATORS_OPS_ROWS_H

#include "analysis/operators/op_totals.h"

/* Adds a row per group, then those of the time and of the work outside all operations, and sorts them. The table has
 * its columns. */
void ops_rows_add(struct table *table, const struct op_fold *fold, const struct op_totals *totals);

#endif
