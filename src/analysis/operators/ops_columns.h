/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_columns.h: the columns of the table `ops`.
 */
#ifndef ANALYSIS_OPERATORS_OPS_COLUMNS_H
#define ANALYSIS_OPERATORS_OPS_COLUMNS_H

#include "table/table.h"

enum {
	OP_NAME,
	OP_KIND,
	OP_SHAPE,
	OP_THREAD,
	OP_PHASE,
	OP_STEP_MEAN,
	OP_STEP_SELF,
	OP_STEP_OUTSIDE,
	OP_STEP_RATIO,
	OP_UNSEEN,
	OP_SELF,
	OP_RATIO,
	OP_CALLS,
	OP_TOTAL,
	OP_MEAN,
	OP_MIN,
	OP_MAX,
	OP_INCOMPLETE,
	OP_FLOPS,
	OP_FLOP_RATE,
	OP_PROFILER_FLOPS,
	OP_BYTES,
	OP_SELF_MEMORY,
	OP_MEMORY,
	OP_SELF_DEVICE,
	OP_DEVICE,
	OP_LAUNCHED,
	OP_LEAST,
	OP_COLUMNS,
};

extern const struct table_column operation_columns[OP_COLUMNS];

#endif
