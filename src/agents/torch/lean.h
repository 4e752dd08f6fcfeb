/* SPDX-License-Identifier: Apache-2.0
 *
 * lean.h: what PyTorch itself does for each record that somebody observes, done in a shorter way, with the same records. Each part is proven
 * at start: it leads calls of PyTorch's libraries, by their slots, for good; so nothing is switched when callbacks are added or
 * removed. The normal callbacks stay registered and decide, and what cannot be proven stays PyTorch's own way.
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

/* Names of parts, with commas: "tls"; "none", with why behind it, or none of these names: the text is what lean_text() says. Nothing is wanted
 * before. */
void lean_want(const char *parts);
void lean_probe_begin(const struct torch_entry *entry);
void lean_probe_end(const struct torch_entry *entry, const struct torch_layout *layout);
/* What our observer registers for operators; its end is that of all of its callbacks, and of none else. Before the first is registered. */
void lean_observer(torch_start *start, void (*end)(const void *record, void *context));
/* What records cost with them, as a share of what they cost without: measured in a step of 11,000 small operators (docs/pytorch.md). */
double lean_cost_share(void);
/* The parts that are done so, and why others that were wanted are not. */
const char *lean_text(void);

#endif
