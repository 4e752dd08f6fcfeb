/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.h: where things lie in PyTorch's records, found by looking at records of operators whose answers are known. An offset counts
 * only when it is the one place that fits every observation; what is not proven is -1 and never read.
 *
 *     layout_probe_begin(&entry);
 *     ...several adds with gradients, a backward in this thread's forward, one in another thread (by Python)...
 *     layout_probe_end(&layout);
 */
#ifndef AGENTS_TORCH_LAYOUT_H
#define AGENTS_TORCH_LAYOUT_H

#include "agents/torch/entry.h"

struct torch_layout {
	int sequence;       /* int64, of the record; -1: as all of them, not proven */
	int schema;         /* pointer, of an operator's record: where its schema lies, which begins with its name */
	int kind;           /* byte, of the record: 1 where it has a schema, 0 where a text lies there */
	int forward_thread; /* uint64, of a backward record: PyTorch's number of the thread that ran the forward */
};

bool layout_probe_begin(const struct torch_entry *entry);
/* Inputs of the newest operator as they were read, once inputs_solve() found out how. */
const char *layout_probe_inputs(void);
void layout_probe_end(struct torch_layout *layout);

#endif
