/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_tls.h: for each node of a backward, the engine sets the thread's own observers twice, usually to the present
 * ones. PyTorch then computes the callbacks of each scope again. This is skipped if the thread has no own observers
 * before and after, and makes records as before.
 */
#ifndef AGENTS_TORCH_LEAN_TLS_H
#define AGENTS_TORCH_LEAN_TLS_H

#include "agents/torch/entry.h"
#include "agents/torch/process.h"

/* Call once, in a thread without own observers. Returns NULL if the part is active from now on, otherwise the
 * reason. */
const char *lean_tls_start(const struct torch_entry *entry, const struct loaded *loaded);

#endif
