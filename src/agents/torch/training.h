/* SPDX-License-Identifier: Apache-2.0
 *
 * training.h: follows PyTorch's records while only a part of the steps is recorded: counts the steps that the program does not mark
 * (count.h), so that a schedule can open and close, and while no detail is recorded notes what the report needs to find steps and
 * phases: some ten stretches per step.
 *
 * What lies inside of another record is looked at as little as possible. No malloc but one per thread, no lock that waits, no Python.
 */
#ifndef AGENTS_TORCH_TRAINING_H
#define AGENTS_TORCH_TRAINING_H

#include "agents/torch/layout.h"

#include <stdbool.h>
#include <stdint.h>

void training_start(const struct torch_entry *entry, const struct torch_layout *layout);
/* In the thread of the record, for which thread_make() was called, around everything else that is done with it: before it is decided
 * whether a record is recorded, and after its end was. */
void training_begin(enum torch_scope scope, const void *record);
/* From Python: the innermost call of this thread is of this optimizer. */
void training_optimizer(uint64_t identity);

/* The level of a range with this name: enum stepscope_training, or LEVEL_* of training_state.h. */
uint8_t training_level_of_range(const char *name);

#endif
