/* SPDX-License-Identifier: Apache-2.0
 *
 * backward.h: tells when a backward computes gradients that are kept. Which tensors have some only Python can say, and behind an optimizer's
 * call: a program without an optimizer of PyTorch's gives no other occasion. By a callback of its own, while somebody waits.
 */
#ifndef AGENTS_TORCH_BACKWARD_H
#define AGENTS_TORCH_BACKWARD_H

#include "agents/torch/entry.h"

/* call() comes once, in the middle of the next such backward while memory is recorded; is_later: not before the next start or window of the
 * recorder, or its next file where older ones are removed. It comes in whatever thread that runs in, with or without Python's lock, so it
 * must not wait. call NULL: not any more. One thread at a time. */
void backward_watch(const struct torch_entry *entry, void (*call)(void), bool is_later);

#endif
