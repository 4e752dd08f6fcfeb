/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_object.h: for each operator and each node of a backward that anybody observes PyTorch builds an object of 344 bytes, and takes it down again.
 * Where our observer is the only one, a lean record takes its place. With another one beside us, and for ranges, the object is PyTorch's.
 */
#ifndef AGENTS_TORCH_LEAN_OBJECT_H
#define AGENTS_TORCH_LEAN_OBJECT_H

#include "agents/torch/entry.h"

/* Within calibration, behind lean_record_find(): looks at the records of this thread. */
void lean_object_learn(const struct torch_entry *entry);
/* As lean_engine_start(). */
const char *lean_object_start(const char *problem);

#endif
