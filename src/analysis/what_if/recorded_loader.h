/* SPDX-License-Identifier: Apache-2.0
 *
 * recorded_loader.h: the loader of PyTorch from which most batches of a process come, for its replay.
 */
#ifndef ANALYSIS_WHAT_IF_RECORDED_LOADER_H
#define ANALYSIS_WHAT_IF_RECORDED_LOADER_H

#include "replay/graph.h"

/* Finds the loader of the window's process. Returns false if there is none, or if its batches are not made in the order of
 * its workers: an iterable dataset, or in_order=False. */
bool recorded_loader_find(struct replay_loader *loader, const struct model *model, const struct replay_window *window);
void recorded_loader_release(struct replay_loader *loader);

#endif
