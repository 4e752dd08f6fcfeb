/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_windows.h: traces that are consecutive windows of one process. torch.profiler with a repeating schedule writes
 * one file per window.
 */
#ifndef IMPORTERS_KINETO_KINETO_WINDOWS_H
#define IMPORTERS_KINETO_KINETO_WINDOWS_H

#include "importers/kineto/kineto_set.h"
#include "model/join.h"

/* Finds the processes that also have an earlier window in another file. Files are of one process if they have the same
 * pid and rank, or the same pid and worker name at the start of the file name. Their times must not overlap, and marked
 * steps must continue where those of the other file end. Also numbers inferred steps on from those of the window
 * before. The caller frees *joins. */
uint32_t kineto_windows_find(const struct kineto_set *set, struct process_join **joins);

#endif
