/* SPDX-License-Identifier: Apache-2.0
 *
 * names.h: names of operators as symbols. An operator's name lies in its schema for good, so its address finds the symbol; the text is
 * compared all the same, for an address may have been another name's before.
 */
#ifndef AGENTS_TORCH_NAMES_H
#define AGENTS_TORCH_NAMES_H

#include "agents/torch/entry.h"

#include <stdint.h>

/* Symbol of the name in that scope; 0 when there is none. Any thread; no lock, and no malloc (what is new comes out of an area). */
uint32_t names_symbol(enum torch_scope scope, const char *name);

#endif
