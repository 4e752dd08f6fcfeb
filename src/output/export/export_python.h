/* SPDX-License-Identifier: Apache-2.0
 *
 * export_python.h: reconstructs calls of Python functions from the stacks of operators. A frame lasts from the first
 * to the last operator that it issued, unless another frame of the same depth comes between them. The function ran at
 * least in that time. Earlier and later times, and functions that issued no operator, are unknown. The slices nest
 * with each other and with the track's spans.
 */
#ifndef OUTPUT_EXPORT_EXPORT_PYTHON_H
#define OUTPUT_EXPORT_EXPORT_PYTHON_H

#include "output/export/export_common.h"

struct python_slice {
	uint32_t frame;      /* index into model.stacks */
	uint64_t id, parent; /* parent 0: there is none */
	int64_t start_ns, end_ns;
};

struct python_out {
	/* Called in order of start, outer slices first. */
	void (*put)(void *context, const struct python_slice *slice);
	/* Called for each call of a module on a track with stacks, in order of rows. parent 0: there is none. */
	void (*put_parent)(void *context, uint32_t row, uint64_t parent);
	void *context;
	uint64_t last_id;  /* of slices: counts over all tracks of a file */
	uint64_t first_id; /* id of row 0: a module's id is that of its row */
};

void python_slices(const struct model *model, uint32_t track, const struct selection *selection,
                   struct python_out *out);

#endif
