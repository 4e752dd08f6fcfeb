/* SPDX-License-Identifier: Apache-2.0
 *
 * observer.h: the RecordFunction callbacks: PyTorch calls them around every operator, in whatever thread runs it.
 */
#ifndef AGENTS_TORCH_OBSERVER_H
#define AGENTS_TORCH_OBSERVER_H

#include "agents/torch/layout.h"

/* Registers the callbacks, one per scope, so that the scope is known without reading the record. has_inputs: sizes of
 * inputs are known to be readable, and wanted; has_lines: the same for stacks of Python. */
void observer_start(const struct torch_entry *entry, const struct torch_layout *layout, bool has_inputs,
                    bool has_lines);
/* Nothing is recorded before this, once. A thread's first operator behind the start takes a lock of PyTorch's; one that is held when the
 * thread forks stays so in the child. So the thread that starts us runs an operator in between. */
void observer_settled(const struct torch_entry *entry);
void observer_stop(void);

/* A call of a module begins, in the thread that makes it; stepscope_emit_end() ends it. */
void observer_module_begin(uint32_t symbol);

#endif
