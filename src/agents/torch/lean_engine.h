/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_engine.h: the engine has its own record around each node of a backward. It builds the record's name with C++
 * streams, which takes a microsecond, whoever observes. If our observer is the only one, the name is not built. The
 * record is then a lean one, which is not active for the engine. The call of evaluate_function() inside it calls our
 * observer, with the same name.
 */
#ifndef AGENTS_TORCH_LEAN_ENGINE_H
#define AGENTS_TORCH_LEAN_ENGINE_H

#include "agents/torch/entry.h"

/* Call within calibration, after lean_record_find(): watches the backwards of this thread. */
void lean_engine_learn(const struct torch_entry *entry);
/* Call after calibration. `problem`: why there are no lean records; NULL: there are. Returns NULL if the part is
 * active from now on. Otherwise returns the reason, and nothing has changed. */
const char *lean_engine_start(const char *problem);
/* Sets our observer's start for operators. No record is lean before this call. */
void lean_engine_tells(torch_start *start);

#endif
