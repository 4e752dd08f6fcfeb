/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_object.h: PyTorch builds and destroys an object of 344 bytes for each observed operator and each observed node
 * of a backward. If our observer is the only one, a lean record takes its place. If there is another observer, and for
 * ranges, the object stays PyTorch's.
 */
#ifndef AGENTS_TORCH_LEAN_OBJECT_H
#define AGENTS_TORCH_LEAN_OBJECT_H

#include "agents/torch/entry.h"

/* Call within calibration, after lean_record_find(): watches the records of this thread. */
void lean_object_learn(const struct torch_entry *entry);
/* As lean_engine_start(). */
const char *lean_object_start(const char *problem);

#endif
