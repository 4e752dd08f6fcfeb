/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_engine.h: around each node of a backward the engine has a record of its own, for which it puts a name together as C++ streams do, a
 * microsecond, whoever observes. Where our observer alone is to be told, it makes none: the record is a lean one, which is not active for
 * the engine, and our observer is told of it, with the same name, by the call of evaluate_function() that the record is around.
 */
#ifndef AGENTS_TORCH_LEAN_ENGINE_H
#define AGENTS_TORCH_LEAN_ENGINE_H

#include "agents/torch/entry.h"

/* Within calibration, behind lean_record_find(): looks at the backwards of this thread. */
void lean_engine_learn(const struct torch_entry *entry);
/* Behind it; `problem`: why there are no lean records, NULL: there are. NULL: it is so from here on; else why not, and all is as it was. */
const char *lean_engine_start(const char *problem);
/* Our observer's start for operators. None before. */
void lean_engine_tells(torch_start *start);

#endif
