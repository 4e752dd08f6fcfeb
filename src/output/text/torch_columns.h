/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_columns.h: the columns of torch.profiler's table and their widths. They depend on the rows, because torch
 * writes no empty column.
 */
#ifndef OUTPUT_TEXT_TORCH_COLUMNS_H
#define OUTPUT_TEXT_TORCH_COLUMNS_H

#include "output/text/torch_table.h"

#define TORCH_COLUMNS 24

struct torch_columns {
	int count;
	const char *headers[TORCH_COLUMNS];
	int64_t widths[TORCH_COLUMNS];
	int source_column;
	bool has_flops, has_shapes, has_source, has_device_bytes, has_device_time;
	double flops_scale; /* factor from FLOP to the unit of the header */
	char device[16];
	char titles[7][32]; /* headers that name the device or a unit */
};

/* Finds the columns. Keep the struct where it is: headers point into it. */
void torch_columns_find(struct torch_columns *columns, const struct torch_ops *ops, const struct torch_table *table);

/* Returns the width of a text, in characters of UTF-8. */
size_t torch_characters(const char *text);

#endif
