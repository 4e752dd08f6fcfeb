/* SPDX-License-Identifier: Apache-2.0
 *
 * operators.h: an operator's schema lies still as long as there is the operator, so its address is the operator's name, until PyTorch
 * says that one goes (a program has defined it itself, and destroys its library).
 */
#ifndef AGENTS_TORCH_OPERATORS_H
#define AGENTS_TORCH_OPERATORS_H

#include "agents/torch/entry.h"

/* Calls when an operator is about to go, in the thread in which it does; also at exit. Once per process, for good. False: this PyTorch
 * does not say so. */
bool operators_watch(const struct torch_entry *entry, void (*on_going)(void));

#endif
