/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_table.h: the text of torch.profiler's `prof.key_averages().table()`, byte for byte, with stepscope's numbers.
 */
#ifndef OUTPUT_TEXT_TORCH_TABLE_H
#define OUTPUT_TEXT_TORCH_TABLE_H

#include "analysis/operators/torch_ops.h"
#include "base/buffer.h"
#include "base/error.h"

#define TORCH_TABLE_NO_LIMIT (-1)

struct torch_table {
	const char *sort;     /* name of an attribute, as torch's sort_by; NULL: the order of events */
	int64_t row_limit;    /* or TORCH_TABLE_NO_LIMIT */
	int64_t name_width;   /* largest width; TORCH_TABLE_NO_LIMIT: as wide as the longest name */
	int64_t shapes_width; /* likewise */
	int64_t source_width;
	const char *header;    /* (optional) */
	const char *time_unit; /* "s", "ms", "us"; NULL: a suitable unit for each number */
	const char *device;    /* "cuda": name of the device in headers; NULL: no device */
	bool is_top_level;     /* only rows whose first event is not nested in another event */
	bool is_old;           /* as PyTorch 1.13 writes it */
	bool has_memory, has_flops, has_shapes;
};

/* Appends the table; appends nothing if there are no rows. */
enum status torch_table_write(struct buffer *out, const struct torch_ops *ops, const struct torch_table *table,
                              struct error *err) MUST_CHECK;

#endif
