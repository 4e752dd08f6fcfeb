/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_tls.h: for each node of a backward the engine sets twice who observes the thread, as a rule to what it is, and PyTorch works out anew who
 * is called in each scope. Where nobody observes the thread alone, before and behind, and it makes records as before, that is left out.
 */
#ifndef AGENTS_TORCH_LEAN_TLS_H
#define AGENTS_TORCH_LEAN_TLS_H

#include "agents/torch/entry.h"
#include "agents/torch/process.h"

/* Once, in a thread that nobody observes alone. NULL: it is so from here on; else why not. */
const char *lean_tls_start(const struct torch_entry *entry, const struct loaded *loaded);

#endif
