/* SPDX-License-Identifier: Apache-2.0
 *
 * backward.h: detects a backward that computes gradients and keeps them. Only Python can find the tensors with
 * gradients, usually after an optimizer's call. A program without an optimizer of PyTorch's gives no other occasion.
 * The detection has its own callback, registered only while a caller waits.
 */
#ifndef AGENTS_TORCH_BACKWARD_H
#define AGENTS_TORCH_BACKWARD_H

#include "agents/torch/entry.h"

/* Calls call() once, in the middle of the next such backward while memory is recorded. is_later: not before the next
 * start or window of the recorder, or its next file if older files are removed. call() runs in the thread of that
 * backward, with or without Python's lock, so it must not wait. call NULL: stops. One caller at a time. */
void backward_watch(const struct torch_entry *entry, void (*call)(void), bool is_later);

#endif
