/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_table_sort.h: the order of the rows in torch.profiler's table.
 */
#ifndef OUTPUT_TEXT_TORCH_TABLE_SORT_H
#define OUTPUT_TEXT_TORCH_TABLE_SORT_H

#include "analysis/operators/torch_ops.h"
#include "base/error.h"

struct torch_sorted_row {
	const struct torch_row *row;
	double value; /* the sort key */
};

/* Fills `rows`, which has room for all, in the order of torch's sort_by `name` (NULL: in the order of events). Fails if
 * torch cannot sort by that name. */
enum status torch_table_sort(const struct torch_ops *ops, const char *name, struct torch_sorted_row *rows,
                             struct error *err) MUST_CHECK;

#endif
