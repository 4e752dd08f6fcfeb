/* SPDX-License-Identifier: Apache-2.0
 *
 * export_python.h: calls of Python functions, put together from the stacks of operators: a frame lasts from the first operator that it issued to
 * the last one, as long as no other frame of the same depth comes between them. It was running at least then; what it did before and
 * after, and functions that issued no operator, are not known. The slices nest with each other and with the track's spans.
 */
#ifndef OUTPUT_EXPORT_PYTHON_H
#define OUTPUT_EXPORT_PYTHON_H

#include "output/export_common.h"

struct python_slice {
	uint32_t frame;      /* index into model.stacks */
	uint32_t id, parent; /* parent 0: none */
	int64_t start_ns, end_ns;
};

typedef void (*python_slice_put)(void *context, const struct python_slice *slice);

/* In order of their start, outer ones first; *last_id counts through all tracks of a file. */
void python_slices(const struct model *model, uint32_t track, const struct selection *selection, uint32_t *last_id,
                   python_slice_put put, void *context);

#endif
