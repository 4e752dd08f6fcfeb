/* SPDX-License-Identifier: Apache-2.0
 *
 * lean.h: shorter ways to do PyTorch's own work for each observed record, with the same records. Each part is proven
 * at start. It redirects calls of PyTorch's libraries, through their slots, for good, so nothing is switched when
 * callbacks are added or removed. The normal callbacks stay registered and decide. Parts that cannot be proven keep
 * PyTorch's own way.
 *
 *     lean_want("tls");
 *     lean_probe_begin(&entry);
 *     ...layout_probe_begin() to layout_probe_end()...
 *     lean_probe_end(&entry, &layout);
 *     stepscope_metadata("torch.lean", lean_text());
 */
#ifndef AGENTS_TORCH_LEAN_H
#define AGENTS_TORCH_LEAN_H

#include "agents/torch/layout.h"

/* Sets the wanted parts: names separated by commas ("tls"), or "none" followed by a reason. If the text names no part,
 * lean_text() returns the text. No part is wanted before this call. */
void lean_want(const char *parts);
void lean_probe_begin(const struct torch_entry *entry);
void lean_probe_end(const struct torch_entry *entry, const struct torch_layout *layout);
/* The start and end that our observer registers for operators. All of its callbacks have this end, and no other
 * callback has it. Call before the first callback is registered. */
void lean_observer(torch_start *start, void (*end)(const void *record, void *context));
/* Returns the cost of records with the active parts, as a share of the cost without them. It was measured in a step of
 * 11,000 small operators (README.md). */
double lean_cost_share(void);
/* Returns the active parts, and the reasons why other wanted parts are not active. */
const char *lean_text(void);

#endif
