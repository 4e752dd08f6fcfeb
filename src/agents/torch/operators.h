/* SPDX-License-Identifier: Apache-2.0
 *
 * operators.h: an operator's schema stays at its address as long as the operator exists, so the address identifies the
 * operator. That ends when PyTorch reports that an operator goes away (a program has defined it itself, and destroys
 * its library).
 */
#ifndef AGENTS_TORCH_OPERATORS_H
#define AGENTS_TORCH_OPERATORS_H

#include "agents/torch/entry.h"

/* Calls on_going when an operator is about to go away, in the thread that removes it; also at exit. Once per process,
 * for good. Returns false if this PyTorch does not report that. */
bool operators_watch(const struct torch_entry *entry, void (*on_going)(void));

#endif
