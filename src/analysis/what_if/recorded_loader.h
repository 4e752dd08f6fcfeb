/* SPDX-License-Identifier: Apache-2.0
 *
 * recorded_loader.h: the loader of PyTorch from which most batches of a process come, for its replay.
 */
#ifndef ANALYSIS_WHAT_IF_RECORDED_LOADER_H
#define ANALYSIS_WHAT_IF_RECORDED_LOADER_H

#include "analysis/loader/loader_batches.h"
#include "analysis/loader/loader_handovers.h"
#include "replay/graph.h"

struct recorded_batches { /* of all loaders of the run */
	struct loader_batches batches;
	struct loader_handovers handovers;
};

void recorded_batches_find(struct recorded_batches *recorded, const struct model *model);
void recorded_batches_release(struct recorded_batches *recorded);

/* Finds the loader of the window's process. Returns false if there is none, or if its batches are not made in the order of
 * its workers: an iterable dataset, or in_order=False. */
bool recorded_loader_find(struct replay_loader *loader, const struct model *model, const struct replay_window *window,
                          const struct recorded_batches *recorded);
void recorded_loader_release(struct replay_loader *loader);

#endif
