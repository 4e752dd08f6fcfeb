/* SPDX-License-Identifier: Apache-2.0
 *
 * export_python.h: calls of Python functions, put together from the stacks of operators: a frame lasts from the first operator that it issued to
 * the last one, as long as no other frame of the same depth comes between them. It was running at least then; what it did before and
 * after, and functions that issued no operator, are not known. The slices nest with each other and with the track's spans.
 */
#ifndef OUTPUT_EXPORT_EXPORT_PYTHON_H
#define OUTPUT_EXPORT_EXPORT_PYTHON_H

#include "output/export/export_common.h"

struct python_slice {
	uint32_t frame;      /* index into model.stacks */
	uint64_t id, parent; /* parent 0: none */
	int64_t start_ns, end_ns;
};

struct python_out {
	/* In order of their start, outer ones first. */
	void (*put)(void *context, const struct python_slice *slice);
	/* For each call of a module where stacks were recorded, in order of rows: what it lies in, 0: in none. */
	void (*put_parent)(void *context, uint32_t row, uint64_t parent);
	void *context;
	uint64_t last_id;  /* of slices: counts through all tracks of a file */
	uint64_t first_id; /* a module's id is that of its row: row 0 has this one */
};

void python_slices(const struct model *model, uint32_t track, const struct selection *selection,
                   struct python_out *out);

#endif
