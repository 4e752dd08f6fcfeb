/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.h: offsets of fields in PyTorch's records, found in records of operators with known answers. An offset counts
 * only if it is the one place that fits every observation. An offset that is not proven is -1 and never used.
 *
 *     layout_probe_begin(&entry);
 *     ...several adds with gradients, a backward in this thread's forward, one in another thread (by Python)...
 *     layout_probe_end(&layout);
 */
#ifndef AGENTS_TORCH_LAYOUT_H
#define AGENTS_TORCH_LAYOUT_H

#include "agents/torch/entry.h"

struct torch_layout {
	int sequence;       /* int64, of the record; -1: not proven, as for all fields */
	int schema;         /* pointer, of an operator's record, to the operator's schema, which starts with its name */
	int kind;           /* byte, of the record: 1 if it has a schema, 0 if it has a text at that place */
	int forward_thread; /* uint64, of a backward record: PyTorch's number of the thread that ran the forward */
};

bool layout_probe_begin(const struct torch_entry *entry);
/* Returns the inputs of the newest operator, as read after inputs_solve() found their layout. */
const char *layout_probe_inputs(void);
void layout_probe_end(struct torch_layout *layout);

#endif
