/* SPDX-License-Identifier: Apache-2.0
 *
 * names.h: the names of PyTorch's records, as symbols.
 */
#ifndef AGENTS_TORCH_NAMES_H
#define AGENTS_TORCH_NAMES_H

#include "agents/torch/entry.h"

#include <stdint.h>

/* From this call on, records have names. `schema`: see struct torch_layout. Later calls change nothing. */
void names_start(const struct torch_entry *entry, int schema);

/* Returns the symbol of the record's name in that scope; 0: it has no name, or none yet. Any thread; no lock, no
 * malloc, and a system call only when an operator is met for the first time. */
uint32_t names_symbol(enum torch_scope scope, const void *record);

#endif
