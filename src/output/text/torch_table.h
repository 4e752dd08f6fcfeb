/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_table.h: the text that `prof.key_averages().table()` of torch.profiler prints, byte for byte, with our numbers.
 */
#ifndef OUTPUT_TEXT_TORCH_TABLE_H
#define OUTPUT_TEXT_TORCH_TABLE_H

#include "analysis/operators/torch_ops.h"
#include "base/buffer.h"
#include "base/error.h"

#define TORCH_TABLE_NO_LIMIT (-1)

struct torch_table {
	const char *sort;     /* name of an attribute, as torch's sort_by; NULL: the order of events */
	int64_t row_limit;    /* TORCH_TABLE_NO_LIMIT */
	int64_t name_width;   /* at most; TORCH_TABLE_NO_LIMIT: as wide as the longest */
	int64_t shapes_width; /* likewise */
	int64_t source_width;
	const char *header;    /* (optional) */
	const char *time_unit; /* "s", "ms", "us"; NULL: what fits each */
	const char *device;    /* "cuda": what columns of a device are called; NULL: of none */
	bool is_top_level;     /* only rows whose first event lies in no other */
	bool is_old;           /* as PyTorch 1.13 writes it */
	bool has_memory, has_flops, has_shapes;
};

/* Appends the table; nothing when there are no rows. */
enum status torch_table_write(struct buffer *out, const struct torch_ops *ops, const struct torch_table *table,
                              struct error *err) MUST_CHECK;

#endif
